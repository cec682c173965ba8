"""The structs and callbacks of llama.cpp's C interface, laid out as in the pinned build."""

from __future__ import annotations

import ctypes as c

ABORT = c.CFUNCTYPE(c.c_bool, c.c_void_p)
EVAL = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_bool, c.c_void_p)
"""(tensor, ask, data): asked before a node is computed, called again once a wanted one is."""
EVAL_NODE = c.CFUNCTYPE(c.c_bool, c.c_void_p)
"""The same of the tensor alone: a C function may leave arguments at the end unread."""
TICK = c.CFUNCTYPE(c.c_bool)
"""An abort callback that leaves its argument unread, likewise."""
LOG = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)
PROGRESS = c.CFUNCTYPE(c.c_bool, c.c_float, c.c_void_p)

MMAP, LAZY_OFF = 1, 0  # llama_load_mode, llama_lazy_mode
FLASH_AUTO, FLASH_OFF, FLASH_ON = -1, 0, 1


class ModelParams(c.Structure):
    """llama_model_params."""

    _fields_ = (
        ("devices", c.c_void_p),
        ("tensor_buft_overrides", c.c_void_p),
        ("n_gpu_layers", c.c_int32),
        ("split_mode", c.c_int32),
        ("load_mode", c.c_int32),
        ("lazy_mode", c.c_int32),
        ("main_gpu", c.c_int32),
        ("tensor_split", c.c_void_p),
        ("progress_callback", PROGRESS),
        ("progress_callback_user_data", c.c_void_p),
        ("kv_overrides", c.c_void_p),
        ("vocab_only", c.c_bool),
        ("check_tensors", c.c_bool),
        ("use_extra_bufts", c.c_bool),
        ("no_host", c.c_bool),
        ("no_alloc", c.c_bool),
        ("load_mtp", c.c_bool),
    )


class ContextParams(c.Structure):
    """llama_context_params."""

    _fields_ = (
        ("n_ctx", c.c_uint32),
        ("n_batch", c.c_uint32),
        ("n_ubatch", c.c_uint32),
        ("n_seq_max", c.c_uint32),
        ("n_rs_seq", c.c_uint32),
        ("n_outputs_max", c.c_uint32),
        ("n_outputs_max_per_seq", c.c_uint32),
        ("n_threads", c.c_int32),
        ("n_threads_batch", c.c_int32),
        ("ctx_type", c.c_int32),
        ("rope_scaling_type", c.c_int32),
        ("pooling_type", c.c_int32),
        ("attention_type", c.c_int32),
        ("flash_attn_type", c.c_int32),
        ("rope_freq_base", c.c_float),
        ("rope_freq_scale", c.c_float),
        ("yarn_ext_factor", c.c_float),
        ("yarn_attn_factor", c.c_float),
        ("yarn_beta_fast", c.c_float),
        ("yarn_beta_slow", c.c_float),
        ("yarn_orig_ctx", c.c_uint32),
        ("defrag_thold", c.c_float),
        ("cb_eval", EVAL),
        ("cb_eval_user_data", c.c_void_p),
        ("type_k", c.c_int32),
        ("type_v", c.c_int32),
        ("abort_callback", c.c_void_p),
        ("abort_callback_data", c.c_void_p),
        ("unnamed", c.c_void_p),  # eight bytes that are 0 by default and are left so
        ("embeddings", c.c_bool),
        ("offload_kqv", c.c_bool),
        ("no_perf", c.c_bool),
        ("op_offload", c.c_bool),
        ("swa_full", c.c_bool),
        ("kv_unified", c.c_bool),
        ("samplers", c.c_void_p),
        ("n_samplers", c.c_size_t),
        ("ctx_other", c.c_void_p),
    )


class Batch(c.Structure):
    """llama_batch."""

    _fields_ = (
        ("n_tokens", c.c_int32),
        ("token", c.POINTER(c.c_int32)),
        ("embd", c.c_void_p),
        ("pos", c.POINTER(c.c_int32)),
        ("n_seq_id", c.POINTER(c.c_int32)),
        ("seq_id", c.POINTER(c.POINTER(c.c_int32))),
        ("logits", c.POINTER(c.c_int8)),
    )


class InitParams(c.Structure):
    """ggml_init_params."""

    _fields_ = (
        ("mem_size", c.c_size_t),
        ("mem_buffer", c.c_void_p),
        ("no_alloc", c.c_bool),
    )


class TensorStruct(c.Structure):
    """ggml_tensor: one node of the graph that is computed."""

    _fields_ = (
        ("type", c.c_int32),
        ("buffer", c.c_void_p),
        ("ne", c.c_int64 * 4),
        ("nb", c.c_size_t * 4),
        ("op", c.c_int32),
        ("op_params", c.c_int32 * 16),
        ("flags", c.c_int32),
        ("src", c.c_void_p * 10),
        ("view_src", c.c_void_p),
        ("view_offs", c.c_size_t),
        ("data", c.c_void_p),
        ("name", c.c_char * 64),
        ("extra", c.c_void_p),
        ("padding", c.c_char * 8),
    )


class TypeTraits(c.Structure):
    """ggml_type_traits: one of the types that numbers are stored in."""

    _fields_ = (
        ("type_name", c.c_char_p),
        ("blck_size", c.c_int64),
        ("blck_size_interleave", c.c_int64),
        ("type_size", c.c_size_t),
        ("is_quantized", c.c_bool),
        ("to_float", c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_int64)),
        ("from_float_ref", c.c_void_p),
    )


class CpuTypeTraits(c.Structure):
    """ggml_type_traits_cpu: how the processor multiplies by such numbers."""

    _fields_ = (
        ("from_float", c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_int64)),
        ("vec_dot", c.c_void_p),
        ("vec_dot_type", c.c_int32),
        ("nrows", c.c_int64),
    )
