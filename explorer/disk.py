"""The one door to the user's disk: a file is written whole or not at all, and read without waiting.

Standard library only; everything may import it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["MOST_TEXT_BYTES", "TextError", "append", "opened", "read_text", "replacing", "why",
           "writable", "write"]  # fmt: skip

MOST_TEXT_BYTES = 32 << 20  # a book has one or two million
_NAME_KEPT = 48  # characters of a name in that of its temporary file; systems allow 255 bytes
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_KINDS = {
    stat.S_IFIFO: "it is a pipe, not a file",
    stat.S_IFSOCK: "it is a socket, not a file",
    stat.S_IFCHR: "it is a device, not a file",
    stat.S_IFBLK: "it is a device, not a file",
}
_numbers = itertools.count()

Name = str | os.PathLike[str]


class TextError(ValueError):
    """Why a file can't be read as text, in one sentence."""


@contextmanager
def replacing(path: Name) -> Iterator[BinaryIO]:
    """A stream whose bytes become the file `path` once the block has ended well; never before.

    A link stays, and the file that it points at is replaced.  OSError as in `writable`.
    """
    target = writable(path)
    name = f".{target.name[:_NAME_KEPT]}.{os.getpid()}-{next(_numbers)}.part"
    part = target.with_name(name)
    part.unlink(missing_ok=True)
    try:
        with open(part, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(target, part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def write(path: Name, data: bytes) -> None:
    """Put `data` in place of the file, whole or not at all; OSError as in `writable`."""
    with replacing(path) as stream:
        stream.write(data)


def append(path: Name, data: bytes) -> None:
    """Add to a file's end; OSError as in `writable`."""
    with open(writable(path), "ab") as stream:
        stream.write(data)


def writable(path: Name) -> Path:
    """Where the bytes of `path` would go: links followed.

    OSError if a folder, a device, a pipe or a protected file is there; no device is opened.
    """
    target = Path(os.path.realpath(path))
    with contextlib.suppress(FileNotFoundError):
        _require_file(target)
        if not os.access(target, os.W_OK):
            raise _error(PermissionError, errno.EACCES, "it is write-protected", target)
    return target


def opened(path: Name) -> BinaryIO:
    """The file, open for reading; OSError at once for a pipe or a device, which might never end."""
    _require_file(path)
    return open(path, "rb")


def read_text(path: Name, most: int = MOST_TEXT_BYTES) -> str:
    """A UTF-8 file as text, line ends as they are, without a byte order mark; else TextError."""
    try:
        with opened(path) as stream:
            data = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise TextError(f"{path} could not be read: {why(error)}.") from error
    if len(data) > most:
        raise TextError(f"{path} is too long. At most {most >> 20} MiB of text can be read.")
    body = data.removeprefix(_BYTE_ORDER_MARK)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + len(data) - len(body)
        raise TextError(
            f"{path} is not UTF-8 text (byte {at} is invalid). Save it as UTF-8."
        ) from error


def why(error: Exception) -> str:
    """The reason an error gives, as a part of a sentence."""
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _require_file(path: Name) -> None:
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise _error(IsADirectoryError, errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        words = _KINDS.get(stat.S_IFMT(mode), "it is no regular file")
        raise _error(OSError, errno.EINVAL, words, path)


def _error(kind: type[OSError], number: int, words: str, path: Name) -> OSError:
    return kind(number, words, os.fspath(path))
