"""Builds the C kernels of the modes with the machine's own compiler, once, and loads them."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path

import torch

from explorer import places
from explorer.engine.errors import BadInput
from explorer.engine.traffic import processor

_SOURCE = Path(__file__).with_name("kernels.c")
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-O3", "-fPIC", "-march=native")
_SECONDS = 60


@cache
def library() -> ctypes.CDLL:
    """The kernels, ready to be called.  BadInput with a sentence where they can't be built."""
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise BadInput(
            "This mode's kernels are built by a C compiler, and none was found here; install gcc "
            "or clang, or stay in exact mode."
        )
    built = _place(compiler)
    if not built.exists():
        _build(compiler, built)
    try:
        return _declared(ctypes.CDLL(str(built)))
    except (OSError, AttributeError) as error:
        built.unlink(missing_ok=True)
        raise BadInput(
            "This mode's kernels could not be loaded; stay in exact mode.", str(error)
        ) from error


def _place(compiler: str) -> Path:
    """Its name holds all that the machine code depends on."""
    parts = (
        _SOURCE.read_text(),
        compiler,
        *_FLAGS,
        processor(),
        platform.machine(),
        torch.__file__,
    )
    digest = hashlib.sha256("\n".join((*parts, str(torch.__version__))).encode()).hexdigest()
    return places.data_folder() / "kernels" / f"{digest[:24]}.so"


def _build(compiler: str, built: Path) -> None:
    part = built.with_suffix(f".{os.getpid()}.part")
    compiled = built.with_suffix(f".{os.getpid()}.o")
    # torch's own copy of OpenMP: with a second one in the process, its threads would wait in turns.
    threads = sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*"))[:1]
    openmp = ("-fopenmp",) if threads else ()
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
        _call(compiler, *_FLAGS, *openmp, "-c", str(_SOURCE), "-o", str(compiled))
        _call(compiler, "-shared", str(compiled), *map(str, threads), "-lm", "-o", str(part))
        os.replace(part, built)
    except (OSError, subprocess.SubprocessError) as error:
        raise BadInput(
            "This mode's kernels could not be built; the log has the compiler's words. "
            "Stay in exact mode.",
            str(getattr(error, "stderr", None) or error),
        ) from error
    finally:
        part.unlink(missing_ok=True)
        compiled.unlink(missing_ok=True)


def _call(*command: str) -> None:
    subprocess.run(
        command, check=True, timeout=_SECONDS, capture_output=True, text=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def _declared(loaded: ctypes.CDLL) -> ctypes.CDLL:
    address, length, real = ctypes.c_void_p, ctypes.c_long, ctypes.c_float
    for function in (loaded.linear32, loaded.linear16):
        function.argtypes = [address] * 4 + [length] * 2 + [ctypes.c_int]
        function.restype = None
    loaded.rms_norm.argtypes = [address] * 3 + [length] * 2 + [real]
    loaded.rotary.argtypes = [address] * 4 + [length] * 2
    loaded.rms_norm.restype = loaded.rotary.restype = None
    return loaded
