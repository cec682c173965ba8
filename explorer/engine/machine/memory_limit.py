"""A limit on the engine's memory: what would take more fails in a sentence, not in the system.

Without one, a few bytes of a file can ask for more than there is: the machine swaps for minutes,
and the system ends whatever program it likes.
"""

from __future__ import annotations

import contextlib
import sys

import psutil

from explorer.engine.machine import system_memory

_RESERVE = 256 << 20  # bytes left to the rest of the machine; a quarter where that is less
_REFUSED = ("not enough memory", "out of memory", "can't allocate memory", "cannot allocate memory")
SENTENCE = (
    "Not enough memory. Your run is still here. Shorten the prompt, choose a smaller "
    "model or dtype, or close other programs."
)


def set_here() -> None:
    """From now on this process may take what is free now, and no more; Linux without a GPU only.

    To be set again before each piece of work, for others take and give back.  A GPU's driver maps
    far more than it uses.
    """
    if not sys.platform.startswith("linux") or _torch_has_gpu():
        return
    import resource

    with contextlib.suppress(OSError, ValueError, psutil.Error):
        free = system_memory.available_bytes()
        if free is None:
            return
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = psutil.Process().memory_info().data + free - min(_RESERVE, free // 4)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _torch_has_gpu() -> bool:
    """False also where torch is not imported, or another thread is still importing it."""
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch.__spec__, "_initializing", False):
        return False
    return bool(torch.cuda.is_available())


def is_reached(error: BaseException) -> bool:
    """True if an error says that memory was refused, or came of one that does.

    torch has no type of its own for it.
    """
    said: BaseException | None = error
    while said is not None:
        words = str(said).lower()
        if isinstance(said, MemoryError) or any(w in words for w in _REFUSED):
            return True
        said = said.__cause__ or said.__context__
    return False
