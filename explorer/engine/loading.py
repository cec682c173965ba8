"""Opening a model: weights, config, tokenizer and card, or one sentence that says why not."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers.utils.logging as library_log

from explorer.engine import catalog, gguf
from explorer.engine.card import model_card
from explorer.engine.configs import causal_class, read_config
from explorer.engine.errors import BadInput, Cancelled, EngineError
from explorer.engine.tokenizers import Tokenizer, load_tokenizer
from explorer.engine.weights import safetensors_header, weight_files
from explorer.trace.card import ModelCard

Progress = Callable[[str, float | None], None]
_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
_hooks = threading.Lock()  # transformers has one progress hook for the whole process


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to run: eval mode, no gradients."""

    model: Any
    config: Any
    tokenizer: Tokenizer
    card: ModelCard


def _quietly(text: str, fraction: float | None) -> None:
    """Progress nobody watches."""


def _never() -> bool:
    return False


def load(
    model: str,
    dtype: str = "float32",
    device: str = "cpu",
    progress: Progress = _quietly,
    cancelled: Callable[[], bool] = _never,
) -> LoadedModel:
    """Open `model` (see `catalog.resolve`).

    BadInput or EngineError with one sentence if it cannot be opened, Cancelled if `cancelled`
    turned true.
    """
    if dtype not in _DTYPES:
        raise BadInput(f"There is no dtype {dtype}; choose float32, bfloat16 or float16.")
    check_device(device)
    source = catalog.resolve(model)
    folder, origin = source.path, "safetensors"
    if source.kind == "gguf":
        folder, origin = gguf.as_folder(source.path, progress, cancelled)
    progress("Reading the tokenizer", None)
    config = read_config(folder)
    tokenizer = load_tokenizer(folder)
    files = _whole_files(folder)
    warnings = [tokenizer.assumption] if tokenizer.assumption else []
    if files[0].suffix == ".bin":
        origin = "pickle (.bin)"
        warnings.append(
            "The weights are pickle files (.bin), a form that can hide programs; they are read in "
            "torch's restricted mode, which runs none."
        )
    loaded = _load_weights(folder, config, dtype, progress, cancelled, warnings)
    loaded = _to_device(loaded, device)
    card = model_card(
        source.name, folder, source.path, loaded, tokenizer, files, origin, dtype, device, warnings
    )
    return LoadedModel(loaded, loaded.config, tokenizer, card)


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


def _load_weights(
    folder: Path,
    config: Any,
    dtype: str,
    progress: Progress,
    cancelled: Callable[[], bool],
    warnings: list[str],
) -> Any:
    kind = causal_class(config)
    attention = "sdpa" if getattr(kind, "_supports_sdpa", False) else "eager"
    try:
        with _progress_bars(progress, cancelled):
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
    except MemoryError as error:
        raise EngineError(f"There is not enough memory to open {folder.name}.") from error
    except Exception as error:  # weights that do not fit the config fail in many ways
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


@contextmanager
def _progress_bars(progress: Progress, cancelled: Callable[[], bool]) -> Iterator[None]:
    """Send transformers' progress bars to `progress`; nothing is printed."""

    def bar(factory: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Bar:
        return _Bar(args[0] if args else kwargs.get("iterable"), kwargs, progress, cancelled)

    with _hooks:
        before = library_log.set_tqdm_hook(bar)
        verbosity = library_log.get_verbosity()
        library_log.set_verbosity_error()
        try:
            yield
        finally:
            library_log.set_tqdm_hook(before)
            library_log.set_verbosity(verbosity)


class _Bar:
    """What transformers needs of a tqdm bar; raises Cancelled between two items."""

    def __init__(
        self, items: Any, kwargs: dict[str, Any], progress: Progress, cancelled: Callable[[], bool]
    ) -> None:
        self._items = items
        self._total = kwargs.get("total") or (len(items) if hasattr(items, "__len__") else 0)
        self._done = 0
        self._progress = progress
        self._cancelled = cancelled

    def __iter__(self) -> Iterator[Any]:
        for item in self._items:
            self.update()
            yield item

    def update(self, count: int = 1) -> None:
        if self._cancelled():
            raise Cancelled
        self._done += count
        share = self._done / self._total if self._total else None
        self._progress("Reading the weights", share)

    def set_postfix(self, *args: Any, **kwargs: Any) -> None:
        """Shown by bars on a terminal only."""

    def close(self) -> None:
        """Nothing is held."""

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
