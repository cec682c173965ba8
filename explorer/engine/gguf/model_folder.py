"""A GGUF file as a model folder: dequantised once to float32, from then on like any model."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from explorer import disk
from explorer.engine.callbacks import Report, Stop, nothing
from explorer.engine.errors import EngineError
from explorer.engine.gguf import cache, unusable_kinds
from explorer.engine.gguf.cache import Conversion


def as_folder(
    path: Path, progress: Report, cancelled: Stop, check: Callable[[], None] = nothing
) -> tuple[Path, Conversion]:
    """(folder with config, tokenizer and float32 safetensors; what is to be said of it).

    Converts on the first call and whenever the file or the folder has changed; `check` is called
    before that, and may refuse it.
    """
    folder = cache.folder_for(path)
    known = cache.opened(path, folder)
    if known is None:
        check()
        known = _convert(path, folder, progress, cancelled)
    return folder, known


def described(path: Path) -> tuple[Any, int, dict[str, Any]]:
    """(transformers' config for a GGUF file, how many numbers its tensors hold, how it is stored).

    The last: source, stored_dtype, warnings; a conversion made before knows its own.  From the
    header alone.  BadInput if the file is no whole model.
    """
    from explorer.engine.gguf import convert, tokenizer
    from explorer.engine.gguf.header import read_header

    header = read_header(path)
    unusable_kinds.refuse_part(path, header.metadata)
    config, notes = convert.config_of(header)
    known = cache.opened(path, cache.folder_for(path))
    notes = [*notes, *tokenizer.guesses(header)] if known is None else [*known.notes]
    storage = {
        "source": convert.origin_of(header), "stored_dtype": header.stored, "warnings": notes,
    }  # fmt: skip
    return config, header.numbers, storage


def _convert(path: Path, folder: Path, progress: Report, cancelled: Stop) -> Conversion:
    # Half a second of imports that an already converted file does not need.
    from explorer.engine.gguf import convert
    from explorer.engine.gguf.header import read_header

    progress(f"Reading {path.name}", None)
    header = read_header(path)
    unusable_kinds.refuse_part(path, header.metadata)
    origin = convert.origin_of(header)
    try:
        made = cache.store(
            path,
            folder,
            origin,
            lambda work: convert.write(header, work, progress, cancelled),
            cancelled,
        )
    except OSError as error:
        raise EngineError(
            f"{path.name} could not be unpacked into {folder.parent}: {disk.why(error)}; "
            "free some space there and try again.",
            traceback.format_exc(),
        ) from error
    cache.trim(cache.LIMIT_BYTES, keep=folder)
    return made
