"""A .gguf opened as it is: a child runs it, and whatever becomes of the child is told."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import gguf as gguf_file
import pytest

from explorer.engine import light_imports
from explorer.engine.relay import llama_process, relay
from explorer.trace.card import ModelCard
from explorer.trace.request import RunRequest
from explorer.trace.wire import messages as m
from explorer.trace.wire.messages import Event
from tests.engine import folders
from tests.engine.local_engine import LocalEngine
from tests.engine.test_serve import Client
from tests.processes import ends
from tests.session import scripted

Q = gguf_file.GGMLQuantizationType

FAKE = Path(__file__).with_name("fake_llama.py")
ADVANCE = m.Advance(run=2, request=RunRequest(prompt="x"), steps=3)


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PYTHONPATH", str(FAKE.parents[3]))
    monkeypatch.setattr(llama_process, "COMMAND", (sys.executable, str(FAKE)))
    monkeypatch.setattr(relay, "PACKAGE", "json")  # one that is installed
    monkeypatch.setattr(llama_process, "PATIENCE_SECONDS", 0.5)


@pytest.fixture
def client() -> Iterator[Client]:
    engine = LocalEngine()
    client = Client(engine.send)
    engine.start(client.events.put)
    yield client
    engine.close()


@pytest.fixture
def gguf(tmp_path: Path) -> Callable[[str], str]:
    def write(name: str) -> str:
        path = tmp_path / f"{name}.gguf"
        if not path.exists():
            path.write_bytes(b"GGUF")
        return str(path)

    return write


def opened(client: Client, model: str, **how: object) -> ModelCard:
    found = client.ask(m.Load(run=1, model=model, **{"form": "as-is", **how}))[-1]  # type: ignore[arg-type]
    assert isinstance(found, m.Loaded), found
    return found.card


def refused(client: Client, request: m.AnyRequest) -> m.Failed:
    found = client.ask(request)[-1]
    assert isinstance(found, m.Failed), found
    return found


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_the_card_says_which_file_and_how_it_is_open(
    client: Client, gguf: Callable[[str], str]
) -> None:
    card = opened(client, gguf("good"))
    assert (card.name, card.path, card.form) == ("good", gguf("good"), "as-is")
    assert (card.versions["model"], card.versions["form"]) == (gguf("good"), "as-is")


def test_requests_go_to_the_child_under_their_own_numbers(
    client: Client, gguf: Callable[[str], str]
) -> None:
    opened(client, gguf("good"))
    assert kinds(client.ask(ADVANCE)) == ["Prompted", *["Stepped"] * 3, "Finished"]
    assert client.ask(m.MeasureTraffic(run=3))[-1] == m.Facts(run=3, facts={"from": "child"})
    check = client.ask(m.CheckTrace(run=4, request=RunRequest()))[-1]
    assert check == m.Finished(run=4, reason="CheckTrace")


def test_tokens_are_told_and_a_cancel_is_heard_during_a_run(
    client: Client, gguf: Callable[[str], str]
) -> None:
    opened(client, gguf("endless"))
    client.send(ADVANCE)
    while not isinstance(client.events.get(timeout=30), m.Stepped):
        pass
    assert client.ask(m.Tokenize(run=3, request=RunRequest(prompt="cat")))[-1] == m.Tokens(
        run=3, text="cat", tokens=()
    )
    client.send(m.Cancel(run=2))
    assert client.until_end(2)[-1] == m.Finished(run=2, reason="cancelled")
    assert isinstance(client.ask(m.MeasureTraffic(run=4))[-1], m.Facts)


def test_a_request_cancelled_before_its_turn_is_not_run(
    client: Client, gguf: Callable[[str], str]
) -> None:
    opened(client, gguf("endless"))
    client.send(ADVANCE)
    client.send(m.Advance(run=3, request=RunRequest(prompt="x"), steps=3))
    client.send(m.Cancel(run=3))
    client.send(m.Cancel(run=2))
    assert kinds(client.until_end(3)) == ["Finished"]


def test_a_folder_opened_next_ends_the_child(
    client: Client, gguf: Callable[[str], str], tmp_path: Path
) -> None:
    pid = int(opened(client, gguf("good")).versions["pid"])
    folders.write_folder(tmp_path / "tiny", folders.model(eos_token_id=None))
    card = opened(client, str(tmp_path / "tiny"), form="")
    assert (card.name, card.form) == ("tiny", "")
    assert ends(pid)
    assert isinstance(client.ask(ADVANCE)[-1], m.Finished)


def test_the_old_file_stays_open_until_the_new_one_is(
    client: Client, gguf: Callable[[str], str]
) -> None:
    first = opened(client, gguf("good"))
    said = refused(client, m.Load(run=5, model=gguf("refused"), form="as-is"))
    assert said.sentence == "llama.cpp has no such architecture."
    assert isinstance(client.ask(m.MeasureTraffic(run=6))[-1], m.Facts)
    again = opened(client, gguf("good"), keep=True)
    assert again.versions["pid"] == first.versions["pid"], "it was open still"
    other = opened(client, gguf("better"))
    assert other.versions["pid"] != first.versions["pid"]
    assert ends(int(first.versions["pid"]))


def test_a_crash_is_a_sentence_and_the_next_step_opens_the_file_again(
    client: Client, gguf: Callable[[str], str]
) -> None:
    card = opened(client, gguf("endless"))
    client.send(ADVANCE)
    while not isinstance(client.events.get(timeout=30), m.Stepped):
        pass
    os.kill(int(card.versions["pid"]), signal.SIGSEGV)
    said = client.until_end(2)[-1]
    assert isinstance(said, m.Failed)
    assert said.sentence == (
        "llama.cpp stopped unexpectedly (signal 11) while it ran endless.gguf. Nothing computed "
        "before is lost. Try again to reopen the file, or open it as float32."
    )
    background = refused(client, m.MeasureTraffic(run=3))
    assert "Step again to reopen" in background.sentence
    assert (
        refused(client, m.Tokenize(run=4, request=RunRequest(prompt="cat"))).sentence
        == background.sentence
    )
    client.send(m.Advance(run=5, request=RunRequest(prompt="x"), steps=3))
    while not isinstance(client.events.get(timeout=30), m.Stepped):
        pass
    client.send(m.Cancel(run=5))
    assert client.until_end(5)[-1] == m.Finished(run=5, reason="cancelled")


def test_a_file_that_crashes_it_is_not_opened_again_unasked(
    client: Client, gguf: Callable[[str], str]
) -> None:
    load = m.Load(run=1, model=gguf("crashes"), form="as-is")
    crash = refused(client, load)
    assert crash.sentence == (
        "llama.cpp stopped unexpectedly (signal 11) while it opened crashes.gguf. Open the file as "
        "float32."
    )
    assert not crash.bad_input
    assert "has crashed on crashes.gguf before" in refused(client, load).sentence
    assert (
        "signal 11"
        in refused(client, m.Load(run=1, model=load.model, form="as-is", anew=True)).sentence
    )
    Path(load.model).write_bytes(b"GGUF" * 2)
    assert "signal 11" in refused(client, load).sentence, "another file of this name"


def test_a_child_that_obeys_no_cancel_is_ended(client: Client, gguf: Callable[[str], str]) -> None:
    card = opened(client, gguf("stuck"))
    client.send(ADVANCE)
    while not isinstance(client.events.get(timeout=30), m.Prompted):
        pass
    client.send(m.Cancel(run=2))
    assert client.until_end(2)[-1] == m.Finished(run=2, reason="cancelled")
    assert ends(int(card.versions["pid"]))
    assert isinstance(client.ask(m.MeasureTraffic(run=3))[-1], m.Facts), "by another child"


def test_a_file_written_over_is_told(client: Client, gguf: Callable[[str], str]) -> None:
    opened(client, gguf("good"))
    Path(gguf("good")).write_bytes(b"GGUF and more")
    said = refused(client, ADVANCE)
    assert said.files_changed
    assert isinstance(opened(client, gguf("good")), ModelCard)


def test_what_can_not_be_opened_as_it_is(
    client: Client, gguf: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        "copycat is not a .gguf file"
        in refused(client, m.Load(run=1, model="copycat", form="as-is")).sentence
    )
    monkeypatch.setattr(relay, "PACKAGE", "no_such_package")
    assert (
        "is not installed"
        in refused(client, m.Load(run=1, model=gguf("good"), form="as-is")).sentence
    )


def test_in_its_usual_form_a_file_that_llama_cpp_refuses_is_converted(
    client: Client, gguf: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opened(client, gguf("good"), form="").form == "as-is"
    for file in ("refused", "good"):
        request = m.Load(
            run=1, model=gguf(file), dtype="float32" if file == "refused" else "bfloat16"
        )
        assert "is not a whole GGUF file" in refused(client, request).sentence, "torch's own words"


@pytest.fixture
def whole(tmp_path: Path) -> str:
    """A file that torch can open, too."""
    return str(folders.write_gguf(tmp_path / "whole.gguf", folders.model(), Q.Q8_0))


def test_a_pass_in_the_other_form_leaves_the_open_one_open(client: Client, whole: str) -> None:
    card = opened(client, whole)
    pid = int(card.versions["pid"])
    request = RunRequest(prompt="the cat", form="float32")
    by_torch = client.ask(m.Recapture(run=5, request=request, chosen=()))
    assert kinds(by_torch)[-2:] == ["Stepped", "Finished"], by_torch[-1]
    assert isinstance(by_torch[-2], m.Stepped)
    assert len(by_torch[-2].step.logits) != scripted.VOCABULARY, "not the fake's"
    assert client.ask(m.MeasureTraffic(run=6))[-1] == m.Facts(run=6, facts={"from": "child"})
    opened(client, whole, form="float32")
    assert ends(pid)
    request = RunRequest(prompt="the cat", form="as-is")
    as_is = client.ask(m.Recapture(run=7, request=request, chosen=()))
    assert isinstance(as_is[-2], m.Stepped)
    assert len(as_is[-2].step.logits) == scripted.VOCABULARY
    own = client.ask(m.Advance(run=8, request=RunRequest(prompt="the cat", form="float32")))
    assert isinstance(own[-2], m.Stepped)
    assert len(own[-2].step.logits) != scripted.VOCABULARY


def test_opening_can_be_cancelled_while_torch_is_imported(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gate = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        gate.wait(30)

    monkeypatch.setattr(light_imports, "load", slow)
    client.send(m.Load(run=1, model="copycat"))
    assert begun.wait(30)
    client.send(m.Cancel(run=1))
    assert client.until_end(1)[-1] == m.Finished(run=1, reason="cancelled")
    gate.set()
