"""The functions of llama.cpp that are used, found in the pinned package and checked before use.

The package's compiled extension exports llama.cpp's whole C interface, so it is opened as a plain
shared library.  A struct of another build would be read wrongly without a word: version, defaults
and sizes are compared first.
"""

from __future__ import annotations

import ctypes as c
import functools
import importlib.metadata
import importlib.util
from collections import deque
from pathlib import Path
from typing import Any

from explorer.engine.errors import BadInput
from explorer.llama_engine.binding.structs import (
    FLASH_AUTO,
    LOG,
    MMAP,
    Batch,
    ContextParams,
    CpuTypeTraits,
    InitParams,
    ModelParams,
    TensorStruct,
    TypeTraits,
)

PACKAGE, VERSION = "xllamacpp", "2026.10.11549"
_ENDINGS = (".so", ".pyd", ".dylib")
_OBJECT_BYTES = 32  # ggml keeps so many beside each tensor
_pointer, _string, _int, _bool = c.c_void_p, c.c_char_p, c.c_int32, c.c_bool
_ids = c.POINTER(c.c_int32)
_FUNCTIONS: dict[str, tuple[Any, ...]] = {  # name: (result, arguments…)
    "ggml_backend_buffer_is_host": (_bool, _pointer),
    "ggml_backend_cpu_init": (_pointer,),
    "ggml_backend_cpu_set_n_threads": (None, _pointer, c.c_int),
    "ggml_backend_free": (None, _pointer),
    "ggml_backend_graph_compute": (_int, _pointer, _pointer),
    "ggml_backend_sched_set_eval_callback": (None, _pointer, _pointer, _pointer),
    "ggml_fp32_to_bf16_row": (None, _pointer, _pointer, c.c_int64),
    "ggml_fp32_to_fp16_row": (None, _pointer, _pointer, c.c_int64),
    "ggml_free": (None, _pointer),
    "ggml_get_data": (_pointer, _pointer),
    "ggml_get_name": (_pointer, _pointer),
    "ggml_get_type_traits": (c.POINTER(TypeTraits), _int),
    "ggml_get_type_traits_cpu": (c.POINTER(CpuTypeTraits), _int),
    "ggml_graph_add_node": (None, _pointer, _pointer),
    "ggml_graph_clear": (None, _pointer),
    "ggml_graph_overhead_custom": (c.c_size_t, c.c_size_t, _bool),
    "ggml_init": (_pointer, InitParams),
    "ggml_new_graph_custom": (_pointer, _pointer, c.c_size_t, _bool),
    "ggml_op_name": (_string, _int),
    "ggml_tensor_overhead": (c.c_size_t,),
    "ggml_type_name": (_string, _int),
    "llama_backend_init": (None,),
    "llama_batch_free": (None, Batch),
    "llama_batch_init": (Batch, _int, _int, _int),
    "llama_context_default_params": (ContextParams,),
    "llama_decode": (_int, _pointer, Batch),
    "llama_free": (None, _pointer),
    "llama_get_logits_ith": (_pointer, _pointer, _int),
    "llama_get_memory": (_pointer, _pointer),
    "llama_init_from_model": (_pointer, _pointer, ContextParams),
    "llama_log_set": (None, LOG, _pointer),
    "llama_memory_can_shift": (_bool, _pointer),
    "llama_memory_clear": (None, _pointer, _bool),
    "llama_memory_seq_add": (None, _pointer, _int, _int, _int, _int),
    "llama_memory_seq_pos_max": (_int, _pointer, _int),
    "llama_memory_seq_rm": (_bool, _pointer, _int, _int, _int),
    "llama_model_default_params": (ModelParams,),
    "llama_model_free": (None, _pointer),
    "llama_model_get_vocab": (_pointer, _pointer),
    "llama_model_has_decoder": (_bool, _pointer),
    "llama_model_has_encoder": (_bool, _pointer),
    "llama_model_is_diffusion": (_bool, _pointer),
    "llama_model_is_hybrid": (_bool, _pointer),
    "llama_model_is_recurrent": (_bool, _pointer),
    "llama_model_load_from_file": (_pointer, _string, ModelParams),
    "llama_model_n_ctx_train": (_int, _pointer),
    "llama_model_n_embd": (_int, _pointer),
    "llama_model_n_head": (_int, _pointer),
    "llama_model_n_head_kv": (_int, _pointer),
    "llama_model_n_layer": (_int, _pointer),
    "llama_model_n_params": (c.c_uint64, _pointer),
    "llama_model_n_swa": (_int, _pointer),
    "llama_model_size": (c.c_uint64, _pointer),
    "llama_n_ctx": (c.c_uint32, _pointer),
    "llama_sampler_free": (None, _pointer),
    "llama_sampler_init_greedy": (_pointer,),
    "llama_sampler_sample": (_int, _pointer, _pointer, _int),
    "llama_set_abort_callback": (None, _pointer, _pointer, _pointer),
    "llama_set_causal_attn": (None, _pointer, _bool),
    "llama_supports_gpu_offload": (_bool,),
    "llama_state_seq_get_data": (c.c_size_t, _pointer, _pointer, c.c_size_t, _int),
    "llama_state_seq_get_size": (c.c_size_t, _pointer, _int),
    "llama_state_seq_set_data": (c.c_size_t, _pointer, _pointer, c.c_size_t, _int),
    "llama_token_to_piece": (_int, _pointer, _int, c.c_char_p, _int, _int, _bool),
    "llama_tokenize": (_int, _pointer, _string, _int, _ids, _int, _bool, _bool),
    "llama_version": (_string,),
    "llama_vocab_eos": (_int, _pointer),
    "llama_vocab_get_attr": (_int, _pointer, _int),
    "llama_vocab_is_eog": (_bool, _pointer, _int),
    "llama_vocab_n_tokens": (_int, _pointer),
    "llama_vocab_pad": (_int, _pointer),
    "llama_vocab_type": (_int, _pointer),
}  # fmt: skip
_SCHEDULER = "_ZNK13llama_context9get_schedEv"
"""Of a context: what runs its graphs.  C++, and so not exported on every system."""
_DEFAULTS = {  # of the pinned build; a field that moved shows here
    "n_ctx": 512, "n_batch": 2048, "n_ubatch": 512, "n_seq_max": 1, "n_threads": 4,
    "n_threads_batch": 4, "rope_scaling_type": -1, "pooling_type": -1, "attention_type": -1,
    "flash_attn_type": FLASH_AUTO, "yarn_ext_factor": -1.0, "defrag_thold": -1.0, "type_k": 1,
    "type_v": 1, "embeddings": False, "offload_kqv": True, "no_perf": True, "op_offload": True,
    "swa_full": True, "kv_unified": False, "n_samplers": 0,
}  # fmt: skip
_MODEL_DEFAULTS = {
    "n_gpu_layers": -1, "split_mode": 1, "load_mode": -1, "lazy_mode": 1, "main_gpu": 0,
    "vocab_only": False, "check_tensors": False, "use_extra_bufts": True, "no_host": False,
    "no_alloc": False, "load_mtp": False,
}  # fmt: skip


class LlamaLibrary:
    """llama.cpp, with the functions of `_FUNCTIONS` as attributes."""

    def __init__(self, path: Path) -> None:
        """Open and declare; BadInput if it is not the build that the declarations belong to."""
        try:
            found = c.CDLL(str(path))
            for name, (result, *arguments) in _FUNCTIONS.items():
                function = getattr(found, name)
                function.restype, function.argtypes = result, arguments
                setattr(self, name, function)
        except (OSError, AttributeError) as error:
            raise _unusable(str(error)) from error
        self._scheduler = getattr(found, _SCHEDULER, None)
        if self._scheduler is not None:
            self._scheduler.restype, self._scheduler.argtypes = _pointer, (_pointer,)
        self._check()
        self.said: deque[str] = deque(maxlen=200)  # lines of llama.cpp's own log
        self._log = LOG(self._note)
        self.llama_log_set(self._log, None)
        self.llama_backend_init()
        self.ops = self._ops()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name} is not among the functions declared")

    @property
    def last_words(self) -> str:
        """What llama.cpp said last, for the log; forgotten afterwards."""
        text = "".join(self.said)
        self.said.clear()
        return text

    def scheduler(self, context: int) -> int:
        """What runs the graphs of a context, to be asked about single nodes or not; 0 = unknown."""
        return int(self._scheduler(context) or 0) if self._scheduler is not None else 0

    @property
    def can_use_gpu(self) -> bool:
        """True if this build can put layers on a GPU, and there is one."""
        return bool(self.llama_supports_gpu_offload())

    def new_model_params(self) -> ModelParams:
        """The defaults, mapped from the file and never repacked: the weights as they lie there."""
        params: ModelParams = self.llama_model_default_params()
        params.load_mode, params.use_extra_bufts, params.n_gpu_layers = MMAP, False, 0
        return params

    def _check(self) -> None:
        """BadInput unless defaults and sizes are those of the pinned build."""
        for params, expected in (
            (self.llama_context_default_params(), _DEFAULTS),
            (self.llama_model_default_params(), _MODEL_DEFAULTS),
        ):
            for name, value in expected.items():
                if getattr(params, name) != value:
                    raise _unusable(f"{name} is {getattr(params, name)}, not {value}")
        if self.ggml_tensor_overhead() != c.sizeof(TensorStruct) + _OBJECT_BYTES:
            raise _unusable(f"a tensor takes {self.ggml_tensor_overhead()} bytes")

    def _ops(self) -> dict[str, int]:
        """The number of each operation of the graph, by name."""
        found: dict[str, int] = {}
        for number in range(200):
            name = (self.ggml_op_name(number) or b"").decode()
            if name in found:
                break
            found[name] = number
            if name == "OPT_STEP_SGD":  # the names end soon after; beyond is no table
                break
        return found

    def _note(self, level: int, text: bytes, _: Any) -> None:
        self.said.append(text.decode("utf-8", "replace"))


@functools.cache
def library() -> LlamaLibrary:
    """llama.cpp; BadInput with a next step where it can't be had."""
    version = installed_version()
    if version != VERSION:
        raise _unusable(f"version {version or 'none'} is installed, {VERSION} is needed")
    spec = importlib.util.find_spec(PACKAGE)
    folders = [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    files = [f for folder in folders for f in folder.glob(f"{PACKAGE}*") if f.suffix in _ENDINGS]
    if not files:
        raise _unusable("its compiled extension is missing")
    return LlamaLibrary(files[0])


def installed_version() -> str:
    """Of the package that carries llama.cpp; empty if there is none."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _unusable(details: str) -> BadInput:
    return BadInput(
        f"llama.cpp is not available here ({PACKAGE} {VERSION} is needed). Run the set-up again, "
        "or open the file converted to float32.",
        details,
    )
