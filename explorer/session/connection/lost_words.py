"""Why an engine is lost, in sentences with a next step: it did not start, or the line to it broke.

What ssh and a shell say on stderr is the reason; it is the last line that counts.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath

from explorer.figures.text.characters import elide, printable
from explorer.wording import how_ended

ENDED = "The engine stopped unexpectedly"
BROKE = "The connection to the engine broke"
_LONGEST = 120  # letters of what a child said, in a sentence
_NOT_FOUND, _NOT_RUNNABLE, _OF_SSH = 127, 126, 255  # exit codes: a shell's two, and ssh's own

# What ssh says, in part and in lower case, and what helps.
_STEPS = (
    ("could not resolve hostname", "Check the name of the host."),
    (
        "permission denied",
        "No password can be typed here: copy a key to that machine (ssh-copy-id), and load it into "
        "ssh-agent if it has a passphrase.",
    ),
    (
        "host key verification failed",
        "Connect to that machine once by ssh in a terminal, and compare its key before you accept "
        "it.",
    ),
    ("connection refused", "Check that an ssh server runs on that machine, and its port."),
    ("timed out", "Check that the machine is switched on and that the network reaches it."),
    ("no route to host", "Check that the machine is switched on and that the network reaches it."),
    ("network is unreachable", "Check your network."),
)
_INSTALL = (
    "Install Decoder Explorer there, or give the program's full path, as in "
    "'ssh gpu-box /path/to/.venv/bin/decoder-explorer engine'."
)
_QUIET = (
    "Nothing may be printed there before the engine starts: look for it in the shell's start-up "
    "file, such as ~/.bashrc."
)


def not_started(command: Sequence[str] | None, code: int | None, last: bytes) -> str:
    """The process ended before it greeted; `last`: the last line of its stderr.

    `command`: as it was given; None for this program's own engine.  `code` None: it is not known.
    """
    said = first_line(last)
    words = f"{ENDED}{'' if code is None else how_ended(code)}"
    words = f"{words}: {said.rstrip('.')}." if said else f"{words}."
    step = _next_step(command, code, said)
    return f"{words} {step}" if step else words


def _next_step(command: Sequence[str] | None, code: int | None, said: str) -> str:
    if command is None:
        return ""
    if code == _OF_SSH:
        for part, step in _STEPS:
            if part in said.lower():
                return step
    if code in (_NOT_FOUND, _NOT_RUNNABLE):
        return _INSTALL
    whole = elide(printable(shlex.join(command)), _LONGEST)
    return f"To see more, run “{whole}” in a terminal."


def not_found(command: Sequence[str], why: str, given: bool) -> str:
    """There is no process at all; `given`: the command is the user's."""
    words = f"The engine could not be started ({command[0]}: {why})."
    step = "Check that its first word is a program on this computer, or give the full path."
    return f"{words} {step}" if given else words


def broke_off(command: Sequence[str] | None, code: int | None, last: bytes) -> str:
    """The process ended after it had greeted; `last`: what it said on stderr just then."""
    if code != _OF_SSH or not is_ssh(command):
        return f"{ENDED}{'' if code is None else how_ended(code)}."
    if said := first_line(last):
        return f"{BROKE}: {said.rstrip('.')}."
    return f"{BROKE}, or the engine was killed there (possibly because it ran out of memory)."


def printed_first(said: bytes) -> str:
    """Something else than a greeting came on stdout."""
    return f'it printed "{first_line(said)}" before its greeting. {_QUIET}'


def no_greeting(command: Sequence[str] | None, seconds: float) -> str:
    """It runs, and has said nothing at all."""
    words = f"The engine did not answer within {seconds:.0f} s of starting."
    return words if command is None else f"{words} Check the network and the command."


def fell_silent(command: Sequence[str] | None, seconds: float) -> str:
    """It has greeted, an answer is due, and nothing has come since."""
    if command is None:
        return f"The engine was stopped because it had sent nothing for {seconds:.0f} s."
    return (
        f"Nothing has come from the engine for {seconds:.0f} s, so the connection was closed. "
        "Check the network."
    )


def still_silent(seconds: float) -> str:
    """While it is still waited for."""
    return f"Nothing from the engine for {seconds:.0f} s. Waiting…"


def is_ssh(command: Sequence[str] | None) -> bool:
    """True if the engine's command is ssh itself."""
    return command is not None and PurePath(command[0]).stem == "ssh"


def first_line(said: bytes) -> str:
    """The first line that says something, its marks made visible, as long as a sentence bears."""
    text = said.decode("utf-8", "replace").strip().partition("\n")[0]
    return elide(printable(text.rstrip()), _LONGEST)
