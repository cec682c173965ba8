"""One text under two policies, against the model's own eager pass under a mask made by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from explorer.engine.errors import BadInput
from explorer.engine.experiments import policy_comparison
from explorer.engine.passes import chunked_prefill
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.trace.experiments import ComparePolicies, PolicySide
from explorer.trace.interventions.context_policy import USUAL, ContextPolicy
from explorer.trace.request import RunRequest, Side
from tests.engine.architectures import tiny
from tests.engine.tiny import runner_on, tiny_model

ROOT = Path(__file__).parents[3]

TEXT = tuple(range(5, 45))
SINKS = ContextPolicy(name="sinks", tokens=8, sinks=2)


def request(ids: tuple[int, ...]) -> RunRequest:
    return RunRequest(prompt=" ".join(map(str, ids)))


def test_both_sides_are_the_models_own(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_on(tiny_model("llama", max_position_embeddings=128))
    selftest.run(runner)
    monkeypatch.setattr(chunked_prefill, "CHUNK", 13)
    monkeypatch.setattr(policy_comparison, "_ROWS", len(TEXT))
    asked = ComparePolicies(request=request(TEXT), policies=(USUAL, SINKS))
    found = policy_comparison.compare(runner, asked, lambda *_: None)
    assert found.slots == tuple(range(1, len(TEXT)))
    assert found.first_keys == 2
    place = np.arange(len(TEXT))
    back = place[:, None] - place[None]
    size = runner.cache.config.num_hidden_layers * 2 * 2 * runner.cache.config.head_dim * 4
    runner.model.set_attn_implementation("eager")
    for side, seen, kept in zip(
        found.sides, (back >= 0, (back >= 0) & ((back < 6) | (place[None] < 2))), (40, 8),
        strict=True,
    ):  # fmt: skip
        mask = torch.where(torch.from_numpy(seen), 0.0, torch.finfo(torch.float32).min)
        with torch.inference_mode():
            out = runner.model(
                torch.tensor([TEXT]), attention_mask=mask[None, None], output_attentions=True
            )
        losses = torch.nn.functional.cross_entropy(
            out.logits[0, :-1].double(), torch.tensor(TEXT[1:]), reduction="none"
        )
        np.testing.assert_allclose(side.nats, losses.numpy(), atol=1e-4)
        first = torch.stack(out.attentions)[:, 0, :, 2:, :2].sum(-1).mean()
        assert side.first_attention == pytest.approx(float(first), abs=1e-5)
        assert side.cache_bytes == kept * size


def test_a_text_of_one_token_is_refused() -> None:
    runner = runner_on(tiny_model("llama", max_position_embeddings=128))
    asked = ComparePolicies(request=request((5,)), policies=(USUAL, SINKS))
    with pytest.raises(BadInput, match="one token"):
        policy_comparison.compare(runner, asked, lambda *_: None)


def test_left_padding_is_not_counted_among_the_first_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = runner_on(tiny_model("llama", max_position_embeddings=128))
    selftest.run(runner)
    monkeypatch.setattr(chunked_prefill, "CHUNK", 13)
    monkeypatch.setattr(policy_comparison, "_ROWS", 100)
    policies = (USUAL, ContextPolicy(name="window", tokens=8))
    plain, padded = (
        policy_comparison.compare(
            runner,
            ComparePolicies(
                request=RunRequest(prompt=request(TEXT).prompt, padding="left", pad=pad),
                policies=policies,
            ),
            lambda *_: None,
        )
        for pad in (0, 6)
    )
    for one, two in zip(plain.sides, padded.sides, strict=True):
        np.testing.assert_allclose(one.nats, two.nats, atol=1e-4)
        assert one.first_attention == pytest.approx(two.first_attention, abs=1e-5)
        assert one.first_attention is not None
        assert one.first_attention > 0


@pytest.mark.parametrize(
    ("kind", "side", "policies", "said"),
    [
        ("bloom", None, (USUAL, ContextPolicy(name="window", tokens=4)), "not possible here"),
        ("llama", "left", (USUAL, SINKS), "first slots may be padding"),
        ("llama", "right", (ContextPolicy(name="window", tokens=4), USUAL), "right padding"),
        ("llama", None, (msgspec.structs.replace(SINKS, distances="cache"), USUAL), "at most 24"),
    ],
)
def test_a_policy_that_the_text_or_the_model_does_not_allow_is_refused(
    kind: str,
    side: Side | None,
    policies: tuple[ContextPolicy, ContextPolicy],
    said: str,
) -> None:
    runner = runner_on(tiny(kind), context=24)
    selftest.run(runner)
    of_run = policies[0] if policies[0].moves_sinks else USUAL
    ids = TEXT if of_run.moves_sinks else TEXT[:12]
    asked = ComparePolicies(
        request=msgspec.structs.replace(request(ids), padding=side, pad=3, context=of_run),
        policies=policies,
    )
    with pytest.raises(BadInput, match=said):
        policy_comparison.compare(runner, asked, lambda *_: None)


@pytest.mark.slow
@pytest.mark.smollm2
@pytest.mark.timeout(300)
def test_sinks_keep_what_a_plain_window_loses(smollm2: Runner) -> None:
    # The figures were measured on this text with transformers alone, under masks made by hand.
    text = (ROOT / "packaging" / "copycat_text.txt").read_text(encoding="utf-8")
    ids = smollm2.prompt(RunRequest(prompt=text[:6000])).layout.ids[:700]
    means: list[float | None] = []
    sides: list[PolicySide] = []
    for policies in (
        (USUAL, ContextPolicy(name="window", tokens=128)),
        (
            ContextPolicy(name="sinks", tokens=128, sinks=4),
            ContextPolicy(name="sinks", tokens=128, sinks=1),
        ),
    ):
        asked = ComparePolicies(request=RunRequest(input_ids=ids), policies=policies)
        found = policy_comparison.compare(smollm2, asked, lambda *_: None)
        means += [found.mean(0, 200), found.mean(1, 200)]
        sides += found.sides
    assert means == pytest.approx([2.20, 4.53, 2.285, 2.283], abs=0.015)
    assert [side.cache_bytes // 46_080 for side in sides] == [700, 128, 128, 128]
    seen = [side.first_attention or 0 for side in sides]  # of the first token; of the first four
    assert seen[1] < 0.1 < 0.3 < min(seen[0], *seen[2:])
