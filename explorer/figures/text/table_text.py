"""A table as text, the same from the window and the commands: CSV, tab-separated, HTML.

The first row of a table is its header; an empty row parts two blocks.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from html import escape
from itertools import chain, islice
from typing import Literal, TextIO

import numpy as np

Form = Literal["csv", "tab", "html"]
_ROWS_AT_ONCE, _CELLS = 2000, 300_000  # of a table that is copied in every form


def write(rows: Iterable[Sequence[object]], out: TextIO, form: Form = "csv") -> Generator[int]:
    """Write a table, figures in full precision; how many rows are written, row by row."""
    return _write_html(rows, out) if form == "html" else _write_plain(rows, out, form)


def write_all(rows: Iterable[Sequence[object]], out: TextIO, form: Form = "csv") -> None:
    """Write a table in one go."""
    deque(write(rows, out, form), maxlen=0)


def write_forms(rows: Iterable[Sequence[object]], outs: Mapping[Form, TextIO]) -> Generator[int]:
    """The same table in several forms at once; a long one in its plainest form alone.

    A form that was given up is left empty: programs that paste take the richest they find, and a
    million cells of HTML are more than they can hold.
    """
    rest = iter(rows)
    head = list(islice(rest, _ROWS_AT_ONCE))
    short = not (more := list(islice(rest, 1))) and sum(map(len, head)) <= _CELLS
    for form, out in outs.items():
        if short or form == "tab":
            yield from write(chain(head, more, rest) if form == "tab" else head, out, form)


def exact(figures: np.ndarray) -> list[str]:
    """float32 figures with nine significant digits: enough to read each back as it was."""
    return ("%.9g " * len(figures) % tuple(figures.tolist())).split()


def matrix(figures: np.ndarray) -> Iterable[Sequence[object]]:
    """The rows of a (R, C) float32 array, without a header."""
    return map(exact, figures)


def _write_plain(
    rows: Iterable[Sequence[object]], out: TextIO, form: Literal["csv", "tab"]
) -> Generator[int]:
    writer = csv.writer(out, dialect="excel" if form == "csv" else "excel-tab")
    for count, row in enumerate(rows, 1):
        writer.writerow(row)  # floats as Python writes them: every digit that tells them apart
        yield count


def _write_html(rows: Iterable[Sequence[object]], out: TextIO) -> Generator[int]:
    """One <table>; cells keep their white space, and are text whatever they hold."""
    out.write('<meta charset="utf-8"><table style="white-space: pre">')
    header = True
    for count, row in enumerate(rows, 1):
        tag = "th" if header else "td"
        cells = (f"<{tag}>{escape(str(cell))}</{tag}>" for cell in row)
        out.write(f"<tr>{''.join(cells)}</tr>")
        header = not row
        yield count
    out.write("</table>")
