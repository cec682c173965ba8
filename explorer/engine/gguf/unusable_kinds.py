"""GGUF files that are sound and hold no model that can be opened, named for what they are."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from explorer.engine.errors import BadInput

_VISION = ("clip", "mmproj")
_VECTORS = (
    "bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2",
    "jina-bert-v3", "eurobert", "gemma-embedding", "llama-embed", "t5encoder",
)  # fmt: skip
_RERANKS = 4  # llama.cpp's pooling types: none, mean, cls, last, rank


def refuse(path: Path, metadata: dict[str, Any], tensors: Collection[str]) -> None:
    """BadInput with the next step if the file holds something other than a language model."""
    what = _what(metadata, tensors)
    if what:
        raise BadInput(f"{path.name} {what}.")


def refuse_part(path: Path, metadata: dict[str, Any]) -> None:
    """BadInput if the file is one of the parts of a model."""
    parts = metadata.get("split.count", 1)
    if not isinstance(parts, int) or parts < 2:
        return
    raise BadInput(
        f"{path.name} is one of {parts} parts of a model; join them with llama.cpp's "
        "`llama-gguf-split --merge` and open the whole file."
    )


def _what(metadata: dict[str, Any], tensors: Collection[str]) -> str:
    architecture = str(metadata.get("general.architecture", ""))
    kind = metadata.get("general.type")
    if kind == "adapter" or "adapter.type" in metadata or _lora(tensors):
        return _adapter(metadata)
    if kind == "mmproj" or architecture in _VISION or "clip.has_vision_encoder" in metadata:
        return (
            "holds the part of a model that sees or hears (mmproj), not its language model; open "
            "the model's other .gguf file"
        )
    if kind == "imatrix" or "imatrix.datasets" in metadata:
        return (
            "is an importance matrix, a table for quantising a model, not a model; open the "
            "model's own .gguf file"
        )
    if architecture == "controlvector":
        return "is a control vector, which only steers a model; open the model it was made for"
    pooling = metadata.get(f"{architecture}.pooling_type", 0)
    if pooling == _RERANKS or any(name.startswith("cls.") for name in tensors):
        return (
            "is a reranker: it scores how well texts fit a question and does not continue a text; "
            "choose a model that generates text"
        )
    if architecture in _VECTORS or pooling:
        return (
            "is an embedding model: it turns a text into a vector and does not continue it; choose "
            "a model that generates text"
        )
    if not tensors and "split.count" not in metadata:
        return "holds a model's settings or vocabulary and no weights; open the model's own file"
    return ""


def _lora(tensors: Collection[str]) -> bool:
    return bool(tensors) and all(name.endswith((".lora_a", ".lora_b")) for name in tensors)


def _adapter(metadata: dict[str, Any]) -> str:
    base = metadata.get("general.base_model.0.name") or metadata.get("general.basename")
    other = f" ({base[:100]})" if isinstance(base, str) and base else ""
    return (
        f"is a LoRA adapter, which only changes another model; merge it into its base model{other} "
        "and open the result, or open the base model"
    )
