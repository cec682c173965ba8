"""How long each part of the model took, from the moments at which its last node was computed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import isnan, nan

import numpy as np

Mark = tuple[str, int]
"""(name, layer) of a node that a part ends with; the layer is -1 outside the layers."""

EMBEDDED, OUTPUT, NORM, HEAD = "embd", "l_out", "result_norm", "result_output"
_ATTENTION_NORM, _ATTENTION, _MLP_NORM = "attn_norm", "ffn_inp", "ffn_norm"
_NAMES = {EMBEDDED, OUTPUT, NORM, HEAD, _ATTENTION_NORM, _ATTENTION, _MLP_NORM}
_NAME = re.compile(rb"([a-z_]+)(?:-(\d+))?$")


def mark(name: bytes) -> Mark | None:
    """What ends with a node of this name, if anything that has a time of its own."""
    found = _NAME.match(name)
    if found is None or found[1].decode() not in _NAMES:
        return None
    return found[1].decode(), int(found[2]) if found[2] else -1


class PartTimes:
    """Milliseconds by part, of the calls that make up one pass.

    A layer's time is all from the end of the layer before.  Its attention ends where the result is
    added to the stream, its MLP likewise; both begin behind their norm.  What is before the first
    layer, the embedding among it, is not told apart from llama.cpp's own preparations.
    """

    def __init__(self, layers: int) -> None:
        self._layers, self._attention, self._mlp = ([nan] * layers for _ in range(3))
        self._norm = self._head = nan

    def add(self, ends: Mapping[Mark, float], attending: Collection[int], began: float) -> None:
        """One more call, begun at `began`; `ends` in seconds, in the order of computing."""
        before = ends.get((EMBEDDED, -1), began)
        for layer in range(len(self._layers)):
            end = ends.get((OUTPUT, layer))
            if end is None:  # a layer without a name of its own: where the next begins is unknown
                before = nan
                continue
            _add(self._layers, layer, end - before)
            middle = ends.get((_ATTENTION, layer))
            if middle is not None:
                if layer in attending:
                    begin = ends.get((_ATTENTION_NORM, layer), before)
                    _add(self._attention, layer, middle - begin)
                _add(self._mlp, layer, end - max(middle, ends.get((_MLP_NORM, layer), middle)))
            before = end
        normed, headed = ends.get((NORM, -1)), ends.get((HEAD, -1))
        if normed is not None:
            self._norm = _sum(self._norm, normed - before)
            if headed is not None:
                self._head = _sum(self._head, headed - normed)

    @property
    def layer_ms(self) -> np.ndarray:
        """(L,) float32; NaN where a layer's end has no name of its own."""
        return _ms(self._layers)

    @property
    def attention_ms(self) -> np.ndarray:
        """(L,) float32; NaN where the end of attention is not known."""
        return _ms(self._attention)

    @property
    def mlp_ms(self) -> np.ndarray:
        """(L,) float32, likewise."""
        return _ms(self._mlp)

    @property
    def norm_ms(self) -> float | None:
        """The final norm; None where its end is not known."""
        return None if isnan(self._norm) else float(self._norm * 1e3)

    @property
    def head_ms(self) -> float | None:
        """The output head, likewise."""
        return None if isnan(self._head) else float(self._head * 1e3)


def _add(sums: list[float], layer: int, seconds: float) -> None:
    sums[layer] = _sum(sums[layer], seconds)


def _sum(so_far: float, seconds: float) -> float:
    """Less than the clock can tell is no time, not a time below zero; NaN stays NaN."""
    spent = max(seconds, 0.0)
    return spent if isnan(so_far) else so_far + spent


def _ms(seconds: Sequence[float]) -> np.ndarray:
    return (np.array(seconds) * 1e3).astype(np.float32)
