"""A prompt that begins as the last one did is read from there on, as if it were read whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from explorer.engine.passes.generate import generate
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.figures.attention import head_means, head_scores
from explorer.figures.attention.difference import difference
from explorer.figures.attention.map_blocks import ABSENT
from explorer.figures.attention.maps import full_map, row
from explorer.figures.attention.mask_pair import Side, without_mask
from explorer.figures.attention.strongest_heads import rank
from explorer.figures.inside.block import score_terms
from explorer.session.jobs.replay_check import drift
from explorer.trace.interventions.kinds import Silence
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.rounding import largest, logit_tolerance
from explorer.trace.trace import Trace
from explorer.trace.wire.validate import require_sound
from tests.engine.architectures import tiny
from tests.engine.tiny import runner_on, tiny_model

FIRST = tuple(range(5, 17))
REUSED, CUT, WHOLE = "from the cache", "can't go on from", ""

pytestmark = pytest.mark.filterwarnings("ignore")  # of transformers' modelling code


def made(kind: str) -> Any:
    if kind in ("llama", "gemma3_text", "mistral"):
        return tiny_model(kind, max_position_embeddings=128)
    return tiny(kind)


def run(runner: Runner, ids: tuple[int, ...], steps: int, reuse: bool = True, **more: Any) -> Trace:
    request = RunRequest(prompt=" ".join(map(str, ids)), **more)
    prompt = runner.prompt(request)
    found = [Trace(request=request, card=runner.loaded.card, prompt=prompt.tokens)]
    generate(
        runner, prompt, (), steps, Sampling,
        lambda step, token: found.append(found[-1].appended(step, token)), reuse=reuse,
    )  # fmt: skip
    return found[-1]


def require_same(ours: Trace, fresh: Trace) -> None:
    """Logits by the tolerance of the dtype, tokens, and every row of every map that was read."""
    require_sound(ours)
    assert ours.chosen_ids == fresh.chosen_ids
    for one, other in zip(ours.steps, fresh.steps, strict=True):
        assert largest(one.logits - other.logits) <= logit_tolerance("float32", other.logits)
    last, read = len(ours.steps) - 1, ours.reused_tokens
    for layer, record in enumerate(ours.steps[last].layers):
        if record.kind == "absent" or ours.steps[0].layers[layer].kind == "absent":
            continue
        mine, theirs = (full_map(trace, last, layer, 1).weights for trace in (ours, fresh))
        assert largest(mine[read:] - theirs[read:]) < 1e-5
        assert mine[read:].sum(axis=1).max() > 0.9


@pytest.mark.parametrize(
    ("kind", "after_a_cut"),
    [
        ("llama", REUSED),
        ("deepseek_v3", REUSED),  # latent
        ("gemma3_text", CUT),  # sliding windows
        ("mistral", CUT),
        ("qwen3_next", CUT),  # linear attention, hybrid
        ("jamba", CUT),  # recurrent states, hybrid
        ("mamba", CUT),
        ("mamba2", CUT),
    ],
)
def test_reuse_equals_a_fresh_prefill(kind: str, after_a_cut: str) -> None:
    runner = runner_on(made(kind))
    selftest.run(runner)
    first = run(runner, FIRST, 3, reuse=False)
    held = len(FIRST) + 2
    longer = (*FIRST, *first.chosen_ids[:2], 40, 41, 42, 43)
    apart = (*longer[:8], 50, 51, 52)

    ours = run(runner, longer, 3)
    assert ours.reused_tokens == held
    assert ours.steps[0].note == f"{held} of {held + 4} tokens from the cache"
    assert ours.steps[0].positions_processed == 4
    again = run(runner, apart, 2)
    assert after_a_cut in again.steps[0].note
    assert again.reused_tokens == (8 if after_a_cut == REUSED else 0)
    other = run(runner, (60, 61), 1)
    assert (other.reused_tokens, other.steps[0].note) == (0, "")

    require_same(ours, run(runner, longer, 3, reuse=False))
    require_same(again, run(runner, apart, 2, reuse=False))


def test_the_same_prompt_again_reads_its_last_token() -> None:
    runner = runner_on(made("llama"))
    selftest.run(runner)
    fresh = run(runner, FIRST, 2, reuse=False)
    ours = run(runner, FIRST, 2)
    assert ours.reused_tokens == len(FIRST) - 1
    require_same(ours, fresh)


def test_what_is_not_asked_for_is_not_reused() -> None:
    runner = runner_on(made("llama"))
    selftest.run(runner)
    run(runner, FIRST, 2, reuse=False)
    assert run(runner, FIRST, 1, reuse=False).reused_tokens == 0
    assert run(runner, FIRST, 1, cache=False).reused_tokens == 0
    assert run(runner, FIRST, 1, padding="left", pad=2).reused_tokens == 0, "other keys"


def test_a_mean_over_the_prompt_is_another_in_another_prompt() -> None:
    runner = runner_on(made("llama"))
    selftest.run(runner)
    changed = (Silence(layer=0, head=1, by="mean"),)
    run(runner, FIRST, 1, interventions=changed)
    again = run(runner, (*FIRST, 40), 1, interventions=changed)
    assert again.reused_tokens == 0
    assert "the interventions depend on the prompt" in again.steps[0].note


def test_a_long_rest_is_read_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    from explorer.engine.passes import chunked_prefill

    for kind in ("llama", "gemma3_text"):
        runner = runner_on(made(kind))
        selftest.run(runner)
        longer = (*FIRST, *range(20, 52))
        fresh = run(runner, longer, 2, reuse=False)
        with monkeypatch.context() as patch:
            patch.setattr(chunked_prefill, "WHOLE", 8)
            patch.setattr(chunked_prefill, "CHUNK", 7)
            run(runner, FIRST, 1, reuse=False)
            ours = run(runner, longer, 2)
        assert ours.reused_tokens == len(FIRST)
        require_same(ours, fresh)
        assert np.isfinite(full_map(ours, 1, 0, 0).weights).all()
        for layer in ours.steps[0].layers:  # none stands for one that the cache had forgotten
            assert layer.keys is not None
            assert (np.abs(layer.keys.astype(np.float32)).max(axis=(1, 2)) > 0).all()


def test_figures_show_what_was_read_and_nothing_of_another_row() -> None:
    runner = runner_on(made("llama"))
    selftest.run(runner)
    run(runner, FIRST, 1, reuse=False)
    longer = (*FIRST, 40, 41, 42)
    ours, fresh = run(runner, longer, 2), run(runner, longer, 2, reuse=False)
    held, last = ours.reused_tokens, 1
    assert held == len(FIRST)
    for query in range(ours.read_slots(last)):
        mine = row(ours, last, 1, 0, query)
        if query < held:
            assert set(mine.kinds.tolist()) == {ABSENT}
            assert list(rank(ours, last, query, 0))[-1].heads == ()  # type: ignore[union-attr]
            assert score_terms(ours, last, 1, 0, query, 0) is None
        else:
            theirs = row(fresh, last, 1, 0, query)
            np.testing.assert_allclose(mine.weights, theirs.weights, atol=1e-5)
    for kind in ("first", "previous", "entropy"):
        *_, found = head_scores.scores(ours, last, kind)
        maps = [full_map(fresh, last, 1, head).weights[held:] for head in range(4)]
        if kind == "first":
            expected = [float(one[:, 0].mean()) for one in maps]
            np.testing.assert_allclose(found.sums[1] / found.rows, expected, atol=1e-5)
        assert found.rows == ours.read_slots(last) - held
    with pytest.raises(ValueError, match="in the cache of the run before"):
        list(head_means.build(Side(ours, last), 1, 0, "rollout"))
    opened = without_mask(Side(ours, last))
    assert "in the cache of the run before" in opened.trace.steps[-1].layers[1].reason
    same = difference(full_map(ours, last, 1, 0), full_map(fresh, last, 1, 0))
    assert (same.kinds[:held] == ABSENT).all()
    assert largest(same.weights) < 1e-5


def test_a_run_read_on_from_the_cache_is_proven_by_one_that_reads_it_whole() -> None:
    runner = runner_on(made("llama"))
    selftest.run(runner)
    run(runner, FIRST, 1, reuse=False)
    longer = (*FIRST, 40, 41)
    ours, whole = run(runner, longer, 1), run(runner, longer, 1, reuse=False).steps[0]
    assert drift(ours, whole, same_files=True) is None
    other = run(runner, (*FIRST, 40, 42), 1, reuse=False).steps[0]
    assert drift(ours, other, same_files=True) is not None
    assert drift(ours, run(runner, (*longer, 43), 1, reuse=False).steps[0], True) is not None
