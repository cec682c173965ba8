"""The process that runs a .gguf file as it is; the engine starts it."""

from __future__ import annotations

import argparse

from explorer.cli.errors import DONE


def run(arguments: argparse.Namespace) -> int:
    """Serve frames over stdin and stdout, or answer one question."""
    from explorer.llama_engine import serve

    if arguments.can_use_gpu:
        print("yes" if serve.can_use_gpu() else "no")
        return DONE
    return serve.main()
