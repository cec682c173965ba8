"""The process that runs a .gguf file as it is; the engine starts it."""

from __future__ import annotations

import argparse


def run(arguments: argparse.Namespace) -> int:
    """Serve frames over stdin and stdout."""
    from explorer.llama_engine.serve import main

    return main()
