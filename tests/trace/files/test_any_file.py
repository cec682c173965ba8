"""Whatever was saved comes back; whatever else a file holds is a session or the one error."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras, Sibling
from explorer.trace.files.saved_view import SavedView
from explorer.trace.trace import Trace, bare_name
from tests.trace import any_values
from tests.trace.runs import made_trace, same

# The folder is the same for every example, and each writes its own file over the last.
one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
large = settings(one_folder, max_examples=settings().max_examples // 2)


@st.composite
def sessions(draw: st.DrawFn) -> tuple[Trace, SavedExtras]:
    """A trace, with branches that share its first steps, a batch and a view, or without."""
    trace = draw(any_values.traces())
    shared = st.integers(0, len(trace.steps)).map(trace.truncated)
    branches = draw(st.lists(st.builds(Sibling, any_values.TEXT, shared), max_size=3))
    current = draw(st.integers(0, len(branches) - 1)) if branches else None
    batch = draw(st.none() | any_values.batches())
    seen = draw(st.none() | any_values.structs(SavedView))
    return trace, SavedExtras(tuple(branches), current, batch, seen)


def as_saved(trace: Trace) -> Trace:
    """With names in place of paths: those are of one machine."""
    card = msgspec.structs.replace(trace.card, name=bare_name(trace.card.name), path="")
    asked = msgspec.structs.replace(trace.request, model=trace.model_name)
    return replace(trace, card=card, request=asked)


@large
@given(sessions())
def test_any_session_comes_back_as_it_was(
    tmp_path: Path, session: tuple[Trace, SavedExtras]
) -> None:
    trace, beside = session
    dxt.save(trace, tmp_path / "any.dxt", beside)
    back, found = dxt.load_whole(tmp_path / "any.dxt")
    assert same(back, as_saved(trace))
    assert found.current == beside.current
    assert same(found.batch, beside.batch)
    assert found.seen == beside.seen
    assert [one.name for one in found.branches] == [one.name for one in beside.branches]
    for ours, theirs in zip(found.branches, beside.branches, strict=True):
        assert same(ours.trace.steps, theirs.trace.steps)
        assert ours.trace.chosen == theirs.trace.chosen
    said = dxt.outline(tmp_path / "any.dxt")
    assert (said.model, said.tokens) == (back.card.name, len(back.chosen))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "sound.dxt"
    dxt.save(made_trace(2), path, SavedExtras((Sibling("A", made_trace(1)),), 0))
    return path.read_bytes()


def read(path: Path, raw: bytes) -> None:
    """A session or the one error, in one line that names the file; its outline likewise."""
    path.write_bytes(raw)
    with suppress(dxt.DxtError):
        dxt.outline(path)
    words = str(path)
    try:
        dxt.load_whole(path)
    except dxt.DxtError as error:
        words = str(error)
    assert str(path) in words
    assert "\n" not in words


@one_folder
@given(st.data())
def test_a_damaged_file_is_a_session_or_the_one_error(
    tmp_path: Path, sound: bytes, data: st.DataObject
) -> None:
    head = 8 + int.from_bytes(sound[:8], "little")
    read(tmp_path / "damaged.dxt", data.draw(any_values.damaged(sound, head)))


@one_folder
@given(st.data())
def test_a_file_with_any_value_in_any_place_is_a_session_or_the_one_error(
    tmp_path: Path, sound: bytes, data: st.DataObject
) -> None:
    head = 8 + int.from_bytes(sound[:8], "little")
    header = msgspec.json.decode(sound[8:head])
    body = msgspec.json.decode(header["__metadata__"][dxt.KEY])
    inside = data.draw(st.sampled_from((header, body)))
    while True:
        key = data.draw(st.sampled_from(list(inside)))
        if not isinstance(inside[key], dict) or not inside[key] or data.draw(st.booleans()):
            break
        inside = inside[key]
    inside[key] = data.draw(any_values.SHAPELESS)
    if isinstance(header.get("__metadata__"), dict) and dxt.KEY in header["__metadata__"]:
        header["__metadata__"][dxt.KEY] = msgspec.json.encode(body).decode()
    raw = msgspec.json.encode(header)
    read(tmp_path / "odd.dxt", len(raw).to_bytes(8, "little") + raw + sound[head:])


@one_folder
@given(st.binary(max_size=100))
def test_any_bytes_are_no_session(tmp_path: Path, raw: bytes) -> None:
    read(tmp_path / "bytes.dxt", raw)
    read(tmp_path / "json.dxt", len(raw).to_bytes(8, "little") + raw)
