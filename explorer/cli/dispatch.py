"""Which command, with which arguments; errors become one sentence and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from explorer import disk, places
from explorer.cli import terminal
from explorer.cli.arguments import COMMANDS, desktop_parser
from explorer.cli.errors import BAD_USE, DONE, ENGINE_FAILED, INTERRUPTED, CommandError
from explorer.figures.text.characters import elide
from explorer.session.connection import log


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    if argv is None:
        _speak_utf8()
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a windowed build has no streams
            stream.reconfigure(errors="backslashreplace")
    with terminal.marked_output():
        return _run(words)


def _run(words: list[str]) -> int:
    try:
        code = _dispatch(words)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except CommandError as error:
        terminal.complain(str(error))
        return error.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()  # whoever read it has gone (`| head`): nothing is left to say
        return DONE
    except OSError as error:
        _drop_output()
        terminal.complain(f"The output could not be written: {disk.why(error)}.")
        return BAD_USE
    except Exception as error:
        _keep_details()
        fault = elide(" ".join(f"{type(error).__name__}: {error}".split()), 200)
        terminal.complain(f"An unexpected error occurred ({fault}). Details: {places.log_file()}.")
        return ENGINE_FAILED


def _drop_output() -> None:
    """So that the interpreter does not try to write the rest when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _keep_details() -> None:
    log.keep(traceback.format_exc())


def _speak_utf8() -> None:
    """Restart where Python takes arguments and names for something else than UTF-8 bytes."""
    other = sys.getfilesystemencoding().lower().replace("-", "") != "utf8"
    tried = os.environ.get("PYTHONUTF8") == "1"  # in vain: python -X utf8=0, -E and -I
    if other and not tried and sys.platform != "win32" and sys.executable and sys.orig_argv[1:]:
        os.environ["PYTHONUTF8"] = "1"  # the engine's process, too
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _dispatch(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        command = COMMANDS[words[0]]
        arguments = command.parser().parse_args(words[1:])
        _require_folder()
        return command.run(arguments)
    arguments = desktop_parser().parse_args(words)
    _require_folder()
    return _desktop(arguments)


def _require_folder() -> None:
    """Python itself fails in odd ways where its working folder is gone."""
    try:
        os.getcwd()
    except OSError as error:
        raise CommandError(
            "The folder that this was started in has been deleted; change to another one (cd) and "
            "try again."
        ) from error


def _desktop(arguments: argparse.Namespace) -> int:
    from explorer.cli.commands.engine import engine_command
    from explorer.cli.commands.lesson import lesson_named

    try:
        from explorer.app import main as app_main
    except ImportError as error:
        raise CommandError(f"The window can't be opened: {error}.", BAD_USE) from error
    engine_command(arguments.engine)  # refused here, in one sentence, if it is no command line
    lesson = None if arguments.lesson is None else lesson_named(arguments.lesson)
    return int(
        app_main(arguments.model, arguments.prompt, arguments.engine, lesson, arguments.form)
    )
