"""The tokenizer that a GGUF file describes, written as tokenizer.json beside the weights."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from tokenizers import pre_tokenizers
from transformers import GenerationConfig
from transformers.integrations.gguf.gguf_tokenizer_mapping import (
    GGUF_PRE_TOKENIZER_SPLITS,
    GGUF_TOKENIZER_MAPPING,
    convert_gguf_tokenizer,
)
from transformers.tokenization_utils_tokenizers import TokenizersBackend

from explorer.engine.errors import BadInput
from explorer.engine.gguf.header import Header

_SPECIAL = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
# Tags of tokenizers that split off every digit before GPT-2's own pattern; transformers' GGUF
# route forgets it.
_DIGITS_APART = ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b")
# Tags whose pattern is GPT-2's, which is what transformers takes where it knows nothing better.
_AS_GPT2 = ("gpt-2", "mpt", "olmo", "jais", "phi-2", "granite-docling", "trillion", "gpt3-finnish")
_AS_QWEN2 = ("stablelm2", "hunyuan")


def special_ids(header: Header) -> dict[str, Any]:
    """bos, eos and pad ids as the file states them, for the config."""
    ids: dict[str, Any] = {}
    for name in ("bos", "eos", "padding"):
        value = header.metadata.get(f"tokenizer.ggml.{name}_token_id")
        if isinstance(value, int):
            ids["pad_token_id" if name == "padding" else f"{name}_token_id"] = value
    return ids


def end_ids(header: Header) -> list[int]:
    """Ids that end an answer: end of sequence, and end of turn where the file names one."""
    named = ("eos_token_id", "eot_token_id", "eom_token_id")
    ids = [header.metadata.get(f"tokenizer.ggml.{name}") for name in named]
    return list(dict.fromkeys(i for i in ids if isinstance(i, int)))


def write(header: Header, folder: Path) -> list[str]:
    """tokenizer.json, tokenizer_config.json and generation_config.json; notes for the user.

    BadInput if the tokenizer cannot be rebuilt.
    """
    try:
        tokenizer = _tokenizer(header)
    except Exception as error:  # a vocabulary may be broken in many ways
        raise BadInput(
            f"The tokenizer inside {header.path.name} cannot be rebuilt; use the model's "
            "safetensors folder instead.",
            traceback.format_exc(),
        ) from error
    tokenizer.save_pretrained(folder)
    generation: dict[str, Any] = dict(special_ids(header))
    if ends := end_ids(header):
        generation["eos_token_id"] = ends if len(ends) > 1 else ends[0]
    GenerationConfig(**generation).save_pretrained(folder)
    return guesses(header)


def _tokenizer(header: Header) -> Any:
    metadata = header.metadata
    described, config = (
        {
            name: metadata[f"tokenizer.{key}"]
            for key, name in GGUF_TOKENIZER_MAPPING[group].items()
            if f"tokenizer.{key}" in metadata
        }
        for group in ("tokenizer", "tokenizer_config")
    )
    if described.get("tokenizer_type") == "llama":
        config.setdefault("add_bos_token", True)
    elif described.get("tokenizer_type") == "gemma4":
        config["add_bos_token"] = False  # its chat template writes the token itself
    tokens = described["tokens"]
    for name, key in _SPECIAL.items():
        place = metadata.get(f"tokenizer.ggml.{key}")
        config[name] = tokens[place] if isinstance(place, int) and place < len(tokens) else None
    backend, _ = convert_gguf_tokenizer(header.architecture, described)
    tag = described.get("pre_tokenizer_type")
    if tag in _DIGITS_APART:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
    if tag in _AS_QWEN2:
        described["pre_tokenizer_type"] = "qwen2"
        backend, _ = convert_gguf_tokenizer(header.architecture, described)
    return TokenizersBackend(tokenizer_object=backend, **config)


def guesses(header: Header) -> list[str]:
    """A note if nobody says here how this vocabulary splits text into words."""
    tag = header.metadata.get("tokenizer.ggml.pre")
    known = (*_DIGITS_APART, *_AS_GPT2, *_AS_QWEN2, *GGUF_PRE_TOKENIZER_SPLITS)
    if header.metadata.get("tokenizer.ggml.model") != "gpt2" or tag in known:
        return []
    return [
        f"This tokenizer's rule for splitting text (tag {tag}) is unknown. GPT-2's rule "
        "is used, so some text may get different tokens than in the original model."
    ]
