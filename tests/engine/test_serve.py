"""The engine as its clients meet it: in this process, and in a child process over pipes."""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from explorer.trace.found_models import Library, Recipe
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.wire import framing, messages
from explorer.trace.wire.messages import AnyRequest, Event
from tests.engine import folders
from tests.engine.local_engine import LocalEngine

PROMPT = "the cat sat on the mat"
ENDS = (messages.Finished, messages.Failed, messages.Loaded, messages.Facts, messages.Tokens)


class Client:
    """Sends requests and collects what belongs to each run until it ends."""

    def __init__(self, send: Callable[[AnyRequest], None]) -> None:
        self.events: queue.Queue[Event | None] = queue.Queue()
        self.send = send

    def ask(self, request: AnyRequest) -> list[Event]:
        self.send(request)
        return self.until_end(request.run)

    def until_end(self, run: int) -> list[Event]:
        found: list[Event] = []
        while True:
            event = self.events.get(timeout=60)
            assert event is not None, "the engine ended"
            if event.run != run or isinstance(event, messages.Hello):
                continue
            found.append(event)
            if isinstance(event, ENDS):
                return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    folders.write_folder(folder, folders.model(eos_token_id=None))
    return str(folder)


@pytest.fixture
def local(model: str) -> Iterator[Client]:
    engine = LocalEngine()
    client = Client(engine.send)
    engine.start(client.events.put)
    loaded = client.ask(messages.Load(run=1, model=model))[-1]
    assert isinstance(loaded, messages.Loaded), loaded
    yield client
    engine.close()
    assert not engine.alive


def tokens_of(events: list[Event]) -> list[int]:
    return [e.token.id for e in events if isinstance(e, messages.Stepped)]


def test_load_prompt_steps_and_why_it_stopped(local: Client, model: str) -> None:
    events = local.ask(messages.Advance(run=2, request=RunRequest(prompt=PROMPT), steps=3))
    prompted = events[0]
    assert isinstance(prompted, messages.Prompted)
    assert b"".join(t.raw for t in prompted.tokens) == PROMPT.encode()
    assert len(tokens_of(events)) == 3
    assert events[-1] == messages.Finished(run=2, reason="steps")


def test_going_on_needs_only_the_context(local: Client, model: str) -> None:
    request = RunRequest(prompt=PROMPT)
    whole = tokens_of(local.ask(messages.Advance(run=2, request=request, steps=4)))
    local.ask(messages.Load(run=3, model=model))  # as after a crash: nothing is remembered
    rest = local.ask(messages.Advance(run=4, request=request, chosen=tuple(whole[:2]), steps=2))
    assert tokens_of(rest) == whole[2:]
    step = next(e.step for e in rest if isinstance(e, messages.Stepped))
    assert (step.phase, step.positions_processed) == ("decode", 1)
    assert step.rebuilt_tokens > 0
    assert "rebuilt by prefill" in step.note


def test_cancel_from_another_thread_ends_the_run(local: Client) -> None:
    local.send(messages.Advance(run=5, request=RunRequest(prompt=PROMPT), steps=10**6))
    while not isinstance(local.events.get(timeout=60), messages.Stepped):
        pass
    local.send(messages.Cancel(run=5))
    rest = local.until_end(5)
    assert rest[-1] == messages.Finished(run=5, reason="cancelled")
    again = local.ask(messages.Advance(run=6, request=RunRequest(prompt=PROMPT), steps=1))
    assert len(tokens_of(again)) == 1


def test_sampling_can_change_in_mid_run(local: Client) -> None:
    local.send(messages.Advance(run=7, request=RunRequest(prompt=PROMPT), steps=60))
    hot = Sampling(greedy=False, temperature=1.9, seed=4)
    local.send(messages.Resample(run=7, sampling=hot))
    steps = [e.step for e in local.until_end(7) if isinstance(e, messages.Stepped)]
    assert steps[-1].sampling == hot
    assert steps[-1].draw.how == "drawn"


def test_tokenize_answers_while_a_pass_is_running(local: Client) -> None:
    local.send(messages.Advance(run=8, request=RunRequest(prompt=PROMPT), steps=40))
    local.send(messages.Tokenize(run=9, request=RunRequest(prompt="cat 👩‍🚀")))
    order = []
    while True:
        event = local.events.get(timeout=60)
        assert event is not None
        order.append(event)
        if isinstance(event, messages.Finished):
            break
    tokens = next(e for e in order if isinstance(e, messages.Tokens))
    assert b"".join(t.raw for t in tokens.tokens) == "cat 👩‍🚀".encode()
    assert order.index(tokens) < len(order) - 2


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (messages.Load(run=9, model="/no/such/folder"), "no"),
        (messages.Advance(run=9, request=RunRequest(prompt="")), "empty"),
        (
            messages.Advance(
                run=9, request=RunRequest(prompt="a"), sampling=Sampling(greedy=False, top_p=7)
            ),
            "Top-p",
        ),
        (messages.Inspect(run=9, model="/no/such/folder"), "no"),
    ],
)
def test_bad_input_is_one_sentence(local: Client, request_: Any, words: str) -> None:
    failed = local.ask(request_)[-1]
    assert isinstance(failed, messages.Failed)
    assert failed.bad_input
    assert words.lower() in failed.sentence.lower()
    assert "Traceback" not in failed.sentence
    assert "\n" not in failed.sentence


def test_no_model_loaded_is_said() -> None:
    engine = LocalEngine()
    client = Client(engine.send)
    engine.start(client.events.put)
    try:
        failed = client.ask(messages.Advance(run=1, request=RunRequest(prompt="a")))[-1]
        assert isinstance(failed, messages.Failed)
        assert "No model is open" in failed.sentence
    finally:
        engine.close()


def test_self_check_of_a_run(local: Client) -> None:
    request = RunRequest(prompt=PROMPT)
    chosen = tokens_of(local.ask(messages.Advance(run=2, request=request, steps=3)))
    events = local.ask(messages.CheckTrace(run=3, request=request, chosen=tuple(chosen)))
    checks = [e.check for e in events if isinstance(e, messages.Checked)]
    assert len(checks) >= 7
    assert all(check.passed for check in checks), checks
    # and the cache is still the run's own
    after = local.ask(messages.Advance(run=4, request=request, chosen=tuple(chosen), steps=1))
    assert next(e.step for e in after if isinstance(e, messages.Stepped)).rebuilt_tokens == 0


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "explorer", "engine"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    yield process
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):
            stream.close()


def said(child: subprocess.Popen[bytes]) -> Event:
    """What the child says next, but that it is there."""
    pipe: Any = child.stdout
    while isinstance(event := framing.read_event(pipe), messages.Alive):
        pass
    assert event is not None
    return event


def test_the_child_process_speaks_frames_and_leaves_when_told(
    child: subprocess.Popen[bytes], model: str
) -> None:
    assert child.stdin is not None
    hello = said(child)
    assert isinstance(hello, messages.Hello)
    assert hello.versions["torch"].startswith("2.13")
    framing.write_request(child.stdin, messages.Load(run=1, model=model))  # type: ignore[arg-type]
    while not isinstance(event := said(child), messages.Loaded):
        assert isinstance(event, messages.Progress), event
    framing.write_request(  # type: ignore[arg-type]
        child.stdin, messages.Advance(run=2, request=RunRequest(prompt=PROMPT), steps=2)
    )
    kinds = []
    while not isinstance(event := said(child), messages.Finished):
        kinds.append(type(event).__name__)
    assert kinds == ["Prompted", "Stepped", "Stepped"]
    framing.write_request(child.stdin, messages.Quit())  # type: ignore[arg-type]
    assert child.wait(timeout=20) == 0


def test_the_child_leaves_when_its_client_is_gone(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(timeout=30) == 0


def test_garbage_on_stdin_ends_the_child_without_a_traceback(
    child: subprocess.Popen[bytes],
) -> None:
    assert child.stdin is not None
    assert child.stderr is not None
    child.stdin.write(b"GET / HTTP/1.1\r\n\r\n")
    child.stdin.flush()
    assert child.wait(timeout=30) == 0
    assert b"Traceback" not in child.stderr.read()


def test_the_child_says_that_it_is_there_while_it_works(
    child: subprocess.Popen[bytes],
) -> None:
    """Two signs of life, though nothing is asked: the second comes while libraries are imported."""
    pipe: Any = child.stdout
    events = [framing.read_event(pipe) for _ in range(3)]
    assert [type(event) for event in events] == [messages.Hello, messages.Alive, messages.Alive]


def test_an_interrupt_ends_the_child_quietly(child: subprocess.Popen[bytes]) -> None:
    assert child.stdout is not None
    assert child.stderr is not None
    framing.read_event(child.stdout)  # type: ignore[arg-type]
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=30) in (0, 130)
    assert b"Traceback" not in child.stderr.read()


def test_models_are_found_and_described_while_another_loads(
    local: Client, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))
    local.ask(messages.Load(run=1, model=model))
    local.send(
        messages.Advance(run=2, request=RunRequest(model=model, prompt=PROMPT), steps=100000)
    )
    while not isinstance(local.events.get(timeout=60), messages.Stepped):
        pass
    found = local.ask(messages.FindModels(run=3, add_folder=str(Path(model).parent)))[-1]
    described = local.ask(messages.Inspect(run=4, model=model))[-1]
    local.send(messages.Cancel(run=2))
    assert isinstance(found, messages.Facts)
    library = msgspec.convert(found.facts, Library)
    assert "tiny" in {row.name for row in library.models}
    assert library.folders == (str(Path(model).parent),)
    assert isinstance(described, messages.Facts)
    recipe = msgspec.convert(described.facts, Recipe)
    row = next(row for row in library.models if row.name == "tiny")
    assert recipe.parameters == row.parameters
    assert row.memory_bytes["float32"] > row.memory_bytes["bfloat16"]
    gone = local.ask(messages.FindModels(run=5, remove_folder=str(Path(model).parent)))[-1]
    assert isinstance(gone, messages.Facts)
    assert gone.facts["folders"] == []


def test_a_folder_that_is_not_there_is_said(local: Client, tmp_path: Path) -> None:
    answer = local.ask(messages.FindModels(run=1, add_folder=str(tmp_path / "gone")))[-1]
    assert isinstance(answer, messages.Failed)
    assert "no folder" in answer.sentence


def test_a_run_reads_control_tokens_as_the_live_tokens_show(local: Client, model: str) -> None:
    local.ask(messages.Load(run=1, model=model))
    text = "the cat<|im_end|>"
    counts = []
    for run, literal in ((2, False), (4, True)):
        live = local.ask(
            messages.Tokenize(run=run, request=RunRequest(prompt=text, special_as_text=literal))
        )[-1]
        request = RunRequest(model=model, prompt=text, special_as_text=literal)
        prompted = local.ask(messages.Advance(run=run + 1, request=request))[0]
        assert isinstance(live, messages.Tokens)
        assert isinstance(prompted, messages.Prompted)
        assert prompted.tokens == live.tokens
        counts.append(sum(token.special for token in live.tokens))
    assert counts == [1, 0]
