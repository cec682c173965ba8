"""Decoder Explorer: watch a decoder-only language model generate, one pass at a time.

Rooms, from the top: cli and app start things; ui shows; session owns the state; engine runs the
model in a child process; figures turn traces into arrays to draw; sampling, trace and places hold
what all of them share. Imports go down only, and import-linter (pyproject.toml) sees to it.
"""

import os

# numpy's BLAS with one thread per core, beside a busy engine, made a 256-token map take 40 ms
# instead of 2: its threads wait for each other. It reads this once, when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
