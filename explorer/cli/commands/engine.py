"""The engine's own process, and the command line that starts one elsewhere."""

from __future__ import annotations

import argparse
import shlex

from explorer.cli.errors import CommandError


def run(arguments: argparse.Namespace) -> int:
    """Serve frames over stdin and stdout."""
    from explorer.engine.serve import main
    from explorer.figures.attention import atlas

    return main(atlas.build)


def engine_command(text: str | None) -> list[str] | None:
    """The words of --engine; None for this program's own engine."""
    if text is None:
        return None
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise CommandError(f"--engine is no command line: {error}.") from error
    if not words:
        raise CommandError("--engine is empty; give a command or leave it out.")
    return words
