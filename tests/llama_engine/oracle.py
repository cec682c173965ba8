"""llama.cpp asked directly: tokens in, its own attention weights and logits out.

Of the engine it uses the declarations of the C interface alone, none of its contexts or records.
"""

from __future__ import annotations

import ctypes as c
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from explorer.llama_engine.binding.library import library
from explorer.llama_engine.binding.structs import EVAL, FLASH_OFF, TensorStruct

F16 = 1  # ggml_type
_NAME = re.compile(rb"kq_soft_max-(\d+)$")


class Direct:
    """One context without flash attention, whose softmax of every layer is kept."""

    def __init__(
        self, model: int, vocabulary: int, slots: int, causal: bool, keys: int = F16
    ) -> None:
        self._library: Any = library()
        self._vocabulary = vocabulary
        self.maps: dict[int, np.ndarray] = {}  # (H, T, K) of the last call, by layer
        self._seen = EVAL(self._look)
        params = self._library.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = slots
        params.n_threads = params.n_threads_batch = 1
        params.type_k = keys
        params.flash_attn_type, params.cb_eval = FLASH_OFF, self._seen
        self._context = self._library.llama_init_from_model(model, params)
        assert self._context
        self._library.llama_set_causal_attn(self._context, causal)
        self._read = 0

    def read(self, ids: Sequence[int]) -> np.ndarray:
        """(V,) logits after these tokens, read after those before."""
        batch = self._library.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for row, token in enumerate(ids):
            batch.token[row], batch.pos[row] = token, self._read + row
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
            batch.logits[row] = row == len(ids) - 1  # as a run does: the last layer is cut to it
        self._read += len(ids)
        self.maps = {}
        assert self._library.llama_decode(self._context, batch) == 0
        self._library.llama_batch_free(batch)
        address = self._library.llama_get_logits_ith(self._context, len(ids) - 1)
        logits = np.frombuffer(c.string_at(address, 4 * self._vocabulary), np.float32)
        self.maps = {layer: found[..., : self._read] for layer, found in self.maps.items()}
        return logits

    def close(self) -> None:
        """Free the context."""
        self._library.llama_free(self._context)

    def _look(self, address: int, ask: bool, _: object) -> bool:
        node = TensorStruct.from_address(address)
        found = _NAME.match(node.name)
        if found and not ask:
            shape = tuple(node.ne)[2::-1]
            numbers = np.frombuffer(c.string_at(node.data, 4 * int(np.prod(shape))), np.float32)
            self.maps[int(found[1])] = numbers.reshape(shape)
        return bool(found) or not ask


@contextmanager
def direct(path: Path, causal: bool = True, slots: int = 512, keys: int = F16) -> Iterator[Direct]:
    """llama.cpp on a file, in a context of its own; `keys`: the ggml_type they are kept in."""
    known: Any = library()
    model = known.llama_model_load_from_file(str(path).encode(), known.new_model_params())
    assert model
    vocabulary = known.llama_vocab_n_tokens(known.llama_model_get_vocab(model))
    made = Direct(model, vocabulary, slots, causal, keys)
    yield made
    made.close()
    known.llama_model_free(model)
