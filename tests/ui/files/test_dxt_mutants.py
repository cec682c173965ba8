"""Files changed by chance: each is refused in a sentence, or opens and shows without a fault."""

from __future__ import annotations

import json
import random
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from explorer.trace.files import dxt
from explorer.ui.panel.paged_panel import PagedPanel
from tests.session.scripted import cut_last
from tests.trace import leaves
from tests.trace.files.test_bounds import whole
from tests.ui.stage import WindowStage

# Queries of 1e38 overflow; what is drawn of them is looked at here, not how numpy worked it out.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
ODD: tuple[Any, ...] = (
    0, 1, -1, 7, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**64, 10**40, 0.5, -0.0, 1e-300, 1e308,
    -1e308, True, None, "", "x", "\x1b[31m\u202e", "<b>&lt;", "\ud800", "y" * 5000, [], {}, [[]],
    {"not finite": "nan"}, {"not finite": "-inf"},
)  # fmt: skip


@pytest.fixture
def sound(tmp_path: Path) -> bytes:
    trace, beside = whole()
    dxt.save(trace, tmp_path / "sound.dxt", beside)
    return (tmp_path / "sound.dxt").read_bytes()


class Faults:
    """What nobody caught while a file was open."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        self.found.append(f"{kind.__name__}: {error}")


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    faults = Faults()
    monkeypatch.setattr(sys, "excepthook", faults)
    monkeypatch.setattr(
        threading, "excepthook", lambda a: faults(a.exc_type, a.exc_value, a.exc_traceback)
    )
    return faults


def parts(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", data[:8])
    head = json.loads(data[8 : 8 + length])
    return head, json.loads(head["__metadata__"][dxt.KEY]), data[8 + length :]


def places(value: Any, at: leaves.Path = ()) -> Iterator[leaves.Path]:
    """Where anything is inside JSON."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in inside:
        yield (*at, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*at, key))


def mutant(data: bytes, dice: random.Random) -> bytes:
    """The file with one thing about it changed."""
    kind = dice.choice(("bits", "bits in the arrays", "field", "field", "field", "array", "length"))
    (length,) = struct.unpack("<Q", data[:8])
    if kind.startswith("bits"):
        changed = bytearray(data)
        first = 8 + length if kind.endswith("arrays") else 0
        for _ in range(dice.choice((1, 1, 3, 16))):
            changed[dice.randrange(first, len(data))] ^= 1 << dice.randrange(8)
        return bytes(changed)
    if kind == "length":
        cut = dice.randrange(len(data))
        return dice.choice((data[:cut], data + data[:cut], data[:cut] + data[cut + 1 :]))
    head, body, arrays = parts(data)
    if kind == "field":
        leaves.put(body, dice.choice(list(places(body))), dice.choice(ODD))
    else:
        leaves.put(head, dice.choice([at for at in places(head) if at[0] != "__metadata__"]),
                   dice.choice(ODD))  # fmt: skip
    head["__metadata__"][dxt.KEY] = json.dumps(body)
    raw = json.dumps(head).encode()
    return struct.pack("<Q", len(raw)) + raw + arrays


def turn_pages(stage: WindowStage) -> None:
    """Every panel, and of those with several pages each page."""
    for dock in stage.window.docks.docks:
        stage.window.docks.bring_up(dock.place.id)
        if isinstance(dock.panel, PagedPanel):
            for page in dock.panel._pages_in_order():
                dock.panel.turn_to(type(page))
                stage.paint()
        stage.until_settled()


def show(stage: WindowStage, path: Path, faults: Faults) -> bool:
    """Open one file; True if it opened.  What was wrong is in `faults`."""
    stage.session.report("")
    before = stage.state.trace
    arrived = threading.Event()
    stage.session.saving.open(path)
    stage.session.saving.files.do(lambda: arrived.set, pytest.fail, "settling")
    while not arrived.is_set():
        stage.drain()
    stage.until_settled()
    said = stage.state.error
    if said:
        assert stage.state.trace is before, "what is refused changes nothing"
        assert "\n" not in said
        return False
    turn_pages(stage)
    trace = stage.state.trace
    for step in range(0 if trace is None else len(trace.steps)):
        stage.session.select(step=step, layer=step, head=1, query=0)
        stage.until_settled()
    if trace is not None:
        cut_last(stage.session)
        stage.until_settled()
    stage.session.reset()
    return True


def campaign(
    stage: WindowStage, path: Path, sound: bytes, faults: Faults, seeds: range
) -> tuple[int, dict[int, list[str]]]:
    """How many of the seeds' files opened, and what went wrong with which."""
    opened, wrong = 0, {}
    for seed in seeds:
        path.write_bytes(mutant(sound, random.Random(seed)))
        faults.found.clear()
        try:
            opened += show(stage, path, faults)
        except Exception as error:
            faults.found.append(f"{type(error).__name__}: {error}")
        if faults.found:
            wrong[seed] = list(faults.found)
    return opened, wrong


def test_some_files_changed_by_chance(
    stage: WindowStage, tmp_path: Path, sound: bytes, faults: Faults
) -> None:
    opened, wrong = campaign(stage, tmp_path / "mutant.dxt", sound, faults, range(60))
    assert wrong == {}
    assert 5 < opened < 55, "some are sound still, most are not"


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_files_changed_by_chance(
    stage: WindowStage, tmp_path: Path, sound: bytes, faults: Faults
) -> None:
    opened, wrong = campaign(stage, tmp_path / "mutant.dxt", sound, faults, range(60, 6000))
    assert wrong == {}
    assert opened > 500
