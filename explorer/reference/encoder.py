"""A GPT made of torch's own encoder layers: under a causal mask an encoder is a decoder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from explorer.reference.masks import causal_mask, position_ids


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """The sizes of a GPT; the defaults are those of GPT-2 small."""

    vocabulary: int = 50_257  # V
    context: int = 1024  # positions in the table
    width: int = 768  # D
    layers: int = 12
    heads: int = 12  # H; the MLP is 4 D wide
    tied: bool = True  # the output head is the token table
    gelu: str = "none"  # how gelu is computed: exactly, or as GPT-2 does ("tanh")
    residual: bool = True  # False: layers replace the stream in place of adding to it


class EncoderLayer(nn.TransformerEncoderLayer):
    """x + Attention(LayerNorm(x)), then x + MLP(LayerNorm(x)), as torch has it."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(
            d_model=config.width,
            nhead=config.heads,
            dim_feedforward=4 * config.width,
            dropout=0.0,
            activation=partial(functional.gelu, approximate=config.gelu),
            batch_first=True,
            norm_first=True,  # as in GPT-2: the norms stand before attention and MLP
        )
        self.residual = config.residual

    def forward(self, x: Tensor, hidden_cells: Tensor) -> Tensor:
        """x (B, T, D); hidden_cells (B · H, T, T), True where a query must not see a key."""
        if self.residual:
            return super().forward(x, src_mask=hidden_cells)
        x = self._sa_block(self.norm1(x), hidden_cells, None)
        return self._ff_block(self.norm2(x))

    def weights(self, x: Tensor, hidden_cells: Tensor) -> Tensor:
        """(B, H, T, T) attention weights of a pass over x, rows sum to 1."""
        x = self.norm1(x)
        return self.self_attn(x, x, x, attn_mask=hidden_cells, average_attn_weights=False)[1]


class EncoderGPT(nn.Module):
    """Token ids to logits: h₀ = E[ids] + P[positions]; L layers; LayerNorm; logits = h Eᵀ."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        if config.tied:
            self.head.weight = self.tokens.weight

    def forward(
        self, ids: Tensor, valid: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Logits (B, T, V) of ids (B, T); `valid` (B, T) is False for padding.

        `mask` (B, 1, T, T), True where a query sees a key, takes the place of the causal one.
        ValueError where shapes don't fit, or there are more tokens than positions.
        """
        x, hidden = self._start(ids, valid, mask)
        for layer in self.layers:
            x = layer(x, hidden)
        return self.head(self.norm(x))

    @torch.no_grad()
    def attention_weights(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, L, H, T, T): the attention weights of a pass over ids (B, T); `mask` as above."""
        x, hidden = self._start(ids, None, mask)
        found = []
        for layer in self.layers:
            found.append(layer.weights(x, hidden))
            x = layer(x, hidden)
        return torch.stack(found, dim=1)

    def _start(
        self, ids: Tensor, valid: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        check_length(ids, self.config)
        if mask is None:
            mask = causal_mask(ids, valid=valid)
        x = self.tokens(ids) + self.positions(position_ids(ids, valid=valid))  # (B, T, D)
        # Torch's layers want the reverse, True = hidden, and one matrix for each row and head.
        cells = ~mask.expand(len(ids), self.config.heads, -1, -1)  # (B, H, T, T)
        return x, cells.flatten(0, 1)


def check_length(ids: Tensor, config: GPTConfig, start: int = 0) -> None:
    """ValueError if there are more tokens than the table has positions."""
    length = start + ids.shape[1]
    if length > config.context:
        raise ValueError(f"{length} tokens, but the table has {config.context} positions.")
