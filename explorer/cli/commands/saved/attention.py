"""`attention`: one head's map of one pass of a saved run, as numbers or as a picture."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import BinaryIO

import numpy as np

from explorer import disk
from explorer.cli import png
from explorer.cli.commands.saved.show import opened, require_step
from explorer.cli.commands.trace import writable
from explorer.cli.errors import DONE, CommandError
from explorer.figures.attention import map_blocks, maps
from explorer.figures.text import table_text
from explorer.trace.trace import Trace

_SIDE = 768  # pixels a picture is enlarged towards


def run(arguments: argparse.Namespace) -> int:
    out = writable(arguments.out)
    if out.suffix not in (".npy", ".csv", ".png"):
        raise CommandError(f"{out.name} must end in .npy, .csv or .png.")
    trace = opened(arguments.file)
    head = _head_map(trace, arguments.step, arguments.layer, arguments.head)
    try:
        with disk.replacing(out) as stream:
            _write(stream, out, head)
    except OSError as error:
        raise CommandError(f"{out} could not be written: {disk.why(error)}.") from error
    return DONE


def _head_map(trace: Trace, step: int, layer: int, head: int) -> maps.Map:
    """The map of one pass; CommandError naming the range, or why there is no map."""
    require_step(trace, step)
    layers = len(trace.steps[step].layers)
    if layer >= layers:
        raise CommandError(f"This model has layers 0 to {layers - 1}. There is no layer {layer}.")
    try:
        return maps.pass_map(trace, step, layer, head)
    except ValueError as error:
        raise CommandError(str(error)) from error


def _write(stream: BinaryIO, out: Path, head: maps.Map) -> None:
    # Keys that have left a sliding window were not there to be read: their weight is 0.
    blank = ((0, 0), (head.first_key, 0))
    weights = np.pad(head.weights, blank)
    if out.suffix == ".npy":
        np.save(stream, weights)
    elif out.suffix == ".csv":
        lines = io.TextIOWrapper(stream, encoding="ascii", newline="")
        table_text.write_all(table_text.matrix(weights), lines)
        lines.detach()  # all of it is written; the file stays open
    else:
        _write_picture(stream, maps.levels(weights, np.pad(head.kinds, blank), head.top))


def _write_picture(stream: BinaryIO, levels: np.ndarray) -> None:
    """viridis from 0 to the map's largest weight; masked and absent cells are grey."""
    from explorer.figures.drawing.colormaps import lut

    colours = np.array(lut("viridis")[:, :3])
    colours[map_blocks.ABSENT] = (247, 248, 250)
    colours[map_blocks.MASKED] = (230, 233, 239)
    times = max(1, _SIDE // max(levels.shape))
    large = levels.repeat(times, axis=0).repeat(times, axis=1)
    png.write(stream, colours[large])
