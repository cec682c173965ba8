"""GGUF architectures that transformers reads in a newer way, all by itself: Qwen 3.5, LFM2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import GgufConfig
from transformers.integrations.gguf import GGUF_ARCHS, GGUF_CONFIG_ARCHS, get_gguf_config
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from explorer.engine.callbacks import Report, Stop
from explorer.engine.errors import BadInput
from explorer.engine.gguf.header import Header
from explorer.engine.model_files.configs import causal_class
from explorer.engine.progress import library_bars


def reads(header: Header) -> bool:
    """True if the file is of one of these architectures."""
    return header.architecture in GGUF_ARCHS and header.architecture in GGUF_CONFIG_ARCHS


def config_of(header: Header) -> Any:
    """transformers' config for the file."""
    tokens = header.metadata.get("tokenizer.ggml.tokens", ())
    metadata = {**header.metadata, "tokenizer.ggml.tokens": len(tokens)}
    stated = get_gguf_config(metadata, tuple(tensor.name for tensor in header.tensors))
    return CONFIG_MAPPING[stated.pop("model_type")].from_dict(stated)


def write_weights(
    header: Header, config: Any, folder: Path, progress: Report, cancelled: Stop
) -> None:
    """Let transformers dequantise the whole model to float32, and save that."""
    kind, part = causal_class(config)
    with library_bars(progress, cancelled):
        model, info = kind.from_pretrained(
            header.path.parent,
            gguf_file=str(header.path),
            config=part,
            dtype=torch.float32,
            quantization_config=GgufConfig(gguf_file=str(header.path), dequantize=True),
            local_files_only=True,
            output_loading_info=True,
        )
    if info["missing_keys"]:
        missing = sorted(info["missing_keys"])
        raise BadInput(
            f"{header.path.name} lacks {len(missing)} of the weights that its architecture "
            f"needs ({missing[0]}…); use another file of this model."
        )
    model.hf_quantizer = None  # else it refuses to be saved
    vars(model.config).pop("quantization_config", None)
    model.save_pretrained(folder)
