"""Files and folders that are sound and can't be used here, named for what they are.

"Damaged" is said of what is damaged.  What is whole and something else gets its own name and a
next step: a stand-in for a file, an adapter, a part, weights packed for another library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from explorer import disk
from explorer.engine.errors import BadInput

_POINTER = b"version https://git-lfs.github.com/spec/"
_PAGE = re.compile(rb"\s*<(!doctype html|html)\b", re.IGNORECASE)
_OLD = (b"lmgg", b"fmgg", b"tjgg", b"algg")  # llama.cpp's forms before GGUF
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.\w+$")
_SMALL = 1 << 20  # bytes of a settings file that is looked into for a name
_ADAPTER = "adapter_config.json"
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
# Suffixes of tensors that only packed weights have.
_PACKED_TENSORS = {
    ".qweight": "GPTQ or AWQ",
    ".quant_map": "bitsandbytes",
    ".absmax": "bitsandbytes",
    ".weight_packed": "compressed-tensors",
    ".weight_scale_inv": "FP8",
    ".weight_scale": "FP8",
    ".q_weight": "ExLlamaV2",
    ".trellis": "ExLlamaV3",
}
_METHODS = {
    "awq": "AWQ", "gptq": "GPTQ", "bitsandbytes": "bitsandbytes", "fp8": "FP8", "exl2": "ExLlamaV2",
    "exl3": "ExLlamaV3", "mxfp4": "MXFP4", "nvfp4": "NVFP4", "hqq": "HQQ", "aqlm": "AQLM",
    "mlx": "MLX",
}  # fmt: skip
# Files of weights in the forms of other libraries, by the end of their names.
_ELSEWHERE = {
    ".onnx": "ONNX Runtime", "openvino_model.xml": "OpenVINO", "flax_model.msgpack": "Flax",
    "tf_model.h5": "TensorFlow", ".tflite": "TensorFlow Lite", "rust_model.ot": "rust-bert",
    ".mlpackage": "Core ML", ".mlmodel": "Core ML",
}  # fmt: skip


def refuse_stand_in(path: Path) -> None:
    """BadInput if there is something small in the file's place: a Git LFS pointer, a web page."""
    try:
        if not path.is_file():
            return
        with path.open("rb") as file:
            start = file.read(256)
    except OSError:
        return
    if start.startswith(_POINTER):
        raise BadInput(
            f"{path.name} of {path.parent.name} is a Git LFS pointer, a note of three lines in "
            "place of the file; run `git lfs pull` in that folder, or download the model again."
        )
    if start.startswith(_OLD):
        raise BadInput(
            f"{path.name} is in the GGML form that GGUF has replaced; use a GGUF file of this "
            "model."
        )
    if _PAGE.match(start):
        raise BadInput(
            f"{path.name} of {path.parent.name} is a web page that was saved under this name; "
            "download the file itself."
        )


def refuse_folder(folder: Path) -> None:
    """BadInput if a folder without a model's config or weights is known for something else."""
    if (folder / _ADAPTER).is_file():
        base = _small_json(folder / _ADAPTER).get("base_model_name_or_path")
        other = f" ({base[:100]})" if isinstance(base, str) and base else ""
        raise BadInput(
            f"{folder.name} is a LoRA adapter, which only changes another model; merge it into its "
            f"base model{other} and open the result, or open the base model."
        )
    if (folder / "model_index.json").is_file():
        raise BadInput(
            f"{folder.name} makes pictures (diffusers) and is no language model; choose a model "
            "that generates text."
        )
    inside = sorted(path.name for path in folder.glob("*.gguf"))
    if inside and not (folder / "config.json").is_file():
        raise BadInput(f"{folder.name} holds a GGUF file; open the file itself ({inside[0]}).")


def refuse_vectors(folder: Path) -> None:
    """BadInput if the folder is that of an embedding model (sentence-transformers' layout)."""
    if "Pooling" in _small_text(folder / "modules.json"):
        raise BadInput(
            f"{folder.name} is an embedding model: it turns a text into a vector and does not "
            "continue it; choose a model that generates text."
        )


def refuse_file(path: Path) -> None:
    """BadInput for a single file that is a part of a model, or of no use by itself."""
    refuse_stand_in(path)
    if path.suffix.lower() == ".dxt":
        raise BadInput(
            f"{path.name} is a saved session, not a model; open it by itself: decoder-explorer "
            f"{path.name}."
        )
    part = _PART.search(path.name)
    if path.suffix.lower() in _WEIGHTS:
        which = f"part {int(part[1])} of {int(part[2])}" if part else "a file"
        raise BadInput(
            f"{path.name} is {which} of a model's weights; open the folder that holds it, together "
            "with its config.json and tokenizer."
        )
    for end, library in _ELSEWHERE.items():
        if path.name.endswith(end):
            raise BadInput(f"{path.name} holds weights for {library}; {_INSTEAD}.")


def no_weights(folder: Path) -> BadInput:
    """Why a folder with a config.json holds no weights that can be read."""
    names = sorted(path.name for path in folder.iterdir())
    parts = [name for name in names if _PART.search(name) and name.endswith(_WEIGHTS)]
    for end, library in _ELSEWHERE.items():
        if any(name.endswith(end) for name in names):
            return BadInput(f"{folder.name} holds weights for {library}; {_INSTEAD}.")
    if parts:
        total = int(_PART.search(parts[0])[2])  # type: ignore[index]
        return BadInput(
            f"{folder.name} holds {len(parts)} of {total} parts of the weights and no index of "
            "them (model.safetensors.index.json); download the rest of the model."
        )
    if any(name.startswith("consolidated.") for name in names):
        return BadInput(
            f"{folder.name} holds weights in their makers' own layout (consolidated); use the "
            "model in transformers' layout (model.safetensors) or a GGUF file."
        )
    if any(path.is_symlink() and not path.exists() for path in folder.iterdir()):
        return BadInput(
            f"{folder.name} holds links to files that are not on this disk; download the model "
            "again."
        )
    return BadInput(
        f"{folder.name} holds a config.json but no weights (model.safetensors or "
        "pytorch_model.bin); copy or download the whole folder."
    )


def packed_for(stated: dict[str, Any], tensors: Iterable[str] = ()) -> str:
    """The library or form that the weights are packed for, by config.json or tensors; else ""."""
    packing = stated.get("quantization_config") or stated.get("quantization")
    if isinstance(packing, dict):
        method = str(packing.get("quant_method") or "").lower()
        if method:
            return _METHODS.get(method, method[:40])
        return "MLX" if {"bits", "group_size"} <= packing.keys() else "another library"
    ends = (end for name in tensors for end in _PACKED_TENSORS if name.endswith(end))
    return _PACKED_TENSORS.get(next(ends, ""), "")


def packed(name: str, form: str, details: str = "") -> BadInput:
    """Refuses weights that are packed for another library."""
    return BadInput(
        f"The weights of {name} are packed for {form}, a form that can't be unpacked here; "
        f"{_INSTEAD}.",
        details,
    )


def _small_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_small_text(path))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _small_text(path: Path) -> str:
    """A settings file; empty if it is not there, no text, or too long to be one."""
    try:
        return disk.read_text(path, _SMALL)
    except disk.TextError:
        return ""


_INSTEAD = "use the original weights (safetensors) or a GGUF file of this model"
