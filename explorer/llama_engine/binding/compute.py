"""Nodes of a graph computed again, from what lies in their sources now: by the same kernels."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from typing import Any

from explorer.engine.errors import EngineError, NoMemory
from explorer.llama_engine.binding import tensor
from explorer.llama_engine.binding.library import LlamaLibrary
from explorer.llama_engine.binding.structs import InitParams

_MOST_NODES = 4096


class Recompute:
    """Computes nodes that llama.cpp has laid out, where they lie; `close` gives memory back."""

    def __init__(self, library: LlamaLibrary, threads: int) -> None:
        """NoMemory if llama.cpp gets none."""
        self._library: Any = library
        size = library.ggml_graph_overhead_custom(_MOST_NODES, False) + (1 << 12)
        self._room = c.create_string_buffer(size)
        params = InitParams(size, c.addressof(self._room), True)
        self._context = library.ggml_init(params)
        self._backend = library.ggml_backend_cpu_init()
        if not self._context or not self._backend:
            self.close()
            raise NoMemory("There is not enough memory to look into this model.")
        library.ggml_backend_cpu_set_n_threads(self._backend, threads)
        self._graph = library.ggml_new_graph_custom(self._context, _MOST_NODES, False)

    def __call__(self, nodes: Sequence[int]) -> None:
        """Compute `nodes` in this order.  EngineError if llama.cpp can't, OnGpu."""
        if len(nodes) > _MOST_NODES:
            raise EngineError("This part of the model is too large to be computed by itself.")
        self._library.ggml_graph_clear(self._graph)
        for node in nodes:
            for one in (node, *filter(None, tensor.at(node).src)):
                tensor.require_in_memory(tensor.at(one))
            self._library.ggml_graph_add_node(self._graph, node)
        code = self._library.ggml_backend_graph_compute(self._backend, self._graph)
        if code:
            raise EngineError(
                "llama.cpp could not compute a part of this model again.",
                f"ggml_backend_graph_compute gave {code}: {self._library.last_words}",
            )

    def close(self) -> None:
        """Free it; harmless the second time."""
        backend, self._backend = self._backend, None
        context, self._context = self._context, None
        if backend:
            self._library.ggml_backend_free(backend)
        if context:
            self._library.ggml_free(context)
