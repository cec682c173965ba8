"""Tiny model folders and GGUF files, as users have them, written from random models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers.modeling_gguf_pytorch_utils as legacy
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.integrations.ggml import GGUF_CONFIG_MAPPING
from transformers.tokenization_utils_tokenizers import TokenizersBackend

CORPUS = [
    "the cat sat on the mat and the dog sat on the cat",
    "one two three four five six seven eight nine ten 0 1 2 3 4 5 6 7 8 9",
    "  spaces,\ttabs\nand new lines\n\n\n are text too; 日本語 and emoji 👩‍👩‍👧 and é are as well",
]
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
VOCABULARY = 320
MORE_WIDTHS = {
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "attention.key_length": "head_dim",
}
_TRAINED: dict[int, str] = {}


def byte_level(vocabulary: int = VOCABULARY) -> Tokenizer:
    """A byte-level BPE trained on a few lines: special tokens first, then bytes and merges."""
    if vocabulary not in _TRAINED:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary,
            show_progress=False,
            special_tokens=[AddedToken(text, special=True, normalized=False) for text in SPECIAL],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
        tokenizer.train_from_iterator(CORPUS, trainer)
        _TRAINED[vocabulary] = tokenizer.to_str()
    return Tokenizer.from_str(_TRAINED[vocabulary])


def write_tokenizer(folder: Path, tokenizer: Tokenizer, **more: Any) -> None:
    """tokenizer.json and its config, with a chat template."""
    settings = {
        "bos_token": SPECIAL[0],
        "eos_token": SPECIAL[2],
        "pad_token": SPECIAL[0],
        "chat_template": CHAT,
        **more,
    }
    TokenizersBackend(tokenizer_object=tokenizer, **settings).save_pretrained(folder)


def model(kind: str = "llama", seed: int = 0, **changes: Any) -> Any:
    """A random causal model of three layers, in float32."""
    torch.manual_seed(seed)
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    if kind == "gpt2":
        sizes = {
            "vocab_size": VOCABULARY, "n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 128,
            "bos_token_id": 0, "eos_token_id": 2,
        }  # fmt: skip
    config = AutoConfig.for_model(kind, **{**sizes, **changes})
    made = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return made.eval()


def write_folder(folder: Path, made: Any, shard_size: str = "50GB") -> Path:
    """A folder in Hugging Face's layout with a byte-level tokenizer."""
    made.save_pretrained(folder, max_shard_size=shard_size)
    write_tokenizer(folder, byte_level(made.config.vocab_size))
    return folder


def greedy(made: Any, ids: list[int], count: int = 8) -> list[int]:
    """What transformers' own greedy generation adds to `ids`."""
    with torch.inference_mode():
        out = made.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
            pad_token_id=0,
        )
    return [int(i) for i in out[0, len(ids) :]]


def write_gguf(
    path: Path,
    made: Any,
    kind: gguf.GGMLQuantizationType,
    more: Callable[[gguf.GGUFWriter], None] = lambda writer: None,
) -> Path:
    """A Llama or Qwen2 model as llama.cpp's converter would write it."""
    config = made.config
    architecture = config.model_type
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    more(writer)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    _write_vocabulary(writer, byte_level(config.vocab_size), "gpt-2")
    names = gguf.get_tensor_name_map(
        gguf.MODEL_ARCH[architecture.upper()], config.num_hidden_layers
    )
    for name, value in made.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        array = value.numpy()
        if architecture == "llama" and ("q_proj" in name or "k_proj" in name):
            heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
            array = _llama_order(array, heads)
        stored = kind if array.ndim > 1 else gguf.GGMLQuantizationType.F32
        data = gguf.quantize(array, stored)
        writer.add_tensor(names.get_name(name, (".weight", ".bias")), data, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_any_gguf(path: Path, architecture: str, sizes: dict[str, Any]) -> Path:
    """Any architecture that transformers maps, with random tensors under llama.cpp's names.

    The values mean nothing; what matters is that they arrive where transformers puts them.
    """
    kind = "gemma3_text" if architecture == "gemma3" else architecture
    config = AutoConfig.for_model(kind, **sizes)
    with torch.device("meta"):
        made = AutoModelForCausalLM.from_config(config)
    named = {"qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe", "minimax_m2": "minimax-m2"}
    writer = gguf.GGUFWriter(path, prefix := named.get(architecture, architecture))
    writer.add_name("tiny")
    for key, field in GGUF_CONFIG_MAPPING[architecture].items():
        _write_number(writer, f"{prefix}.{key}", getattr(config, field or "", None))
    for key, field in MORE_WIDTHS.items():
        _write_number(writer, f"{prefix}.{key}", getattr(config, field, None))
    _write_vocabulary(writer, byte_level(config.vocab_size), "gpt-2")
    processor = legacy.TENSOR_PROCESSORS.get(prefix, legacy.TensorProcessor)(config.to_dict())
    names = legacy.get_gguf_hf_weights_map(made, processor)
    shapes = {name: tuple(value.shape) for name, value in made.state_dict().items()}
    tied = config.tie_word_embeddings
    draw = np.random.default_rng(0)
    for name, place in names.items():
        if place not in shapes or (name == "output.weight" and tied):
            continue
        shape = _stored_shape(architecture, name, shapes[place])
        values = -draw.random(shape) if name.endswith("ssm_a") else draw.normal(size=shape)
        name = (
            name if "." in name.rsplit("_exps", 1)[-1] or "_exps" not in name else f"{name}.weight"
        )
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_newer_gguf(path: Path, architecture: str) -> Path:
    """A hybrid of the newest kind: Qwen 3.5 or LFM2, random tensors under llama.cpp's names."""
    numbers, kinds, stack = NEWER[architecture]
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in numbers.items():
        if isinstance(value, list):
            writer.add_array(f"{architecture}.{key}", value)
        else:
            _write_number(writer, f"{architecture}.{key}", value)
    _write_vocabulary(writer, byte_level(), "gpt-2")
    draw = np.random.default_rng(0)
    shapes = {"token_embd.weight": (320, 64)}
    shapes[{"qwen35": "output_norm.weight", "lfm2": "token_embd_norm.weight"}[architecture]] = (64,)
    for number, layer in enumerate(stack):
        shapes |= {f"blk.{number}.{name}": shape for name, shape in kinds[layer].items()}
    for name, shape in shapes.items():
        values = -draw.random(shape) if name.endswith("ssm_a") else draw.normal(size=shape) * 0.2
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


_SIZES = {
    "context_length": 128, "embedding_length": 64, "feed_forward_length": 96, "block_count": 4,
    "attention.head_count": 4, "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 10000.0,
}  # fmt: skip
_FEED_FORWARD = {
    "ffn_gate.weight": (96, 64), "ffn_up.weight": (96, 64), "ffn_down.weight": (64, 96),
    "attn_norm.weight": (64,),
}  # fmt: skip
_QWEN35 = {**_FEED_FORWARD, "post_attention_norm.weight": (64,)}
NEWER: dict[str, Any] = {
    "qwen35": (
        {
            **_SIZES, "attention.head_count_kv": 2, "attention.key_length": 16,
            "full_attention_interval": 4, "ssm.conv_kernel": 4, "ssm.state_size": 8,
            "ssm.group_count": 2, "ssm.time_step_rank": 4, "ssm.inner_size": 32,
            "rope.dimension_count": 8, "rope.dimension_sections": [2, 1, 1, 0],
        },
        {
            "linear": {
                **_QWEN35, "attn_qkv.weight": (64, 64), "attn_gate.weight": (32, 64),
                "ssm_alpha.weight": (4, 64), "ssm_beta.weight": (4, 64), "ssm_a": (4,),
                "ssm_conv1d.weight": (64, 4), "ssm_norm.weight": (8,), "ssm_dt.bias": (4,),
                "ssm_out.weight": (64, 32),
            },
            "full": {
                **_QWEN35, "attn_q.weight": (128, 64), "attn_k.weight": (32, 64),
                "attn_v.weight": (32, 64), "attn_output.weight": (64, 64),
                "attn_q_norm.weight": (16,), "attn_k_norm.weight": (16,),
            },
        },
        ("linear", "linear", "linear", "full"),
    ),
    "lfm2": (
        {**_SIZES, "attention.head_count_kv": [0, 2, 0, 2], "shortconv.l_cache": 3},
        {
            "conv": {
                **_FEED_FORWARD, "ffn_norm.weight": (64,), "shortconv.conv.weight": (64, 3),
                "shortconv.in_proj.weight": (192, 64), "shortconv.out_proj.weight": (64, 64),
            },
            "full": {
                **_FEED_FORWARD, "ffn_norm.weight": (64,), "attn_q.weight": (64, 64),
                "attn_k.weight": (32, 64), "attn_v.weight": (32, 64),
                "attn_output.weight": (64, 64), "attn_q_norm.weight": (16,),
                "attn_k_norm.weight": (16,),
            },
        },
        ("conv", "full", "conv", "full"),
    ),
}  # fmt: skip


def _write_number(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        writer.add_uint32(key, value)
    if isinstance(value, float):
        writer.add_float32(key, value)


def _stored_shape(architecture: str, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """How the file stores what the model holds in `shape`."""
    if "ffn_gate_exps" in name or "ffn_up_exps" in name:  # the model joins the two
        return (shape[0], shape[1] // 2, shape[2])
    turned = ("attn_qkv.weight", "ffn_down.weight", "ffn_up.weight", "attn_output.weight")
    if architecture == "gpt2" and name.endswith(turned):
        return shape[::-1]
    if "ssm_conv1d.weight" in name or "shortconv.conv.weight" in name:
        return (shape[0], shape[2])
    return shape[1:] if "ffn_gate_inp_shexp" in name else shape


def _write_vocabulary(writer: gguf.GGUFWriter, tokenizer: Tokenizer, tag: str) -> None:
    entries = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(tag)
    writer.add_token_list([text for text, _ in entries])
    writer.add_token_types([3 if text in SPECIAL else 1 for text, _ in entries])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT)


def _llama_order(array: Any, heads: int) -> Any:
    """llama.cpp interleaves the two halves of each rotary head."""
    return (
        array.reshape(heads, 2, array.shape[0] // heads // 2, *array.shape[1:])
        .swapaxes(1, 2)
        .reshape(array.shape)
    )
