"""The file's own way from the last layer to the logits, computed again on any stream.

The nodes that follow the last layer are computed where llama.cpp laid them out, from a stream
written in place of the last layer's output: the file's own norm, head and all between, by the same
kernels.
"""

from __future__ import annotations

import ctypes as c

import numpy as np

from explorer.engine.errors import BadInput
from explorer.llama_engine.binding import tensor
from explorer.llama_engine.binding.compute import Recompute
from explorer.llama_engine.passes.watch import Watch

_LOGITS = b"result_output"
NO_TAIL = (
    "What follows the layers of this model can't be computed by itself, so its layers can't be "
    "read through it."
)


class GraphTail:
    """What followed the layers in the last call of a context, until its next one."""

    def __init__(self, watch: Watch, recompute: Recompute, layers: int) -> None:
        """BadInput if the logits depend on more than the last layer's output."""
        graph, outputs = watch.graph, watch.outputs
        self._recompute = recompute
        self._stream = outputs.get(layers - 1, 0)
        if not self._stream:
            raise BadInput(NO_TAIL, "the output of the last layer has no name")
        self._nodes = graph.after(self._stream)
        named = [n for n in self._nodes if c.string_at(n + tensor.NAME_OFFSET) == _LOGITS]
        if len(named) != 1:
            raise BadInput(NO_TAIL, "the logits have no name")
        self._logits = named[0]
        known = {self._stream, *self._nodes}
        sources = {one for node in self._nodes for one in graph.sources(node)}
        if any(one not in known and graph.op(one) != "NONE" for one in sources):
            raise BadInput(NO_TAIL, "the logits depend on more than the last layer's output")

    def logits(self, stream: np.ndarray) -> np.ndarray:
        """(n, V) float32 of a stream (n, d) at the n slots that the call read out."""
        place = tensor.numbers(tensor.at(self._stream))[0]
        if place.shape != stream.shape:
            raise BadInput(NO_TAIL, f"{stream.shape} in place of {place.shape}")
        place[:] = stream
        self._recompute(self._nodes)
        return tensor.numbers(tensor.at(self._logits))[0].astype(np.float32)
