"""A padded batch as a wish: one job among the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.session.jobs.prompt_list import PromptListError, read_prompts
from explorer.trace.batch import BatchRequest
from explorer.trace.wire import messages as m
from tests.session.scripted import Stage
from tests.trace.batches import result, row

ASKED = BatchRequest(prompts=("a", "b c"), padding="right", steps=2)
DONE = result(row(2), row(4))


def run(stage: Stage) -> int:
    stage.session.batches.run(ASKED)
    asked = stage.engine.last(m.RunBatch)
    assert asked.batch == ASKED
    return asked.run


def test_a_batch_runs_and_the_trace_on_screen_stays(stage: Stage) -> None:
    stage.loaded().ran(2)
    trace = stage.state.trace
    number = run(stage)
    assert stage.state.status.activity == "running"
    stage.say(m.Progress(run=number, text="Decoding", fraction=0.5))
    assert (stage.state.status.text, stage.state.status.fraction) == ("Decoding", 0.5)
    stage.say(m.Batched(run=number, result=DONE))
    assert stage.state.batch == DONE
    assert stage.state.status.activity == "idle"
    assert stage.state.trace is trace


def test_a_batch_takes_the_engine_from_a_run_and_gives_way_to_the_next(stage: Stage) -> None:
    stage.loaded().session.run()
    advance = stage.engine.last(m.Advance).run
    number = run(stage)
    assert m.Cancel(run=advance) in stage.engine.asked
    stage.session.step()
    assert m.Cancel(run=number) in stage.engine.asked
    stage.say(m.Batched(run=number, result=DONE))  # stale by now
    assert stage.state.batch is None
    assert stage.state.status.activity == "running"


@pytest.mark.parametrize("wish", ["cancel", "pause"])
def test_a_batch_can_be_ended(stage: Stage, wish: str) -> None:
    stage.loaded()
    number = run(stage)
    getattr(stage.session, wish)()
    assert m.Cancel(run=number) in stage.engine.asked
    assert stage.state.status.activity == "idle"
    stage.say(m.Finished(run=number, reason="cancelled"))
    assert stage.state.error == ""


def test_a_batch_that_cannot_be_run_is_a_sentence(stage: Stage) -> None:
    stage.loaded()
    number = run(stage)
    stage.say(m.Failed(run=number, sentence="Prompt 2 has no tokens.", details="x"))
    assert stage.state.error == "Prompt 2 has no tokens."
    assert stage.state.status.activity == "idle"
    assert stage.state.batch is None


def test_without_an_open_model_it_says_so(stage: Stage) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.batches.run(ASKED)
    assert "Open one" in stage.state.error
    assert stage.engine.count(m.RunBatch) == 0
    stage.session.open_model("tiny")  # still loading
    stage.session.batches.run(ASKED)
    assert stage.engine.count(m.RunBatch) == 0


def test_half_a_character_is_refused_before_it_is_sent(stage: Stage) -> None:
    stage.loaded().session.batches.run(BatchRequest(prompts=("a", "b\ud800")))
    assert "U+D800" in stage.state.error
    assert stage.engine.count(m.RunBatch) == 0


def test_another_model_has_no_batch_yet(stage: Stage) -> None:
    stage.loaded()
    stage.say(m.Batched(run=run(stage), result=DONE))
    stage.session.open_model("other")
    assert stage.state.batch is DONE  # until the other is open
    stage.answer_load(name="other")
    assert stage.state.batch is None


def test_the_engine_dies_under_a_batch(stage: Stage) -> None:
    stage.loaded()
    run(stage)
    stage.say(m.Lost(sentence="The engine is gone."))
    assert stage.state.status.activity == "lost"
    stage.session.batches.run(ASKED)
    assert "Open one" in stage.state.error


# -- prompts from a file


def test_prompts_are_lines_or_a_json_list(tmp_path: Path) -> None:
    file = tmp_path / "p"
    file.write_bytes("\ufeffone\r\n  two \x0c\n\nthree".encode())
    assert read_prompts(file) == ("one", "  two \x0c", "", "three")
    file.write_text(json.dumps(["a\nb", "c"]))
    assert read_prompts(file) == ("a\nb", "c")
    file.write_text(' [ "a" , "b" ]\n')
    assert read_prompts(file) == ("a", "b")


@pytest.mark.parametrize("line", ["[1, 2]", "[INST] hi", "[[Paris]] is", "[not json", "[x]"])
def test_a_prompt_may_begin_with_a_bracket(tmp_path: Path, line: str) -> None:
    file = tmp_path / "p"
    file.write_text(f"{line}\nthe cat\n")
    assert read_prompts(file) == (line, "the cat")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has 0 prompts"),
        (b"\n", "has 0 prompts"),
        (b"a\n" * 17, "has 17 prompts"),
        (b"a\xff", "not UTF-8"),
        (b'["\\udc00"]', "U+DC00"),
        (b'["a", "b"', "starts as a JSON list but is none"),
        (b'["a"\nb', "starts as a JSON list but is none"),
        (b'["a", 5]', "holds more than texts"),
        (b'[{"role": "user", "content": "a"}]', "holds more than texts"),
        (b"[]", "has 0 prompts"),
    ],
)
def test_files_that_are_no_prompts(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "p"
    file.write_bytes(content)
    with pytest.raises(PromptListError, match=words.replace("+", r"\+")):
        read_prompts(file)
    with pytest.raises(PromptListError, match="could not be read"):
        read_prompts(tmp_path)
