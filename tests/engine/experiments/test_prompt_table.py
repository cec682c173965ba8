"""A list of prompts: each row against the model called by hand, and what can't be run in words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from explorer.engine.errors import Cancelled
from explorer.engine.experiments import prompt_scores, prompt_table
from explorer.engine.experiments.torch_passes import TorchPasses
from explorer.engine.passes.runner import Runner
from explorer.trace.experiments import PromptTable, ScorePrompts
from explorer.trace.request import RunRequest
from tests.engine.experiments.batches import PROMPTS, alone, ids_of, runner_of

ONE, LONG = PROMPTS[0], PROMPTS[1]  # of 1 and of 7 tokens
ANSWER = " 5 9"


def table(
    runner: Runner,
    *prompts: str,
    answer: str = "",
    parts: list[PromptTable] | None = None,
    **more: bool,
) -> PromptTable:
    asked = ScorePrompts(
        request=RunRequest(prompt="not read", padding="left", pad=3, **more),
        prompts=tuple((prompt, answer) for prompt in prompts),
    )
    told = [] if parts is None else parts
    return prompt_table.score_prompts(TorchPasses(runner), asked, lambda *_: None, part=told.append)


def shares(logits: np.ndarray) -> np.ndarray:
    wide = logits.astype(np.float64)
    p: np.ndarray = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_row_is_what_the_model_makes_of_its_prompt_alone(kind: str) -> None:
    runner = runner_of(kind)
    one, long = table(runner, ONE, LONG, answer=ANSWER).rows
    ids, said = ids_of(LONG), ids_of(ANSWER)
    p = shares(alone(runner, [*ids, *said]))
    after = p[len(ids) - 1]
    assert (long.prompt, long.tokens, long.id) == (LONG, len(ids), int(after.argmax()))
    assert long.probability == pytest.approx(after.max(), abs=1e-6)
    own = [-math.log(p[i][ids[i + 1]]) for i in range(len(ids) - 1)]
    assert long.mean_nats == pytest.approx(sum(own) / len(own), abs=1e-5)
    expected = after[said[0]] * p[len(ids)][said[1]]
    assert long.answer == pytest.approx(expected, rel=1e-4)
    assert (one.tokens, one.mean_nats) == (1, None)
    assert long.ms > 0


def test_a_long_row_is_read_out_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of("llama")
    whole = table(runner, LONG, answer=ANSWER).rows[0]
    monkeypatch.setattr(prompt_table, "LOGIT_BYTES", 4 * runner.loaded.card.vocab_size * 3)
    assert prompt_scores.LOGIT_BYTES != prompt_table.LOGIT_BYTES
    found = table(runner, LONG, answer=ANSWER).rows[0]
    assert (found.id, found.tokens) == (whole.id, whole.tokens)
    assert found.mean_nats == pytest.approx(whole.mean_nats, abs=1e-5)
    assert found.answer == pytest.approx(whole.answer, rel=1e-4)


def test_the_rows_that_are_there_are_told_and_a_prompt_too_long_is_a_sentence() -> None:
    runner = runner_of("llama")
    context = runner.loaded.card.context
    parts: list[PromptTable] = []
    found = table(runner, ONE, "5 " * (context + 1), LONG, parts=parts)
    assert [len(part.rows) for part in parts] == [1, 2]
    assert "reads at most" in found.rows[1].problem
    assert found.rows[1].tokens == 0
    assert [bool(row.problem) for row in found.rows] == [False, True, False]
    assert found.rows[2].answer is None


def test_without_the_causal_mask_an_answer_is_not_known() -> None:
    row = table(runner_of("llama"), LONG, answer=ANSWER, causal_mask=False).rows[0]
    assert (row.answer, row.problem) == (None, prompt_table.NOT_CAUSAL)
    assert row.tokens == 7


def test_an_answer_that_shares_a_token_with_the_prompt_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        prompt_table, "answered", lambda request, answer: RunRequest(prompt=f"7 {answer}")
    )
    row = table(runner_of("llama"), LONG, answer=ANSWER).rows[0]
    assert (row.answer, row.problem) == (None, prompt_table.NOT_SPLIT)


def test_an_answer_follows_exactly_and_a_chat_lets_the_assistant_begin() -> None:
    assert prompt_table.answered(RunRequest(prompt="The cat"), " sat").prompt == "The cat sat"
    assert prompt_table.answered(RunRequest(prompt="2+2="), "4").prompt == "2+2=4"
    chat = prompt_table.answered(RunRequest(prompt="Who?", chat=True), "Me")
    assert [(one.role, one.content) for one in chat.messages] == [
        ("user", "Who?"), ("assistant", "Me"),
    ]  # fmt: skip


def test_it_can_be_cancelled() -> None:
    asked = ScorePrompts(request=RunRequest(), prompts=((ONE, ""),))
    with pytest.raises(Cancelled):
        prompt_table.score_prompts(
            TorchPasses(runner_of("llama")), asked, lambda *_: None, lambda: True
        )
