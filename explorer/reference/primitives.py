"""The GPT of `encoder`, each step written out: the same weights give the same logits.

The modules have the names of GPT-2's checkpoints.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from explorer.reference.encoder import EncoderGPT, GPTConfig, check_length
from explorer.reference.masks import causal_mask, position_ids
from explorer.reference.modern import Attend, Cache, attention


class GPTAttention(nn.Module):
    """softmax(Q Kᵀ / √d + mask) V for H heads; Q, K and V from one matrix."""

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.layer_idx = layer
        self.head_width = config.width // config.heads
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)
        self.attend: Attend = attention

    def forward(self, x: Tensor, mask: Tensor, cache: Cache | None) -> Tensor:
        """x (B, T, D), mask (B, 1, T, S) -> (B, T, D)"""
        query, key, value = (
            part.unflatten(2, (-1, self.head_width)).transpose(1, 2)  # (B, H, T, d)
            for part in self.c_attn(x).chunk(3, dim=-1)
        )
        if cache is not None:
            key, value = cache.update(key, value, self.layer_idx)  # (B, H, S, d)
        output = self.attend(query, key, value, mask)  # (B, H, T, d)
        return self.c_proj(output.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """W₂ gelu(W₁ x + b₁) + b₂, four times as wide inside."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.width, 4 * config.width)
        self.c_proj = nn.Linear(4 * config.width, config.width)
        self.gelu = config.gelu

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(functional.gelu(self.c_fc(x), approximate=self.gelu))


class GPTBlock(nn.Module):
    """x + Attention(LayerNorm(x)), then x + MLP(LayerNorm(x))"""

    def __init__(self, config: GPTConfig, layer: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width)
        self.attn = GPTAttention(config, layer)
        self.ln_2 = nn.LayerNorm(config.width)
        self.mlp = MLP(config)
        self.residual = config.residual

    def forward(self, x: Tensor, mask: Tensor, cache: Cache | None) -> Tensor:
        attended = self.attn(self.ln_1(x), mask, cache)
        x = x + attended if self.residual else attended
        transformed = self.mlp(self.ln_2(x))
        return x + transformed if self.residual else transformed


class Transformer(nn.Module):
    """Token ids to the final hidden states."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocabulary, config.width)
        self.wpe = nn.Embedding(config.context, config.width)
        self.h = nn.ModuleList(GPTBlock(config, i) for i in range(config.layers))
        self.ln_f = nn.LayerNorm(config.width)

    def forward(
        self, ids: Tensor, positions: Tensor, mask: Tensor, cache: Cache | None = None
    ) -> Tensor:
        """ids, positions (B, T), mask (B, 1, T, S): True where a query sees a key -> (B, T, D)"""
        x = self.wte(ids) + self.wpe(positions)
        for block in self.h:
            x = block(x, mask, cache)
        return self.ln_f(x)


class PrimitivesGPT(nn.Module):
    """Token ids to logits."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.transformer = Transformer(config)
        self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)
        if config.tied:
            self.lm_head.weight = self.transformer.wte.weight

    def forward(
        self,
        ids: Tensor,
        valid: Tensor | None = None,
        cache: Cache | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Logits (B, T, V) of ids (B, T); `valid` (B, S) is False for padding.

        `mask` (B, 1, T, S), True where a query sees a key, takes the place of the causal one.
        ValueError where shapes don't fit, or there are more tokens than positions.
        """
        start = 0 if cache is None else cache.get_seq_length()
        check_length(ids, self.config, start)
        if mask is None:
            mask = causal_mask(ids, start, valid)
        return self.lm_head(self.transformer(ids, position_ids(ids, start, valid), mask, cache))


@torch.no_grad()
def load_encoder(model: PrimitivesGPT, encoder: EncoderGPT) -> None:
    """Give `model` the weights of `encoder`, which has the same sizes."""
    names = {
        "ln_1": "norm1", "ln_2": "norm2", "attn.c_proj": "self_attn.out_proj",
        "mlp.c_fc": "linear1", "mlp.c_proj": "linear2",
    }  # fmt: skip
    body = model.transformer
    body.wte.load_state_dict(encoder.tokens.state_dict())
    body.wpe.load_state_dict(encoder.positions.state_dict())
    body.ln_f.load_state_dict(encoder.norm.state_dict())
    model.lm_head.load_state_dict(encoder.head.state_dict())
    for block, layer in zip(body.h, encoder.layers, strict=True):
        for ours, torchs in names.items():
            block.get_submodule(ours).load_state_dict(layer.get_submodule(torchs).state_dict())
        block.attn.c_attn.weight.copy_(layer.self_attn.in_proj_weight)
        block.attn.c_attn.bias.copy_(layer.self_attn.in_proj_bias)
