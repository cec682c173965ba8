"""Decoder Explorer: watch a decoder-only language model generate, one pass at a time.

Rooms, from the top: cli and app start things; ui shows; session owns the state; engine runs the
model in a child process; figures turn traces into arrays to draw; sampling, trace and places hold
what all of them share. Imports go down only, and import-linter (pyproject.toml) sees to it.
"""

__version__ = "0.1.0"
