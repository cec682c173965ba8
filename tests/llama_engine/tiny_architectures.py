"""What llama.cpp expects in a file of each architecture: metadata and shapes, as small as can be.

Shapes are written slowest axis first, as torch says them; a matrix is (outputs, inputs).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WIDTH, HEADS, KEY_HEADS, HEAD, HIDDEN, CONTEXT = 64, 4, 2, 16, 96, 512
EXPERTS, WINDOW = 4, 6
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Architecture:
    """Metadata (under the architecture's prefix) and tensors; the vocabulary's size is added."""

    name: str
    numbers: dict[str, Any]
    layers: tuple[Shapes, ...]
    outer: Shapes  # besides the token embeddings
    tokenizer: str = "gpt2"

    def shapes(self, vocabulary: int) -> Shapes:
        """Every tensor of the file by its whole name."""
        found = {"token_embd.weight": (vocabulary, WIDTH), **self.outer}
        if "output.weight" in found:
            found["output.weight"] = (vocabulary, WIDTH)
        for number, layer in enumerate(self.layers):
            found |= {f"blk.{number}.{name}": shape for name, shape in layer.items()}
        return found


def _numbers(layers: int, epsilon: str = "rms_", **more: Any) -> dict[str, Any]:
    return {
        "context_length": CONTEXT,
        "embedding_length": WIDTH,
        "feed_forward_length": HIDDEN,
        "block_count": layers,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KEY_HEADS,
        f"attention.layer_norm_{epsilon}epsilon": 1e-5,
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def _weights(**shapes: tuple[int, ...]) -> Shapes:
    return {f"{name}.weight": shape for name, shape in shapes.items()}


def _with_biases(shapes: Shapes) -> Shapes:
    """Each of them with a bias: one number an output."""
    return shapes | {
        name.replace(".weight", ".bias"): shape[:-1] if len(shape) > 1 else shape
        for name, shape in shapes.items()
    }


def _attention(heads: int = HEADS, keys: int = KEY_HEADS, head: int = HEAD) -> Shapes:
    return _weights(
        attn_norm=(WIDTH,), attn_q=(heads * head, WIDTH), attn_k=(keys * head, WIDTH),
        attn_v=(keys * head, WIDTH), attn_output=(WIDTH, heads * head),
    )  # fmt: skip


def _feed_forward(suffix: str = "", hidden: int = HIDDEN) -> Shapes:
    return {
        f"ffn_gate{suffix}.weight": (hidden, WIDTH),
        f"ffn_up{suffix}.weight": (hidden, WIDTH),
        f"ffn_down{suffix}.weight": (WIDTH, hidden),
    }


def _experts(hidden: int = HIDDEN) -> Shapes:
    stacked = {name: (EXPERTS, *shape) for name, shape in _feed_forward("_exps", hidden).items()}
    return {"ffn_gate_inp.weight": (EXPERTS, WIDTH), **stacked}


_NORM = _weights(ffn_norm=(WIDTH,))
_HEAD_NORMS = _weights(attn_q_norm=(HEAD,), attn_k_norm=(HEAD,))
_POST_NORMS = _weights(post_attention_norm=(WIDTH,), post_ffw_norm=(WIDTH,))
_END = _weights(output_norm=(WIDTH,))
_UNTIED = {**_END, "output.weight": ()}
_MOE = {"expert_count": EXPERTS, "expert_used_count": 2}
_LLAMA = {**_attention(), **_NORM, **_feed_forward()}


def _llama() -> Architecture:
    numbers = _numbers(3, rope__dimension_count=HEAD, rope__freq_base=10000.0)
    return Architecture("llama", numbers, (_LLAMA,) * 3, _UNTIED, "llama")


def _mixtral() -> Architecture:
    numbers = _numbers(3, rope__dimension_count=HEAD, **_MOE)
    layer = {**_attention(), **_NORM, **_experts()}
    return Architecture("llama", numbers, (layer,) * 3, _UNTIED, "llama")


def _gemma2() -> Architecture:
    numbers = _numbers(
        4, attention__key_length=HEAD, attention__value_length=HEAD,
        attention__sliding_window=WINDOW, attn_logit_softcapping=5.0, final_logit_softcapping=9.0,
    )  # fmt: skip
    return Architecture("gemma2", numbers, ({**_LLAMA, **_POST_NORMS},) * 4, _END, "llama")


def _gemma3() -> Architecture:
    """Five layers with a window, then one without."""
    numbers = _numbers(
        7, attention__key_length=32, attention__value_length=32, rope__freq_base=1e6,
        attention__sliding_window=WINDOW,
    )  # fmt: skip
    norms = _weights(attn_q_norm=(32,), attn_k_norm=(32,))
    layer = {**_LLAMA, **_attention(head=32), **_POST_NORMS, **norms}
    return Architecture("gemma3", numbers, (layer,) * 7, _END, "llama")


def _qwen2() -> Architecture:
    biases = {
        "attn_q.bias": (HEADS * HEAD,), "attn_k.bias": (KEY_HEADS * HEAD,),
        "attn_v.bias": (KEY_HEADS * HEAD,),
    }  # fmt: skip
    return Architecture("qwen2", _numbers(3), ({**_LLAMA, **biases},) * 3, _END)


def _qwen3() -> Architecture:
    numbers = _numbers(3, attention__key_length=HEAD, attention__value_length=HEAD)
    return Architecture("qwen3", numbers, ({**_LLAMA, **_HEAD_NORMS},) * 3, _UNTIED)


def _qwen2moe() -> Architecture:
    hidden = 32
    numbers = _numbers(3, expert_feed_forward_length=hidden, **_MOE)
    numbers["expert_shared_feed_forward_length"] = hidden
    layer = {
        **_qwen2().layers[0], **_experts(hidden), **_feed_forward("_shexp", hidden),
        "ffn_gate_inp_shexp.weight": (WIDTH,),
    }  # fmt: skip
    layer = {name: shape for name, shape in layer.items() if name not in _feed_forward()}
    return Architecture("qwen2moe", numbers, (layer,) * 3, _UNTIED)


def _phi3() -> Architecture:
    numbers = _numbers(3, rope__dimension_count=HEAD, attention__sliding_window=0)
    layer = _NORM | _weights(
        attn_norm=(WIDTH,), attn_qkv=((HEADS + 2 * KEY_HEADS) * HEAD, WIDTH),
        attn_output=(WIDTH, HEADS * HEAD), ffn_up=(2 * HIDDEN, WIDTH), ffn_down=(WIDTH, HIDDEN),
    )  # fmt: skip
    return Architecture("phi3", numbers, (layer,) * 3, _UNTIED, "llama")


def _older(name: str, keys: int, biased: bool, outer: Shapes, ffn_norm: bool) -> Architecture:
    """GPT-2, Falcon and Bloom: layer norms, one matrix for Q, K and V, no gate."""
    numbers = _numbers(3, "")
    numbers["attention.head_count_kv"] = keys
    layer = _weights(
        attn_qkv=((HEADS + 2 * keys) * HEAD, WIDTH), attn_output=(WIDTH, WIDTH),
        ffn_up=(4 * WIDTH, WIDTH), ffn_down=(WIDTH, 4 * WIDTH),
    )  # fmt: skip
    numbers["feed_forward_length"] = 4 * WIDTH
    norms = _weights(attn_norm=(WIDTH,)) | (_NORM if ffn_norm else {})
    layer = _with_biases(norms) | (_with_biases(layer) if biased else layer)
    return Architecture(name, numbers, (layer,) * 3, {**_with_biases(_END), **outer})


def _gpt2() -> Architecture:
    return _older("gpt2", HEADS, True, {"position_embd.weight": (CONTEXT, WIDTH)}, True)


def _falcon() -> Architecture:
    return _older("falcon", 1, False, {"output.weight": ()}, False)


def _bloom() -> Architecture:
    """ALiBi: a bias by distance in place of positions."""
    return _older("bloom", HEADS, True, _with_biases(_weights(token_embd_norm=(WIDTH,))), True)


def _deepseek2() -> Architecture:
    """Latent attention as files have it today: one latent key for all heads."""
    latent, rotary, whole, value = 32, 8, 24, 16
    numbers = _numbers(
        3, attention__q_lora_rank=32, attention__kv_lora_rank=latent,
        attention__key_length=latent + rotary, attention__value_length=latent,
        attention__key_length_mla=whole, attention__value_length_mla=value,
        rope__dimension_count=rotary, leading_dense_block_count=1, expert_feed_forward_length=32,
        expert_shared_count=1, expert_weights_scale=1.0, expert_gating_func=2,
        expert_weights_norm=True, **_MOE,
    )  # fmt: skip
    numbers["attention.head_count_kv"] = 1
    attention = _NORM | _weights(
        attn_norm=(WIDTH,), attn_q_a=(32, WIDTH), attn_q_a_norm=(32,),
        attn_q_b=(HEADS * whole, 32), attn_kv_a_mqa=(latent + rotary, WIDTH),
        attn_kv_a_norm=(latent,), attn_k_b=(HEADS, latent, whole - rotary),
        attn_v_b=(HEADS, value, latent), attn_output=(WIDTH, HEADS * value),
    )  # fmt: skip
    sparse = {**attention, **_experts(32), **_feed_forward("_shexp", 32)}
    sparse["exp_probs_b.bias"] = (EXPERTS,)
    return Architecture(
        "deepseek2", numbers, ({**attention, **_feed_forward()}, sparse, sparse), _UNTIED
    )


def _gpt_oss() -> Architecture:
    """Sinks; every other layer has a window."""
    numbers = _numbers(
        4, attention__key_length=HEAD, attention__value_length=HEAD, rope__freq_base=150000.0,
        attention__sliding_window=WINDOW, expert_feed_forward_length=HIDDEN, **_MOE,
    )  # fmt: skip
    layer = _with_biases({**_attention(), **_experts()})
    del layer["attn_norm.bias"]
    layer |= _weights(post_attention_norm=(WIDTH,), attn_sinks=(HEADS,))
    return Architecture("gpt-oss", numbers, (layer,) * 4, _UNTIED)


def _mamba() -> Architecture:
    """No attention at all: a recurrent state."""
    inner, state, rank = 2 * WIDTH, 16, 8
    numbers = {
        **_numbers(3), "feed_forward_length": 0, "ssm.conv_kernel": 4, "ssm.inner_size": inner,
        "ssm.state_size": state, "ssm.time_step_rank": rank,
    }  # fmt: skip
    numbers |= {"attention.head_count": 0, "attention.head_count_kv": 0}
    layer = _weights(
        attn_norm=(WIDTH,), ssm_in=(2 * inner, WIDTH), ssm_conv1d=(inner, 4),
        ssm_x=(rank + 2 * state, inner), ssm_dt=(inner, rank), ssm_out=(WIDTH, inner),
    )  # fmt: skip
    layer |= {
        "ssm_conv1d.bias": (inner,), "ssm_dt.bias": (inner,), "ssm_a": (inner, state),
        "ssm_d": (inner,),
    }  # fmt: skip
    return Architecture("mamba", numbers, (layer,) * 3, _END)


def _mamba2(inner: int, heads: int, groups: int, state: int) -> tuple[dict[str, int], Shapes]:
    """Metadata and tensors of one mixer with a recurrent state, as in hybrids."""
    mixed = inner + 2 * groups * state
    numbers = {
        "ssm.conv_kernel": 4, "ssm.inner_size": inner, "ssm.state_size": state,
        "ssm.group_count": groups, "ssm.time_step_rank": heads,
    }  # fmt: skip
    shapes = _weights(
        ssm_in=(inner + mixed + heads, WIDTH), ssm_conv1d=(mixed, 4), ssm_out=(WIDTH, inner),
        ssm_norm=(groups, inner // groups),
    )  # fmt: skip
    shapes |= {
        "ssm_conv1d.bias": (mixed,), "ssm_dt.bias": (heads,), "ssm_a": (heads, 1),
        "ssm_d": (heads, 1),
    }  # fmt: skip
    return numbers, shapes


def _falcon_h1() -> Architecture:
    """Attention and a recurrent state side by side in every layer."""
    mixed, mixer = _mamba2(2 * WIDTH, 4, 1, 16)
    numbers = _numbers(3, attention__key_length=HEAD, attention__value_length=HEAD) | mixed
    norm = {"ffn_norm": (WIDTH,)}  # so it stands in such files
    layer = {**_attention(), **mixer, **norm, **_feed_forward()}
    return Architecture("falcon-h1", numbers, (layer,) * 3, _UNTIED)


def _granite_hybrid() -> Architecture:
    """Recurrent layers with one of attention between them."""
    mixed, mixer = _mamba2(2 * WIDTH, 4, 1, 16)
    numbers = _numbers(3, rope__dimension_count=HEAD) | mixed
    numbers |= {"attention.head_count_kv": [0, KEY_HEADS, 0], "attention.scale": 0.2}
    numbers |= {"embedding_scale": 2.0, "residual_scale": 0.7, "logit_scale": 1.5}
    rest = {**_weights(attn_norm=(WIDTH,)), **_NORM, **_feed_forward()}
    return Architecture(
        "granitehybrid", numbers, ({**rest, **mixer}, _LLAMA, {**rest, **mixer}), _UNTIED
    )


def _lfm2() -> Architecture:
    """Short convolutions, every other layer with attention."""
    numbers = _numbers(4, shortconv__l_cache=3, rope__freq_base=1e6)
    numbers["attention.head_count_kv"] = [0, KEY_HEADS, 0, KEY_HEADS]
    conv = {**_NORM, **_feed_forward(), "attn_norm.weight": (WIDTH,)} | {
        "shortconv.conv.weight": (WIDTH, 3), "shortconv.in_proj.weight": (3 * WIDTH, WIDTH),
        "shortconv.out_proj.weight": (WIDTH, WIDTH),
    }  # fmt: skip
    full = {**_LLAMA, **_HEAD_NORMS}
    return Architecture("lfm2", numbers, (conv, full) * 2, _weights(token_embd_norm=(WIDTH,)))


def _qwen35() -> Architecture:
    """Three layers of gated delta rule, then one of gated attention."""
    state, groups, heads = 16, 2, 4
    inner, mixed = heads * state, (heads + 2 * groups) * state
    numbers = _numbers(
        4, attention__key_length=HEAD, attention__value_length=HEAD, rope__dimension_count=8,
        rope__dimension_sections=[2, 1, 1, 0], rope__freq_base=1e6, full_attention_interval=4,
        ssm__conv_kernel=4, ssm__state_size=state, ssm__group_count=groups,
        ssm__time_step_rank=heads, ssm__inner_size=inner,
    )  # fmt: skip
    rest = {**_weights(attn_norm=(WIDTH,), post_attention_norm=(WIDTH,)), **_feed_forward()}
    linear = rest | _weights(
        attn_qkv=(mixed, WIDTH), attn_gate=(inner, WIDTH), ssm_alpha=(heads, WIDTH),
        ssm_beta=(heads, WIDTH), ssm_conv1d=(mixed, 4), ssm_norm=(state,), ssm_out=(WIDTH, inner),
    )  # fmt: skip
    linear |= {"ssm_a": (heads,), "ssm_dt.bias": (heads,)}
    full = {**_attention(), **rest, **_HEAD_NORMS, "attn_q.weight": (2 * HEADS * HEAD, WIDTH)}
    return Architecture("qwen35", numbers, (linear, linear, linear, full), _UNTIED)


ARCHITECTURES: dict[str, Callable[[], Architecture]] = {
    "llama": _llama, "mixtral": _mixtral, "gemma2": _gemma2, "gemma3": _gemma3, "qwen2": _qwen2,
    "qwen3": _qwen3, "qwen2moe": _qwen2moe, "phi3": _phi3, "gpt2": _gpt2, "falcon": _falcon,
    "bloom": _bloom, "deepseek2": _deepseek2, "gpt-oss": _gpt_oss, "mamba": _mamba,
    "falcon-h1": _falcon_h1, "granitehybrid": _granite_hybrid, "lfm2": _lfm2, "qwen35": _qwen35,
}  # fmt: skip
