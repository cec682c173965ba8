"""From an exception to a sentence for the user: the one door of the engine.

Where the sentence is known beforehand, an EngineError is raised with it; here is the rest.
"""

from __future__ import annotations

import logging
import textwrap
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from explorer.engine.errors import BadInput, EngineError, FilesChanged, NoMemory, TooLarge
from explorer.engine.machine import memory_limit
from explorer.trace.wire.messages import Failed

_log = logging.getLogger(__name__)

# On input that it was not made for; NotImplementedError is a RuntimeError.
INPUT_FAULTS = (
    RuntimeError, ValueError, IndexError, TypeError, KeyError, AttributeError, AssertionError,
)  # fmt: skip
MODEL_FAULTS = (MemoryError, *INPUT_FAULTS)
_LONGEST = 300  # characters quoted of an error


@contextmanager
def explained(what: str, advice: str) -> Iterator[None]:
    """While inside, a fault of the model is an EngineError.

    `what` it could not run ("pass"); `advice`: how to take less memory.
    """
    try:
        yield
    except MODEL_FAULTS as error:
        if memory_limit.is_reached(error):
            raise NoMemory(f"Not enough memory for this {what}. {advice}", str(error)) from error
        raise EngineError(
            f"The model could not run this {what}. See the log for details.", str(error)
        ) from error


def failure(run: int, error: Exception) -> Failed:
    """What is said of an exception that ended the request `run`; the details are logged."""
    if isinstance(error, EngineError):
        _log.warning("%s %s", error.sentence, error.details)
        return Failed(
            run=run,
            sentence=error.sentence,
            bad_input=isinstance(error, BadInput),
            details=error.details,
            own_code=getattr(error, "files", ()),
            files_changed=isinstance(error, FilesChanged),
            no_room=isinstance(error, TooLarge | NoMemory),
        )
    _log.error("a request failed", exc_info=error)
    if memory_limit.is_reached(error):
        return Failed(run=run, sentence=memory_limit.SENTENCE, bad_input=True)
    said = f"The engine hit an unexpected error ({type(error).__name__}): {error}"
    short = textwrap.shorten(said, _LONGEST, placeholder="…").rstrip(".: ")
    return Failed(
        run=run,
        sentence=f"{short}. See the log for details.",
        bad_input=False,
        details="".join(traceback.format_exception(error)),
    )
