"""The lens against the model taken apart by hand: norm and head on each hidden state."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
import torch

from explorer.engine.callbacks import nobody
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.inside import lens, telling, watched_pass
from explorer.engine.inside.readings import lens_board
from explorer.engine.passes import generate as generating
from explorer.engine.passes.generate import generate
from explorer.engine.passes.runner import Runner
from explorer.trace.inside.lens import LensBoard, ReadLens
from explorer.trace.request import RunRequest, Sampling
from tests.engine.experiments.batches import PROMPTS, alone, ids_of, runner_of

TEXT = PROMPTS[4]


def board(runner: Runner, slots: tuple[int, ...] = (), text: str = TEXT, **more: Any) -> LensBoard:
    asked = ReadLens(request=RunRequest(prompt=text, **more), slots=slots)
    return lens.read(runner, asked, nobody)


def hidden_states(runner: Runner, ids: list[int]) -> tuple[torch.Tensor, ...]:
    """Before each layer and after the last norm."""
    with torch.inference_mode():
        found = runner.model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    states: tuple[torch.Tensor, ...] = found.hidden_states
    return states


def by_hand(runner: Runner, row: int) -> np.ndarray:
    """(T, V) float64 probabilities of llama or gpt2 at one row."""
    model, states = runner.model, hidden_states(runner, ids_of(TEXT))
    norm = model.model.norm if hasattr(model, "model") else model.transformer.ln_f
    with torch.inference_mode():
        logits = model.lm_head(states[row] if row == len(states) - 1 else norm(states[row]))[0]
    shares: np.ndarray = logits.double().softmax(-1).numpy()
    return shares


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_every_row_is_the_stream_through_norm_and_head(kind: str) -> None:
    runner = runner_of(kind)
    found = board(runner)
    assert found.rows == ("embedding", "0", "1", "final")
    assert found.slots == tuple(range(len(ids_of(TEXT))))
    final = by_hand(runner, 3)
    best = final.argmax(-1)
    at = np.arange(len(best))
    for row in range(4):
        p = by_hand(runner, row)
        np.testing.assert_array_equal(found.ids[row, :, 0], p.argmax(-1))
        np.testing.assert_allclose(found.probabilities[row, :, 0], p.max(-1), atol=1e-5)
        entropy = -(p * np.log2(p)).sum(-1)
        np.testing.assert_allclose(found.entropy_bits[row], entropy, atol=1e-3)
        kl = (final * np.log2(final / p)).sum(-1)
        np.testing.assert_allclose(found.kl_to_final_bits[row], kl, atol=1e-3)
        np.testing.assert_allclose(found.probability_of_final[row], p[at, best], atol=1e-5)
        rank = (p > p[at, best][:, None]).sum(-1)
        np.testing.assert_array_equal(found.rank_of_final[row], rank)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2", "gemma3_text", "gpt_oss", "bloom"])
def test_the_last_row_is_the_models_own_prediction_bit_for_bit(kind: str) -> None:
    runner = runner_of(kind)
    found = board(runner)
    assert found.final_gap == 0
    own = torch.tensor(alone(runner, ids_of(TEXT))).softmax(-1).numpy()
    np.testing.assert_allclose(found.probabilities[-1, :, 0], own.max(-1), atol=1e-5)


def test_one_position_is_the_same_as_on_the_whole_board() -> None:
    runner = runner_of("llama")
    whole, one = board(runner), board(runner, (7,))
    assert one.slots == (7,)
    for name in ("ids", "probabilities", "kl_to_final_bits", "rank_of_final"):
        np.testing.assert_allclose(getattr(one, name)[:, 0], getattr(whole, name)[:, 7], atol=1e-4)


def test_the_newest_position_is_read_through_the_runs_cache_which_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = runner_of("llama")
    request = RunRequest(prompt=TEXT)
    generate(runner, runner.prompt(request), (), 1, Sampling, lambda *_: None)
    held, firsts = runner.cache.slots, []

    def forward(*given: Any, **options: Any) -> Any:
        firsts.append(given[3])
        return generating.forward(*given, **options)

    monkeypatch.setattr(watched_pass, "forward", forward)
    last = held - 1
    found = board(runner, (last,))
    assert firsts == [last]
    assert runner.cache.slots == held
    whole = board(runner)
    np.testing.assert_allclose(found.probabilities[:, 0], whole.probabilities[:, last], atol=1e-4)


def test_after_chosen_tokens_and_without_the_mask() -> None:
    runner = runner_of("llama")
    request = RunRequest(prompt=TEXT)
    longer = lens.read(runner, ReadLens(request=request, chosen=(5, 6)), nobody)
    assert longer.slots == tuple(range(len(ids_of(TEXT)) + 2))
    open_mask = board(runner, causal_mask=False)
    assert open_mask.final_gap == 0
    assert np.abs(open_mask.probabilities - longer.probabilities[:, :-2]).max() > 1e-3


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_has_no_column(side: str) -> None:
    runner = runner_of("llama")
    plain, padded = board(runner), board(runner, padding=side, pad=3)
    first = 3 if side == "left" else 0
    assert padded.slots == tuple(slot + first for slot in plain.slots)
    np.testing.assert_allclose(padded.probabilities, plain.probabilities, atol=1e-4)


@pytest.mark.parametrize("logits", [1, 3 * 4 * 96 * 4])
def test_a_board_is_read_in_portions(monkeypatch: pytest.MonkeyPatch, logits: int) -> None:
    runner = runner_of("llama")
    whole = board(runner)
    monkeypatch.setattr(lens_board, "LOGIT_BYTES", logits)
    monkeypatch.setattr(telling, "_EVERY_S", -1.0)
    monkeypatch.setattr(watched_pass, "LOGIT_BYTES", 4 * 96 * 7)
    parts: list[LensBoard] = []
    told: list[float | None] = []
    asked = ReadLens(request=RunRequest(prompt=TEXT))
    found = lens.read(runner, asked, lambda _, share: told.append(share), part=parts.append)
    for name in ("ids", "probabilities", "kl_to_final_bits"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-4)
    assert told[-1] == 1
    assert told == sorted(told)
    assert parts
    for part in parts:
        count = len(part.slots)
        assert part.slots == found.slots[:count]
        assert part.asked == len(found.slots) > count
        np.testing.assert_array_equal(part.ids, found.ids[:, :count])


def test_cancel_ends_it_between_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lens_board, "LOGIT_BYTES", 1)
    told: list[str] = []
    asked = ReadLens(request=RunRequest(prompt=TEXT))
    with pytest.raises(Cancelled):
        lens.read(runner_of("llama"), asked, lambda text, _: told.append(text), lambda: bool(told))
    assert len(told) == 1


def test_a_model_whose_tail_reads_more_than_the_last_layer_is_refused() -> None:
    runner = runner_of("llama")
    norm = runner.model.model.norm
    taken = runner.model.model.layers[0].register_forward_hook(
        lambda module, args, output: setattr(module, "seen", output)
    )
    added = norm.register_forward_hook(
        lambda module, args, output: output + runner.model.model.layers[0].seen
    )
    try:
        with pytest.raises(BadInput, match="can't be read through"):
            board(runner)
    finally:
        taken.remove()
        added.remove()


def test_what_does_not_exist_is_refused() -> None:
    runner = runner_of("llama")
    with pytest.raises(BadInput, match="no position 23"):
        board(runner, (23,))
    with pytest.raises(BadInput, match="from 1 to 100"):
        lens.read(runner, ReadLens(request=RunRequest(prompt=TEXT), top=0), nobody)


@pytest.mark.smollm2
def test_paris_appears_in_the_last_layers(smollm2: Runner) -> None:
    found = board(smollm2, (4,), "The capital of France is")
    assert len(found.rows) == 31
    assert found.final_gap == 0
    best = [found.spelling[row[0]] for row in found.ids[:, 0].tolist()]
    assert (best[0], best[-1]) == (b" is", b" Paris")
    assert found.probabilities[-1, 0, 0] == pytest.approx(0.773, abs=0.001)
    ranks = found.rank_of_final[:, 0]
    assert ranks[-3:].tolist() == [6, 2, 0]
    assert (ranks[:20] > 1000).all()
    assert math.isclose(found.kl_to_final_bits[-1, 0], 0, abs_tol=1e-6)


@pytest.mark.smollm2
def test_one_position_takes_a_few_steps_of_the_model(smollm2: Runner) -> None:
    """Processor time against that of a step, so that the machine's other work does not decide.

    A step takes 0.07 s on one thread of the machines this is developed on: with 3 it is 0.2 s.
    """
    request, steps, reads = RunRequest(prompt="The capital of France is"), [], []
    for _ in range(3):
        began = time.process_time()
        generate(smollm2, smollm2.prompt(request), (7042,), 1, Sampling, lambda *_: None)
        steps.append(time.process_time() - began)
        began = time.process_time()
        lens.read(smollm2, ReadLens(request=request, chosen=(7042,), slots=(5,)), nobody)
        reads.append(time.process_time() - began)
    print(f"lens {min(reads):.3f} s, step {min(steps):.3f} s, ratio {min(reads) / min(steps):.2f}")
    assert min(reads) < 3.5 * min(steps)
