"""A trained build as a model folder: weights, config.json and a tokenizer of bytes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from explorer import disk
from explorer.engine.errors import BadInput
from explorer.engine.training.tasks import PAD_ID, ROW, VOCABULARY
from explorer.reference.encoder import EncoderGPT
from explorer.reference.gpt2_layout import turned
from explorer.reference.modern import ModernDecoder
from explorer.reference.primitives import PrimitivesGPT, load_encoder
from explorer.trace.training.settings import TrainingSettings

PAD = "<|pad|>"
MODERN_CONTEXT = 512  # rotary positions have no last one; training saw the first `ROW`


def write(
    model: ModernDecoder | EncoderGPT | PrimitivesGPT, settings: TrainingSettings, folder: Path
) -> None:
    """Write the folder, whole or not at all; BadInput in one sentence if that can't be."""
    if "residual" in settings.wrong:
        raise BadInput(
            "A model without residual connections can't be saved: no model that transformers "
            "knows is built so. Train it with them to save it."
        )
    if isinstance(model, ModernDecoder):
        config, weights = _llama(model, settings), dict(model.state_dict())
    else:
        config, weights = _gpt2(model, settings), _gpt2_weights(model)
    if "untied" not in settings.wrong:
        del weights["lm_head.weight"]
    files = {
        "config.json": _json(config),
        "tokenizer.json": _json(byte_tokenizer()),
        "tokenizer_config.json": _json(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "pad_token": PAD,
                "padding_side": "left",
                "clean_up_tokenization_spaces": False,
                "model_input_names": ["input_ids", "attention_mask"],
            }
        ),
        "generation_config.json": _json({"pad_token_id": PAD_ID}),
        "model.safetensors": safetensors.torch.save(
            {name: weight.detach().contiguous() for name, weight in weights.items()},
            {"format": "pt"},
        ),
    }
    _write_all(folder, files)


def check_empty(folder: Path) -> None:
    """BadInput unless the folder is new, or empty."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        kind = "is not empty" if folder.is_dir() else "is a file"
        raise BadInput(f"{folder} {kind}. Name a new folder for the trained model.")


def _write_all(folder: Path, files: dict[str, bytes]) -> None:
    check_empty(folder)
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():  # the weights last: without them it is no model
            disk.write(folder / name, data)
    except OSError as error:
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            for name in files:
                (folder / name).unlink(missing_ok=True)
        raise BadInput(
            f"The model could not be saved in {folder}: {disk.why(error)}. Choose another folder."
        ) from error


def _llama(model: ModernDecoder, settings: TrainingSettings) -> dict[str, Any]:
    config = model.config
    stated = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": config.width,
        "intermediate_size": config.mlp_width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_width,
        "hidden_act": "silu",
        "max_position_embeddings": MODERN_CONTEXT,
        "rms_norm_eps": config.norm_epsilon,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_base},
        "tie_word_embeddings": config.tied,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": PAD_ID,
        "dtype": "float32",
    }
    if not config.rotary:  # the same layout, with a list of layers that have no positions
        stated |= {
            "architectures": ["SmolLM3ForCausalLM"],
            "model_type": "smollm3",
            "no_rope_layers": [0] * config.layers,
            "use_sliding_window": False,
        }
    return stated


def _gpt2(model: EncoderGPT | PrimitivesGPT, settings: TrainingSettings) -> dict[str, Any]:
    config = model.config
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": VOCABULARY,
        "n_positions": ROW,
        "n_embd": config.width,
        "n_layer": config.layers,
        "n_head": config.heads,
        "activation_function": "gelu",
        "layer_norm_epsilon": 1e-5,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "tie_word_embeddings": config.tied,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": PAD_ID,
        "dtype": "float32",
    }


def _gpt2_weights(model: EncoderGPT | PrimitivesGPT) -> dict[str, Tensor]:
    if isinstance(model, EncoderGPT):
        written_out = PrimitivesGPT(model.config)
        load_encoder(written_out, model)
        model = written_out
    return turned(model.state_dict())


def byte_tokenizer() -> dict[str, Any]:
    """tokenizer.json: 256 bytes and the padding token, nothing merged."""
    byte_level = {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False,
    }  # fmt: skip
    pad = {
        "id": PAD_ID, "content": PAD, "single_word": False, "lstrip": False, "rstrip": False,
        "normalized": False, "special": True,
    }  # fmt: skip
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [pad],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {letter: byte for byte, letter in enumerate(_byte_letters())},
            "merges": [],
        },
    }


def _byte_letters() -> list[str]:
    """The letter that byte-level tokenizers write for each byte: its own, if that is visible."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in shown else next(others)) for byte in range(256)]


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
