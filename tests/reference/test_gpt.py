"""A GPT of torch's encoder layers, and the same from primitives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from explorer.reference.encoder import EncoderGPT, GPTConfig
from explorer.reference.modern import generate
from explorer.reference.primitives import PrimitivesGPT, load_encoder
from tests.engine.tiny import tiny_model

SMALL = GPTConfig(vocabulary=96, context=64, width=32, layers=3, heads=4)


@pytest.fixture(scope="module")
def pair() -> tuple[EncoderGPT, PrimitivesGPT]:
    torch.manual_seed(0)
    encoder, primitives = EncoderGPT(SMALL), PrimitivesGPT(SMALL)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)
    load_encoder(primitives, encoder)
    return encoder.eval(), primitives.eval()


@pytest.fixture(scope="module")
def ids() -> Tensor:
    return torch.randint(0, 96, (2, 20), generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def test_the_same_weights_give_the_same_logits(
    pair: tuple[EncoderGPT, PrimitivesGPT], ids: Tensor
) -> None:
    encoder, primitives = pair
    torch.testing.assert_close(encoder(ids), primitives(ids), atol=1e-5, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("which", [0, 1])
def test_no_token_sees_a_later_one(
    pair: tuple[EncoderGPT, PrimitivesGPT], ids: Tensor, which: int
) -> None:
    model, changed = pair[which], ids.clone()
    changed[:, 12:] = 0
    torch.testing.assert_close(model(ids)[:, :12], model(changed)[:, :12], atol=1e-6, rtol=0)
    assert (model(ids)[:, 12:] - model(changed)[:, 12:]).abs().max() > 0.1


@torch.no_grad()
def test_primitives_are_the_gpt2_of_transformers(ids: Tensor) -> None:
    theirs = tiny_model("gpt2")
    ours = PrimitivesGPT(GPTConfig(vocabulary=96, context=64, width=32, layers=3, heads=4,
                                   gelu="tanh"))  # fmt: skip
    turned = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    weights = {n: w.T if n.endswith(turned) else w for n, w in theirs.state_dict().items()}
    ours.load_state_dict(weights)
    torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-4, rtol=0)


def test_generation_with_the_cache_is_generation_without(
    pair: tuple[EncoderGPT, PrimitivesGPT], ids: Tensor
) -> None:
    encoder, primitives = pair
    found = generate(primitives, ids, 8)
    text = ids
    with torch.no_grad():
        for _ in range(8):
            text = torch.cat([text, encoder(text)[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(found, text[:, 20:])


@torch.no_grad()
@pytest.mark.parametrize("which", [0, 1])
def test_a_row_padded_on_the_left_is_the_row_alone(
    pair: tuple[EncoderGPT, PrimitivesGPT], ids: Tensor, which: int
) -> None:
    valid = torch.ones(2, 20, dtype=torch.bool)
    valid[0, :7] = False
    padded, alone = pair[which](ids, valid)[0, 7:], pair[which](ids[:1, 7:])[0]
    torch.testing.assert_close(padded, alone, atol=1e-4, rtol=0)


@torch.no_grad()
def test_the_maps_of_the_encoder_give_its_attention_outputs(
    pair: tuple[EncoderGPT, PrimitivesGPT], ids: Tensor
) -> None:
    encoder, _ = pair
    maps = encoder.attention_weights(ids)
    layer = encoder.layers[0]
    x = layer.norm1(encoder.tokens(ids) + encoder.positions(torch.arange(20)))
    value = layer.self_attn.in_proj_weight[64:] @ x.mT + layer.self_attn.in_proj_bias[64:, None]
    heads = value.mT.unflatten(2, (4, 8)).transpose(1, 2)
    output = layer.self_attn.out_proj((maps[:, 0] @ heads).transpose(1, 2).flatten(2))
    hidden = torch.ones(20, 20, dtype=torch.bool).triu(1)
    own = layer.self_attn(x, x, x, attn_mask=hidden, need_weights=False)[0]
    torch.testing.assert_close(output, own, atol=1e-5, rtol=0)


@pytest.mark.parametrize("build", [EncoderGPT, PrimitivesGPT])
def test_the_shape_of_gpt2_small(build: type[EncoderGPT] | type[PrimitivesGPT]) -> None:
    with torch.device("meta"):
        tied, untied = (build(GPTConfig(tied=tied)) for tied in (True, False))
    counts = [sum(weight.numel() for weight in one.parameters()) for one in (tied, untied)]
    assert counts[0] == 124_439_808
    assert round(100 * (counts[1] - counts[0]) / counts[1], 1) == 23.7


@pytest.mark.parametrize("which", [0, 1])
def test_more_tokens_than_positions_are_refused(
    pair: tuple[EncoderGPT, PrimitivesGPT], which: int
) -> None:
    with pytest.raises(ValueError, match="65 tokens, but the table has 64 positions"):
        pair[which](torch.zeros(1, 65, dtype=torch.long))
