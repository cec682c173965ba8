"""A .gguf file opened by llama.cpp: mapped, not read, and nothing in it converted."""

from __future__ import annotations

from pathlib import Path

from explorer.engine.callbacks import Report, Stop, never, nobody
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.gguf.header import Header, read_header
from explorer.engine.machine import system_memory
from explorer.engine.model_files.identity import Watched
from explorer.llama_engine.binding.library import LlamaLibrary, library
from explorer.llama_engine.binding.structs import PROGRESS
from explorer.llama_engine.model import fatal_numbers
from explorer.llama_engine.model.tokenizer import LlamaTokenizer
from explorer.wording import short_bytes

NO_GPU = "llama.cpp has no GPU support here, or finds no GPU. Open the file with 0 GPU layers."
_ROOM = 200 << 20  # bytes beside the weights: cache, scratch space and what is recorded


class LlamaModel:
    """One open file; `close` gives its memory back."""

    def __init__(
        self,
        path: Path,
        progress: Report = nobody,
        cancelled: Stop = never,
        room_bytes: int = 0,
        cache_type_k: str = "f16",
        gpu_layers: int = 0,
    ) -> None:
        """BadInput if the file is no model that llama.cpp can run, or memory is short.

        `room_bytes` are held by a model that is closed before this one is used.  `gpu_layers` on a
        GPU, from the last one back; more than there are = all.
        """
        self.path, self.gpu_layers = path, gpu_layers
        self.header: Header = read_header(path)
        fatal_numbers.refuse(self.header)
        fatal_numbers.refuse_keys(self.header, cache_type_k)
        self.library: LlamaLibrary = library()
        if gpu_layers and not self.library.can_use_gpu:
            raise BadInput(NO_GPU)
        _check_fits(path, room_bytes)
        self.watched = Watched([path])
        self.handle = self._open(progress, cancelled)
        try:
            self._require_decoder()
            self.vocab = self.library.llama_model_get_vocab(self.handle)
            self.vocab_size = int(self.library.llama_vocab_n_tokens(self.vocab))
            if not self.vocab_size:
                raise BadInput(f"{path.name} has no tokenizer. Choose another file.")
            self.tokenizer = LlamaTokenizer(self.library, self.vocab, self.header)
        except BaseException:
            self.close()
            raise

    def _open(self, progress: Report, cancelled: Stop) -> int:
        def tell(share: float, _: object) -> bool:
            progress("Reading the weights", share)
            return not cancelled()

        params = self.library.new_model_params()
        params.n_gpu_layers = self.gpu_layers
        params.progress_callback = callback = PROGRESS(tell)
        self.library.said.clear()
        handle = self.library.llama_model_load_from_file(str(self.path).encode(), params)
        del callback
        if not handle:
            if cancelled():
                raise Cancelled
            raise BadInput(
                f"llama.cpp cannot open {self.path.name}. Open it converted to float32, or choose "
                "another file.",
                self.library.last_words,
            )
        return int(handle)

    def _require_decoder(self) -> None:
        encodes = self.library.llama_model_has_encoder(self.handle)
        if encodes or not self.library.llama_model_has_decoder(self.handle):
            raise BadInput(
                f"{self.path.name} has an encoder; this program shows decoder-only models. Choose "
                "another file."
            )
        if self.library.llama_model_is_diffusion(self.handle):
            raise BadInput(
                f"{self.path.name} is a diffusion model, which does not write one token after the "
                "other. Choose another file."
            )

    @property
    def keeps_state(self) -> bool:
        """True if some layer keeps a recurrent state, which no cut can take back."""
        handle = self.handle
        recurrent = self.library.llama_model_is_recurrent(handle)
        return bool(recurrent or self.library.llama_model_is_hybrid(handle))

    def close(self) -> None:
        """Unmap the file; harmless the second time."""
        handle, self.handle = self.handle, 0
        if handle:
            self.library.llama_model_free(handle)


def _check_fits(path: Path, room_bytes: int) -> None:
    """BadInput with the figures if the file is larger than the memory that can be had."""
    available, size = system_memory.available_bytes(), path.stat().st_size
    if available is None or size + _ROOM <= available + room_bytes:
        return
    raise BadInput(
        f"{path.name} needs about {short_bytes(size + _ROOM)} of memory as it is, and "
        f"{short_bytes(available + room_bytes)} are free. Choose a smaller file, or close other "
        "programs."
    )
