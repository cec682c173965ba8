"""Builds the C kernels of the modes with the machine's own compiler, once, and loads them."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import logging
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch

from explorer import disk, places
from explorer.engine.errors import BadInput
from explorer.engine.machine.memory_bandwidth import processor

_SOURCE = Path(__file__).with_name("kernels.c")
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-O3", "-fPIC", "-march=native")
_SECONDS = 60
_log = logging.getLogger(__name__)


@cache
def library() -> ctypes.CDLL:
    """The kernels, ready to be called.  BadInput with a sentence where they can't be built."""
    for built in _kept():
        with contextlib.suppress(OSError, AttributeError):  # torn off from what it is linked to
            return _declared(ctypes.CDLL(str(built)))
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise BadInput(
            "This mode needs a C compiler, and none was found. Install gcc or clang, or "
            "stay in exact mode."
        )
    with _workplace() as work:
        made = work / "kernels.so"
        _build(compiler, made)
        try:
            return _declared(ctypes.CDLL(str(_keep(made))))
        except (OSError, AttributeError) as error:
            raise BadInput(
                f"This mode's kernels could not be loaded ({error}); stay in exact mode.",
                str(error),
            ) from error


def _folder() -> Path:
    return places.data_folder() / "kernels"


def _key() -> str:
    """Of all that the machine code depends on; whichever compiler made it will do."""
    parts = (
        _SOURCE.read_text("utf-8"),
        *_FLAGS,
        processor(),
        platform.machine(),
        torch.__file__,
        str(torch.__version__),
    )
    return _digest("\n".join(parts).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]


def _kept() -> Iterator[Path]:
    """The files built before that are whole.  Their names end in a digest of their bytes.

    A damaged one is removed: loading it could end the process.
    """
    for file in sorted(_folder().glob(f"{_key()}-*.so")):
        with contextlib.suppress(OSError):
            if file.stem.partition("-")[2] == _digest(file.read_bytes()):
                yield file
            else:
                file.unlink()


def _keep(made: Path) -> Path:
    """Where the file lies from now on: the data folder, or where it is if that can't be written."""
    content = made.read_bytes()
    kept = _folder() / f"{_key()}-{_digest(content)}.so"
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        disk.write(kept, content)
    except OSError as error:
        _log.warning("The kernels serve this run only; %s can't be written: %s", _folder(), error)
        return made
    return kept


@contextlib.contextmanager
def _workplace() -> Iterator[Path]:
    """A folder to build in, removed afterwards: what was loaded from it stays in memory."""
    try:
        work = tempfile.TemporaryDirectory(prefix="decoder-explorer-", ignore_cleanup_errors=True)
    except OSError as error:
        raise BadInput(
            "This mode's kernels are built in a temporary folder, and none could be made "
            f"({error}); make room for one, or stay in exact mode.",
            str(error),
        ) from error
    with work as name:
        yield Path(name)


def _build(compiler: str, made: Path) -> None:
    compiled = made.with_suffix(".o")
    # torch's own copy of OpenMP: with a second one in the process, its threads would wait in turns.
    threads = sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*"))[:1]
    openmp = ("-fopenmp",) if threads else ()
    try:
        _call(compiler, *_FLAGS, *openmp, "-c", str(_SOURCE), "-o", str(compiled))
        _call(compiler, "-shared", str(compiled), *map(str, threads), "-lm", "-o", str(made))
    except subprocess.SubprocessError as error:
        raise BadInput(
            "This mode's kernels could not be built (see the log). Stay in exact mode.",
            str(getattr(error, "stderr", None) or error),
        ) from error
    except OSError as error:
        raise BadInput(
            f"This mode's kernels could not be built: {compiler} can't be started "
            f"({error.strerror}). Stay in exact mode.",
            str(error),
        ) from error


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
