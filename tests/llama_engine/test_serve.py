"""The llama engine as the engine meets it: a process of its own that speaks frames."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypeVar

import pytest

from explorer import smollm2
from explorer.trace.engine_request import Request
from explorer.trace.interventions.kinds import Silence
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.wire import framing, messages
from explorer.trace.wire.messages import AnyRequest, Event
from tests.llama_engine import tiny_gguf

COMMAND = [sys.executable, "-m", "explorer", "llama-engine"]
PROMPT = "The cat sat on the mat"
E = TypeVar("E", bound=Event)


class Child:
    """The process, asked one thing after the other."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ}
        )
        hello = framing.read_event(self.answers)
        assert isinstance(hello, messages.Hello)
        self.versions = hello.versions

    @property
    def answers(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def send(self, request: AnyRequest) -> None:
        assert self.process.stdin is not None
        framing.write_request(self.process.stdin, request)

    def read(self, run: int) -> Event:
        """The next event of this run; what only says that the engine lives is passed over."""
        while True:
            event = framing.read_event(self.answers)
            assert event is not None, "the process ended"
            if event.run == run and not isinstance(event, messages.Alive):
                return event

    def until_end(self, run: int) -> list[Event]:
        found: list[Event] = []
        while not found or not isinstance(found[-1], messages.ENDS):
            found.append(self.read(run))
        return found

    def ask(self, request: AnyRequest) -> list[Event]:
        self.send(request)
        return self.until_end(request.run)

    def close(self) -> None:
        self.send(messages.Quit())
        self.process.communicate(timeout=30)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf.write(tmp_path_factory.mktemp("models") / "tiny.gguf", "llama", kind="Q8_0")


@pytest.fixture(scope="module")
def child(file: Path) -> Iterator[Child]:
    found = Child()
    loaded = found.ask(messages.Load(run=1, model=str(file), threads=1))[-1]
    assert isinstance(loaded, messages.Loaded), loaded
    yield found
    found.close()
    assert found.process.returncode == 0


def one(events: list[Event], kind: type[E]) -> E:
    (found,) = [event for event in events if isinstance(event, kind)]
    return found


def failed(events: list[Event]) -> messages.Failed:
    return one(events, messages.Failed)


def test_a_run_step_by_step_and_why_it_ended(child: Child) -> None:
    events = child.ask(messages.Advance(run=2, request=RunRequest(prompt=PROMPT), steps=3))
    prompted = one(events, messages.Prompted)
    assert b"".join(t.raw for t in prompted.tokens if not t.special).strip() == PROMPT.encode()
    stepped = [event for event in events if isinstance(event, messages.Stepped)]
    assert [event.step.phase for event in stepped] == ["prefill", "decode", "decode"]
    assert all(record.kind == "qk" for event in stepped for record in event.step.layers)
    assert stepped[0].step.cache_bytes > 0
    assert events[-1] == messages.Finished(run=2, reason="steps")
    drawn = Sampling(greedy=False, temperature=2.0, seed=3)
    again = child.ask(
        messages.Advance(run=3, request=RunRequest(prompt=PROMPT), steps=1, sampling=drawn)
    )
    assert one(again, messages.Stepped).step.draw.how == "drawn"


def test_cancel_ends_a_run_and_the_next_one_works(child: Child) -> None:
    child.send(messages.Advance(run=4, request=RunRequest(prompt=PROMPT), steps=10**6))
    while not isinstance(child.read(4), messages.Stepped):
        pass
    child.send(messages.Cancel(run=4))
    assert child.until_end(4)[-1] in (
        messages.Finished(run=4, reason="cancelled"),
        messages.Finished(run=4, reason="context"),
    )
    events = child.ask(messages.Advance(run=5, request=RunRequest(prompt=PROMPT), steps=1))
    assert one(events, messages.Stepped)


def test_tokens_recapture_check_and_vocabulary(child: Child) -> None:
    tokens = one(
        child.ask(messages.Tokenize(run=6, request=RunRequest(prompt=PROMPT))), messages.Tokens
    )
    assert tokens.tokens
    request = RunRequest(prompt=PROMPT)
    again = child.ask(messages.Recapture(run=7, request=request, chosen=(5,)))
    assert one(again, messages.Stepped).step.phase == "decode"
    checks = child.ask(messages.CheckTrace(run=8, request=request))
    found = [event.check for event in checks if isinstance(event, messages.Checked)]
    assert {check.name for check in found} >= {"kernel_output", "row_sums", "upper_triangle"}
    assert all(check.passed for check in found)
    spelled = one(child.ask(messages.ListVocabulary(run=9)), messages.Spelled)
    assert len(spelled.vocabulary) == len(again[-2].step.logits)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "request_",
    [
        messages.Advance(run=20, request=RunRequest(prompt=PROMPT, padding="left", pad=3)),
        messages.Advance(run=20, request=RunRequest(prompt="x"), chosen=(10**6,)),
        messages.Advance(run=20, request=RunRequest(prompt="x", interventions=(Silence(layer=9),))),
        messages.Inspect(run=20, model="x"),
    ],
    ids=["padding", "no such token", "no such layer", "a question for the engine"],
)
def test_what_is_not_possible_is_one_sentence(child: Child, request_: Request) -> None:
    answer = failed(child.ask(request_))  # type: ignore[arg-type]
    assert answer.bad_input
    assert answer.sentence.endswith(".")


def test_a_file_that_changed_is_opened_again(tmp_path: Path) -> None:
    file = tiny_gguf.write(tmp_path / "tiny.gguf", "llama")
    child = Child()
    child.ask(messages.Load(run=1, model=str(file)))
    tiny_gguf.write(file, "llama", seed=1)
    events = child.ask(messages.Advance(run=2, request=RunRequest(prompt=PROMPT)))
    assert failed(events).files_changed
    assert one(child.ask(messages.Load(run=3, model=str(file))), messages.Loaded)
    child.close()


@pytest.mark.parametrize("bytes_", [b"", b"GGUF", b"something else entirely" * 9])
def test_what_is_no_model_is_one_sentence(tmp_path: Path, bytes_: bytes) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(bytes_)
    child = Child()
    assert failed(child.ask(messages.Load(run=1, model=str(path)))).bad_input
    child.close()


@pytest.mark.smollm2
def test_smollm2_as_it_is_says_paris() -> None:
    child = Child()
    loaded = one(
        child.ask(messages.Load(run=1, model=str(smollm2.path()), threads=1)), messages.Loaded
    )
    assert (loaded.card.dtype, loaded.card.stored_dtype) == ("Q4_1", "Q4_1 79 %, Q8_0 21 %")
    closed = {c.name for c in loaded.card.capabilities if not c.offered}
    patches = {"patch_heads", "patch_mlp", "patch_stream"}
    assert closed == {"left_padding", "right_padding", *patches, "evict", "sink_distances"}
    request = RunRequest(prompt="The capital of France is")
    answers = child.ask(messages.Advance(run=2, request=request, steps=3))
    steps = [event for event in answers if isinstance(event, messages.Stepped)]
    assert steps[0].token.raw == b" Paris"
    assert steps[0].step.draw.raw_probability == pytest.approx(0.766, abs=0.01)
    chosen = tuple(step.token.id for step in steps)
    checked = child.ask(messages.CheckTrace(run=3, request=request, chosen=chosen))
    checks = [event.check for event in checked if isinstance(event, messages.Checked)]
    assert len(checks) == 6
    assert all(check.passed for check in checks), checks
    child.close()


def test_torch_is_not_imported() -> None:
    code = (
        "import sys, explorer.llama_engine.serve as s;"
        "found = {'torch', 'transformers', 'tokenizers', 'tiktoken', 'PySide6'} & set(sys.modules);"
        "sys.exit(f'imported {found}' if found else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
