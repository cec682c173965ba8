"""The model card of a loaded model, from its config and the model itself."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import safetensors
import tiktoken
import tokenizers
import torch
import transformers

from explorer.engine import ranks
from explorer.engine.model_files.find_layers import decoder_layers
from explorer.engine.model_files.identity import fingerprint
from explorer.engine.model_files.model_shape import shape_of, text_config
from explorer.engine.text.tokenizers import Tokenizer
from explorer.sampling.model_defaults import NOT_HERE, SETTINGS
from explorer.trace.card import ModelCard


def model_card(
    name: str,
    folder: Path,
    path: Path,
    model: Any,
    tokenizer: Tokenizer,
    files: list[Path],
    origin: str,
    dtype: str,
    device: str,
    warnings: list[str],
) -> ModelCard:
    """Everything but `capabilities`, which the self-test finds out."""
    shape = shape_of(model.config)
    pad_id, pad_note = padding_token(model, tokenizer, shape.vocab_size)
    size = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
    return ModelCard(
        name=name,
        path=str(path),
        architecture=str(model.config.model_type),
        source=origin,
        layers=shape.layers or len(decoder_layers(model)),  # a few state it for their parts only
        hidden_size=shape.hidden_size,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        vocab_size=_head_width(model) or shape.vocab_size,
        context=shape.context,
        parameters=sum(p.numel() for p in model.parameters()),
        dtype=dtype,
        device=device,
        processes=ranks.count(),
        layer_kinds=shape.layer_kinds,
        windows=shape.windows,
        kv_bytes_per_token=shape.kv_bytes_per_token(size),
        eos_ids=end_tokens(model),
        pad_id=pad_id,
        pad_note=pad_note,
        bos_policy=tokenizer.bos_policy,
        has_chat_template=tokenizer.has_chat_template,
        missing_bytes=tokenizer.missing_bytes,
        generation_defaults=generation_defaults(model),
        fingerprint=fingerprint(folder, files),
        versions=versions(),
        warnings=tuple(warnings),
    )


def end_tokens(model: Any) -> tuple[int, ...]:
    """Ids that end a generation, as the model's generation config says, else its config."""
    for holder in (getattr(model, "generation_config", None), text_config(model.config)):
        stated = getattr(holder, "eos_token_id", None)
        ids = stated if isinstance(stated, (list, tuple)) else [stated]
        known = tuple(int(i) for i in ids if isinstance(i, int) and i >= 0)
        if known:
            return known
    return ()


def padding_token(model: Any, tokenizer: Tokenizer, width: int) -> tuple[int | None, str]:
    """The id to pad with, and where it comes from, in words."""
    ends = end_tokens(model)
    own = tokenizer.pad_token_id
    if own is None:
        own = getattr(text_config(model.config), "pad_token_id", None)
    if isinstance(own, int) and 0 <= own < width:
        if own in ends:
            return own, "The end token is also the padding token; only the mask distinguishes them."
        return own, "The model's own padding token."
    if ends:
        return ends[
            0
        ], "The model defines no padding token, so the end token is used. The mask hides it."
    return (
        (0, "The model defines no padding token, so id 0 is used. The mask hides it.")
        if width
        else (None, "")
    )


def generation_defaults(model: Any) -> dict[str, Any]:
    """The sampling settings that the model's makers ship; shown, never applied unasked."""
    stated = getattr(model, "generation_config", None)
    values = {name: getattr(stated, name, None) for name in (*SETTINGS, *NOT_HERE)}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, (bool, int, float)) and value != NOT_HERE.get(name)
    }


def versions() -> dict[str, str]:
    """Of the libraries that decide the numbers."""
    named = (torch, transformers, tokenizers, safetensors, tiktoken)
    return {module.__name__: str(module.__version__) for module in named} | {
        "gguf": importlib.metadata.version("gguf")
    }


def _head_width(model: Any) -> int:
    head = model.get_output_embeddings()
    weight = getattr(head, "weight", None)
    return int(weight.shape[0]) if weight is not None else 0
