"""The modern decoder against transformers, with weights of real checkpoints."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM

from explorer import places
from explorer.reference import modern
from explorer.reference.llama_layout import config_of
from explorer.reference.modern import Cache, ModernDecoder
from tests.engine.tiny import tiny_model


def ours(theirs: Any) -> ModernDecoder:
    model = ModernDecoder(config_of(theirs.config.to_dict()))
    model.load_state_dict(theirs.state_dict())
    return model.eval()


@pytest.fixture(scope="module")
def copycat() -> Any:
    return AutoModelForCausalLM.from_pretrained(places.asset("copycat")).eval()


@pytest.fixture(scope="module")
def ids() -> Tensor:
    return torch.randint(0, 1000, (2, 20), generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def test_copycat_is_that_of_transformers(copycat: Any, ids: Tensor) -> None:
    torch.testing.assert_close(ours(copycat)(ids), copycat(ids).logits, atol=1e-4, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_grouped_queries_and_norms_on_queries_and_keys(kind: str, ids: Tensor) -> None:
    theirs = tiny_model("llama") if kind == "llama" else tiny_qwen3()
    found, expected = ours(theirs)(ids % 96), theirs(ids % 96).logits
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def tiny_qwen3() -> Any:
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                    num_attention_heads=4, num_key_value_heads=2, head_dim=16)
    )  # fmt: skip
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)
    return model.eval()


@torch.no_grad()
def test_cached_equals_uncached(copycat: Any, ids: Tensor) -> None:
    model, cache = ours(copycat), Cache()
    parts = [model(ids[:, :12], cache=cache)]
    parts += [model(ids[:, i : i + 1], cache=cache) for i in range(12, 20)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(ids), atol=1e-4, rtol=0)
    assert cache.get_seq_length() == 20


@torch.no_grad()
def test_a_row_padded_on_the_left_is_the_row_alone(copycat: Any, ids: Tensor) -> None:
    model = ours(copycat)
    valid = torch.ones(2, 20, dtype=torch.bool)
    valid[0, :7] = False
    padded, alone = model(ids, valid)[0, 7:], model(ids[:1, 7:])[0]
    torch.testing.assert_close(padded, alone, atol=1e-4, rtol=0)
    found = modern.generate(model, ids, 6, valid)
    assert torch.equal(found[:1], modern.generate(model, ids[:1, 7:], 6))


def test_generation_is_that_of_transformers(copycat: Any, ids: Tensor) -> None:
    theirs = copy.deepcopy(copycat).generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False,
        eos_token_id=None,
    )  # fmt: skip
    assert torch.equal(modern.generate(ours(copycat), ids, 8), theirs[:, 20:])


@torch.no_grad()
def test_without_positions_the_order_of_earlier_tokens_is_lost(copycat: Any, ids: Tensor) -> None:
    """At one layer, where no token tells another what stood before it."""
    config = dataclasses.replace(config_of(copycat.config.to_dict()), layers=1)
    swapped = ids.clone()
    swapped[:, [3, 9]] = swapped[:, [9, 3]]
    for rotary, same in ((False, True), (True, False)):
        torch.manual_seed(0)
        model = ModernDecoder(dataclasses.replace(config, rotary=rotary))
        difference = (model(ids)[:, -1] - model(swapped)[:, -1]).abs().max().item()
        assert (difference < 1e-5) == same


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"model_type": "gpt2"}, "of type gpt2"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "of the kind yarn"),
        ({"hidden_act": "relu"}, "uses relu"),
        ({"attention_bias": True}, "attention_bias"),
    ],
)
def test_a_checkpoint_of_another_layout_is_refused(
    copycat: Any, changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        config_of({**copycat.config.to_dict(), **changed})
