"""A modern decoder: RMSNorm, rotary positions, grouped queries, SwiGLU, and a KV cache.

It is the layout of Llama and of most models since; the modules have the names of its checkpoints,
so that their weights load as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from explorer.reference.masks import causal_mask, position_ids
from explorer.reference.readout import last_valid_logits

Attend = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""query (B, H, T, d), key and value (B, K, S, d), mask (B, 1, T, S) -> output (B, H, T, d)"""


@dataclass(frozen=True, kw_only=True)
class ModernConfig:
    """The sizes of a modern decoder."""

    vocabulary: int  # V
    width: int  # D
    layers: int
    heads: int  # H
    kv_heads: int  # K; each serves H / K query heads
    head_width: int  # d, even
    mlp_width: int  # F
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-5
    tied: bool = True  # the output head is the token table
    qk_norm: bool = False  # RMSNorm on each query and key, as in Qwen3
    rotary: bool = True  # False: no positions
    residual: bool = True  # False: layers replace the stream in place of adding to it


class Cache:
    """Keys and values of the tokens so far, one pair a layer: (B, K, S, d) each."""

    def __init__(self) -> None:
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}

    def update(self, key: Tensor, value: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Append those of T new tokens, (B, K, T, d) each; all of them so far."""
        if layer in self.keys:
            key = torch.cat([self.keys[layer], key], dim=2)
            value = torch.cat([self.values[layer], value], dim=2)
        self.keys[layer], self.values[layer] = key, value
        return key, value

    def get_seq_length(self) -> int:
        """S, before the next pass."""
        return self.keys[0].shape[2] if self.keys else 0


class RMSNorm(nn.Module):
    """x / sqrt(mean(x²) + ε) · w, over the last axis."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        mean_square = x.float().pow(2).mean(-1, keepdim=True)
        scaled = x.float() * torch.rsqrt(mean_square + self.epsilon)
        return self.weight * scaled.to(x.dtype)


def rotary_angles(positions: Tensor, head_width: int, base: float) -> tuple[Tensor, Tensor]:
    """cos and sin of p · base^(−2i/d), for positions p (B, T): (B, 1, T, d/2) each."""
    exponents = torch.arange(0, head_width, 2, device=positions.device).float() / head_width
    angles = positions[:, None, :, None].float() * base**-exponents
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (x_i, x_(i + d/2)) by its position's angle; x: (B, heads, T, d)."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """softmax(Q Kᵀ / √d + mask) V; shapes as in `Attend`."""
    grouped = query.shape[1] != key.shape[1]
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, enable_gqa=grouped
    )


class Attention(nn.Module):
    """Queries look for keys and take the values found: H query heads on K key/value heads."""

    def __init__(self, config: ModernConfig, layer: int) -> None:
        super().__init__()
        self.layer_idx = layer
        self.head_width = d = config.head_width
        self.q_proj = nn.Linear(config.width, config.heads * d, bias=False)
        self.k_proj = nn.Linear(config.width, config.kv_heads * d, bias=False)
        self.v_proj = nn.Linear(config.width, config.kv_heads * d, bias=False)
        self.o_proj = nn.Linear(config.heads * d, config.width, bias=False)
        if config.qk_norm:
            self.q_norm = RMSNorm(d, config.norm_epsilon)
            self.k_norm = RMSNorm(d, config.norm_epsilon)
        self.attend: Attend = attention

    def forward(
        self,
        x: Tensor,  # (B, T, D)
        angles: tuple[Tensor, Tensor],
        mask: Tensor,  # (B, 1, T, S)
        cache: Cache | None,
    ) -> Tensor:
        query = self._heads(self.q_proj(x))  # (B, H, T, d)
        key = self._heads(self.k_proj(x))  # (B, K, T, d)
        value = self._heads(self.v_proj(x))  # (B, K, T, d)
        if hasattr(self, "q_norm"):
            query, key = self.q_norm(query), self.k_norm(key)
        query, key = rotate(query, *angles), rotate(key, *angles)
        if cache is not None:
            key, value = cache.update(key, value, self.layer_idx)  # (B, K, S, d)
        output = self.attend(query, key, value, mask)  # (B, H, T, d)
        return self.o_proj(output.transpose(1, 2).flatten(2))  # (B, T, D)

    def _heads(self, x: Tensor) -> Tensor:
        """(B, T, heads · d) -> (B, heads, T, d)"""
        return x.unflatten(2, (-1, self.head_width)).transpose(1, 2)


class SwiGLU(nn.Module):
    """W_down (silu(W_gate x) ⊙ W_up x)"""

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.width, config.mlp_width, bias=False)
        self.up_proj = nn.Linear(config.width, config.mlp_width, bias=False)
        self.down_proj = nn.Linear(config.mlp_width, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """x + Attention(RMSNorm(x)), then x + SwiGLU(RMSNorm(x))"""

    def __init__(self, config: ModernConfig, layer: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.width, config.norm_epsilon)
        self.self_attn = Attention(config, layer)
        self.post_attention_layernorm = RMSNorm(config.width, config.norm_epsilon)
        self.mlp = SwiGLU(config)
        self.residual = config.residual

    def forward(
        self, x: Tensor, angles: tuple[Tensor, Tensor], mask: Tensor, cache: Cache | None
    ) -> Tensor:
        attended = self.self_attn(self.input_layernorm(x), angles, mask, cache)
        x = x + attended if self.residual else attended
        transformed = self.mlp(self.post_attention_layernorm(x))
        return x + transformed if self.residual else transformed


class Decoder(nn.Module):
    """Token ids to the final hidden states: the table, the layers, the last norm."""

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(Layer(config, i) for i in range(config.layers))
        self.norm = RMSNorm(config.width, config.norm_epsilon)

    def forward(
        self, ids: Tensor, positions: Tensor, mask: Tensor, cache: Cache | None = None
    ) -> Tensor:
        """ids, positions (B, T), mask (B, 1, T, S): True where a query sees a key -> (B, T, D)"""
        if not self.config.rotary:
            positions = torch.zeros_like(positions)  # nothing is turned
        x = self.embed_tokens(ids)  # (B, T, D)
        angles = rotary_angles(positions, self.config.head_width, self.config.rope_base)
        for layer in self.layers:
            x = layer(x, angles, mask, cache)
        return self.norm(x)


class ModernDecoder(nn.Module):
    """Token ids to logits."""

    def __init__(self, config: ModernConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)
        if config.tied:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(
        self,
        ids: Tensor,
        valid: Tensor | None = None,
        cache: Cache | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Logits (B, T, V) of ids (B, T).

        `valid` (B, S): True for tokens, False for padding, those in the cache included.  `mask`
        (B, 1, T, S), True where a query sees a key, takes the place of the causal one.  ValueError
        where shapes don't fit.
        """
        start = 0 if cache is None else cache.get_seq_length()
        if mask is None:
            mask = causal_mask(ids, start, valid)
        return self.lm_head(self.model(ids, position_ids(ids, start, valid), mask, cache))


class CachedDecoder(Protocol):
    """A model that reads its past from a cache."""

    def __call__(self, ids: Tensor, valid: Tensor | None, cache: Cache) -> Tensor: ...


@torch.inference_mode()
def prefill(model: CachedDecoder, ids: Tensor, valid: Tensor | None = None) -> tuple[Tensor, Cache]:
    """Read the prompt (B, T) in one pass: logits (B, V) after each last token, and the cache."""
    cache = Cache()
    logits = model(ids, valid, cache)
    return last_valid_logits(logits, valid), cache


@torch.inference_mode()
def decode(
    model: CachedDecoder, token: Tensor, cache: Cache, valid: Tensor | None = None
) -> Tensor:
    """Read one more token per row (B,): logits (B, V).  `valid` (B, S) includes the new token."""
    return model(token[:, None], valid, cache)[:, 0]


def generate(model: CachedDecoder, ids: Tensor, count: int, valid: Tensor | None = None) -> Tensor:
    """The `count` tokens that follow ids (B, T), the most likely one each time: (B, count).

    Rows of different lengths are padded on the left.
    """
    logits, cache = prefill(model, ids, valid)
    tokens = [logits.argmax(-1)]
    for _ in range(count - 1):
        if valid is not None:
            valid = functional.pad(valid, (0, 1), value=True)
        tokens.append(decode(model, tokens[-1], cache, valid).argmax(-1))
    return torch.stack(tokens, dim=1)
