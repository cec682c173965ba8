"""Opening a model: weights, config, tokenizer and card, or one sentence that says why not."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from explorer.engine import catalog, ceiling, contents, gguf, own_code
from explorer.engine.card import model_card
from explorer.engine.configs import causal_class, read_config
from explorer.engine.errors import BadInput, Cancelled, EngineError, NoMemory
from explorer.engine.identity import Watched
from explorer.engine.libraries import no_compiler
from explorer.engine.memory import check_fits
from explorer.engine.progress import Progress, library_bars, never, nobody, nothing
from explorer.engine.shape import shape_of
from explorer.engine.skeleton import count, kept_per_token, latent_width, skeleton
from explorer.engine.tokenizers import Tokenizer, load_tokenizer
from explorer.engine.weights import safetensors_header, stored_numbers, weight_files
from explorer.trace.card import ModelCard
from explorer.trace.fingerprint import Fingerprint

_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run: eval mode, no gradients."""

    model: Any
    config: Any
    tokenizer: Tokenizer
    card: ModelCard
    watched: Watched = Watched(())  # noqa: RUF009 - frozen


def load(
    model: str,
    dtype: str = "float32",
    device: str = "cpu",
    progress: Progress = nobody,
    cancelled: Callable[[], bool] = never,
    allow_code: bool = False,
    make_room: Callable[[], None] = nothing,
    room_bytes: int = 0,
    like: Fingerprint | None = None,
) -> LoadedModel:
    """Open `model` (see `catalog.resolve`).

    `make_room` is called once all looks well, before the weights are read; it frees `room_bytes`.
    BadInput or EngineError with one sentence if it cannot be opened (NeedsCode if it brings code of
    its own, without `allow_code`), Cancelled if `cancelled` turned true.
    """
    if dtype not in _DTYPES:
        raise BadInput(f"There is no dtype {dtype}; choose float32, bfloat16 or float16.")
    check_device(device)
    source = catalog.resolve(model, like)
    folder, origin = source.path, "safetensors"
    warnings: list[str] = []
    if source.kind == "gguf":
        if not gguf.is_converted(source.path):  # else the folder's own files tell
            held = contents.of_gguf(source.path)
            check_fits(source.name, held.parameters, held.shape, dtype, device, room_bytes)
        folder, converted = gguf.as_folder(source.path, progress, cancelled)
        origin = converted.origin
        warnings += converted.notes
    progress("Reading the tokenizer", None)
    config = read_config(folder, allow_code)
    brings_code = own_code.class_of(config) is not None
    if brings_code:
        warnings.append(
            "This model runs program code of its own, which you allowed for this one time."
        )
    tokenizer = load_tokenizer(folder, plain=brings_code)
    files = _whole_files(folder)
    watched = Watched.of([*files, source.path] if source.kind == "gguf" else files)
    if tokenizer.assumption:
        warnings.append(tokenizer.assumption)
    if files[0].suffix == ".bin":
        origin = "pickle (.bin)"
        warnings.append(
            "The weights are pickle files (.bin), a form that can hide programs; they are read in "
            "torch's restricted mode, which runs none."
        )
    kept = _check_size(source.name, config, files, dtype, device, room_bytes)
    make_room()
    loaded = _load_weights(folder, config, dtype, progress, cancelled, warnings)
    loaded = _to_device(loaded, device)
    card = model_card(
        source.name, folder, source.path, loaded, tokenizer, files, origin, dtype, device, warnings
    )
    size = loaded.dtype.itemsize
    card = msgspec.structs.replace(
        card, kv_bytes_per_token=kept * size, latent_width=latent_width(loaded.config, kept)
    )
    return LoadedModel(loaded, loaded.config, tokenizer, card, watched)


def check_device(device: str) -> None:
    """BadInput if this machine has no such device."""
    kind = device.split(":")[0]
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if kind not in there:
        raise BadInput(f"There is no device {device}; choose cpu, cuda or mps.")
    if not there[kind]:
        raise BadInput(f"This machine has no {kind} device that torch can use; choose cpu.")


def _whole_files(folder: Path) -> list[Path]:
    files = weight_files(folder)
    for path in files:
        if path.suffix == ".safetensors":
            safetensors_header(path)
    return files


def _check_size(
    name: str, config: Any, files: list[Path], dtype: str, device: str, room_bytes: int
) -> int:
    """Numbers the cache will keep for each token.

    BadInput if config and files cannot belong together, or the model does not fit in memory.
    """
    shape, model = shape_of(config), skeleton(config)
    asked, held = count(model).parameters, stored_numbers(files)
    packed = getattr(config, "quantization_config", None) is not None
    if asked > 1.5 * held + 1000 and not packed:
        raise BadInput(
            f"The config.json of {name} asks for {asked:,} parameters and the files hold {held:,}; "
            "they do not belong together."
        )
    check_fits(name, asked, shape, dtype, device, room_bytes)
    return kept_per_token(config, model, shape)


def _load_weights(
    folder: Path,
    config: Any,
    dtype: str,
    progress: Progress,
    cancelled: Callable[[], bool],
    warnings: list[str],
) -> Any:
    kind, config = causal_class(config)
    attention = "sdpa" if getattr(kind, "_supports_sdpa", False) else "eager"
    try:
        with library_bars(progress, cancelled), no_compiler():
            model, info = kind.from_pretrained(
                folder,
                config=config,
                dtype=_DTYPES[dtype],
                attn_implementation=attention,
                local_files_only=True,
                output_loading_info=True,
            )
    except Cancelled:
        raise
    except ImportError as error:  # a packed form that wants a library of its own
        raise BadInput(
            f"The weights of {folder.name} are packed in a form (quantization_config) that needs a "
            "library which is not installed; use an unpacked copy of the model or a GGUF file.",
            traceback.format_exc(),
        ) from error
    except Exception as error:  # weights that do not fit the config fail in many ways
        if ceiling.is_reached(error):
            raise NoMemory(
                "There is not enough memory to open this model; close other programs, or choose a "
                "smaller model or dtype."
            ) from error
        raise BadInput(
            f"The weights of {folder.name} do not fit its config.json or are damaged; "
            "download the model again.",
            traceback.format_exc(),
        ) from error
    _check_keys(folder.name, info, warnings)
    model.eval()
    model.requires_grad_(False)
    return model


def _check_keys(name: str, info: dict[str, Any], warnings: list[str]) -> None:
    """Refuse a model with weights that were made up on the spot; note those left unused."""
    missing = sorted([*info["missing_keys"], *(str(key[0]) for key in info["mismatched_keys"])])
    if missing:
        raise BadInput(
            f"{name} lacks {len(missing)} of the weights that its config.json asks for "
            f"({missing[0]}…), so its output would be noise; download the model again."
        )
    unused = sorted(info["unexpected_keys"])
    if unused:
        warnings.append(
            f"{len(unused)} tensors of the files have no place in the model and are not used "
            f"({unused[0]}…)."
        )


def _to_device(model: Any, device: str) -> Any:
    try:
        return model.to(device)
    except RuntimeError as error:  # torch's out-of-memory errors are RuntimeErrors
        raise EngineError(
            f"The model does not fit on {device}; choose cpu or a smaller dtype.", str(error)
        ) from error
