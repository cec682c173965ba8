"""Decoder Explorer: watch a decoder-only language model generate, one pass at a time.

Rooms, from the top: cli and app start things; ui shows; session owns the state; engine runs the
model in a child process, llama_engine a .gguf file as it is; figures turn traces into arrays to
draw; lessons are pages with scenes and measured figures; notebooks repeats and opens runs in Python
of one's own; sampling, trace and places hold what all of them share. Imports go down only, and
import-linter (pyproject.toml) sees to it.
"""

import importlib
import os
from typing import Any

# numpy's BLAS with one thread per core, beside a busy engine, made a 256-token map take 40 ms
# instead of 2: its threads wait for each other. It reads this once, when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"


def open_run(path: str | os.PathLike[str]) -> Any:
    """A saved run (.dxt) as arrays: an `explorer.notebooks.opened_run.OpenedRun`.

    ValueError with one sentence if it can't be opened.
    """
    # By name, when it is asked for: every module of the program imports this one first.
    return importlib.import_module("explorer.notebooks.opened_run").open_run(path)
