"""Opening a model: weights, config, tokenizer and card, or one sentence that says why not."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from transformers import GenerationConfig

from explorer.engine import ranks
from explorer.engine.callbacks import Report, Stop, never, nobody, nothing
from explorer.engine.errors import BadInput, Cancelled, EngineError, NoMemory
from explorer.engine.gguf import model_folder
from explorer.engine.library import catalog, file_summary
from explorer.engine.light_imports import no_compiler
from explorer.engine.loading import offload, tensor_parallel
from explorer.engine.loading.card import model_card
from explorer.engine.machine import memory_limit
from explorer.engine.machine.free_memory import check_fits
from explorer.engine.model_files import remote_code, unusable_files
from explorer.engine.model_files.configs import causal_class, read_config
from explorer.engine.model_files.identity import Watched
from explorer.engine.model_files.meta_model import count, kept_per_token, latent_width, skeleton
from explorer.engine.model_files.model_shape import shape_of
from explorer.engine.model_files.nonfinite_weights import NotFinite
from explorer.engine.model_files.stated_figures import check_figures
from explorer.engine.model_files.weights import (
    INDEX,
    read_json,
    safetensors_header,
    stored_numbers,
    weight_files,
)
from explorer.engine.progress import library_bars
from explorer.engine.text.tokenizers import Tokenizer, load_tokenizer
from explorer.trace.card import ModelCard
from explorer.trace.fingerprint import Fingerprint
from explorer.wording import short_bytes

_LARGEST_TABLES = 1 << 30  # bytes, beside eight for each number of the weights
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run: eval mode, no gradients."""

    model: Any
    config: Any
    tokenizer: Tokenizer
    card: ModelCard
    watched: Watched = field(default_factory=Watched)
    not_finite: NotFinite = field(default_factory=NotFinite)  # as far as was looked (findings)


def load(
    model: str,
    dtype: str = "float32",
    device: str = "cpu",
    progress: Report = nobody,
    cancelled: Stop = never,
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
    folder, origin, stored = source.path, "safetensors", ""
    warnings: list[str] = []
    if source.kind == "gguf":

        def fits() -> None:  # of what is converted already, the folder's own files tell
            held = file_summary.of_gguf(source.path)
            check_fits(source.name, held.parameters, held.shape, dtype, device, room_bytes)

        folder, converted = model_folder.as_folder(source.path, progress, cancelled, fits)
        origin, stored = converted.origin, converted.stored
        warnings += converted.notes
    progress("Reading the tokenizer", None)
    config = read_config(folder, allow_code)
    brings_code = remote_code.class_of(config) is not None
    if brings_code:
        warnings.append("This model runs its own program code, which you allowed this time.")
    tensor_parallel.require_plan(source.name, config)
    tokenizer = load_tokenizer(folder, plain=brings_code)
    files = _whole_files(folder)
    _check_generation_config(folder)
    watched = Watched([*files, source.path] if source.kind == "gguf" else files)
    warnings += file_summary.warnings_of(files, tokenizer.assumption)
    if files[0].suffix == ".bin":
        origin = file_summary.PICKLE
    if source.kind == "folder":
        _refuse_packed(source.name, folder, files)
    kept = _check_size(source.name, folder, config, files, dtype, device, room_bytes)
    make_room()
    placement: dict[str, int | str] = {}
    if offload.is_auto(device):
        placement = offload.plan(config, _DTYPES[dtype], device)
        where = offload.words(config, _DTYPES[dtype], placement)
        progress(where, None)
        warnings.append(where)
    loaded = _load_weights(folder, files, config, dtype, progress, cancelled, warnings, placement)
    if source.build:
        from explorer.engine.loading.reference_build import rebuilt

        loaded = rebuilt(loaded, source.build, catalog.plain_name(source.name))
        warnings.append(
            f"The decoder of explorer/reference/{source.build}.py computes this model, with the "
            f"weights of {catalog.plain_name(source.name)}."
        )
    if placement:
        loaded = offload.placed(loaded, placement)
    else:
        loaded = _to_device(loaded, device)
    card = model_card(
        source.name, folder, source.path, loaded, tokenizer, files, origin, dtype, device, warnings
    )
    size = loaded.dtype.itemsize
    card = msgspec.structs.replace(
        card,
        kv_bytes_per_token=kept * size,
        latent_width=latent_width(loaded.config, kept),
        stored_dtype=stored or file_summary.stored_in(files),
        form="float32" if source.kind == "gguf" else "",
    )
    return LoadedModel(loaded, loaded.config, tokenizer, card, watched)


def check_device(device: str) -> None:
    """BadInput if this machine has no such device."""
    if offload.is_auto(device):
        offload.limit_of(device)
        if ranks.count() > 1:
            raise BadInput("--device auto is for one process. Leave torchrun out, or --device.")
        return
    kind, colon, number = device.partition(":")
    counts = {
        "cpu": 1,
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
    }
    whole = not colon or (number.isascii() and number.isdigit() and len(number) < 5)
    if kind not in counts or not whole:
        raise BadInput(f"There is no device {device}; choose cpu, cuda, mps or auto.")
    if not counts[kind]:
        raise BadInput(f"This machine has no {kind} device that torch can use; choose cpu.")
    if int(number or 0) >= counts[kind]:
        last = f"; the last one is {kind}:{counts[kind] - 1}" if counts[kind] > 1 else ""
        raise BadInput(f"This machine has no device {device}: choose {kind}{last}.")


def _whole_files(folder: Path) -> list[Path]:
    files = weight_files(folder)
    for path in files:
        if path.suffix == ".safetensors":
            safetensors_header(path)
        else:
            unusable_files.refuse_stand_in(path)
    return files


def _refuse_packed(name: str, folder: Path, files: list[Path]) -> None:
    """BadInput if the weights are packed in a form that transformers does not know itself."""
    stated = read_json(folder / "config.json")
    packing = stated.get("quantization_config")
    if isinstance(packing, dict) and packing.get("quant_method"):
        return  # transformers says whether it can
    tensors = [t for f in files if f.suffix == ".safetensors" for t in safetensors_header(f)[1]]
    if form := unusable_files.packed_for(stated, tensors):
        raise unusable_files.packed(name, form)


def _check_size(
    name: str,
    folder: Path,
    config: Any,
    files: list[Path],
    dtype: str,
    device: str,
    room_bytes: int,
) -> int:
    """Numbers the cache will keep for each token.

    BadInput if config and files cannot belong together, or the model does not fit in memory.
    """
    shape, model = shape_of(config), skeleton(config)
    asked, held = count(model).parameters, stored_numbers(files)
    packed = getattr(config, "quantization_config", None) is not None
    if asked > 1.5 * held + 1000 and not packed:
        raise BadInput(
            f"The config.json of {name} does not match its weights: it asks for {asked:,} "
            f"parameters, and the files hold {held:,}. Download the model again."
        )
    if remote_code.class_of(config) is None:
        check_figures(name, config, read_json(folder / "config.json"), asked, held)
    tables = sum(buffer.nbytes for buffer in model.buffers())
    if tables > _LARGEST_TABLES + 8 * held:
        raise BadInput(
            f"The config.json of {name} does not match its weights: it asks for "
            f"{short_bytes(tables)} of tables beside {held:,} parameters. Download the model again."
        )
    check_fits(name, ranks.on_this_machine(asked), shape, dtype, device, room_bytes)
    return kept_per_token(config, model, shape)


def _load_weights(
    folder: Path,
    files: list[Path],
    config: Any,
    dtype: str,
    progress: Report,
    cancelled: Stop,
    warnings: list[str],
    placement: dict[str, int | str],
) -> Any:
    kind, config = causal_class(config)
    if files[0].suffix == ".safetensors":  # of a single file and shards, those that were checked
        single = len(files) == 1 and files[0].name == "model.safetensors"
        config.transformers_weights = files[0].name if single else INDEX
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
                **tensor_parallel.arguments(),
                **offload.arguments(placement),
            )
    except Cancelled:
        raise
    except Exception as error:  # weights that do not fit the config fail in many ways
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            offload.remove()
            raise BadInput(
                "The disk is full: the part of the model that does not fit in memory could not be "
                "written. Free some space, or choose a smaller model or dtype.",
                traceback.format_exc(),
            ) from error
        if memory_limit.is_reached(error):
            raise NoMemory(
                "There is not enough memory to open this model. Close other programs, or "
                "choose a smaller model or dtype."
            ) from error
        if form := unusable_files.packed_for(read_json(folder / "config.json")):
            raise unusable_files.packed(folder.name, form, traceback.format_exc()) from error
        if "Unsupported global" in str(error) or "Unsupported class" in str(error):
            raise BadInput(
                f"The weights of {folder.name} are pickle files that hold more than tensors, which "
                "is never run here; use the model's safetensors files or a GGUF file.",
                traceback.format_exc(),
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


def _check_generation_config(folder: Path) -> None:
    """BadInput that names generation_config.json if transformers will not have it."""
    if not (folder / "generation_config.json").is_file():
        return
    read_json(folder / "generation_config.json")
    try:
        GenerationConfig.from_pretrained(folder, local_files_only=True)
    except MemoryError:
        raise
    except Exception as error:  # its values are checked in many ways
        raise BadInput(
            f"The generation_config.json of {folder.name} is not valid; download it again, or "
            "remove it to open the model without its sampling settings.",
            traceback.format_exc(),
        ) from error


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
            f"{len(unused)} tensors of the files are not part of the model and are "
            f"ignored ({unused[0]}…)."
        )


def _to_device(model: Any, device: str) -> Any:
    try:
        return model.to(device)
    except RuntimeError as error:  # torch's out-of-memory errors are RuntimeErrors
        raise EngineError(
            f"The model does not fit on {device}. Choose cpu or a smaller dtype.", str(error)
        ) from error
