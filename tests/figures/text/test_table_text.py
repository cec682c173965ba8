"""Tables as text: nothing is lost on the way, and a cell is text whatever it holds."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

import numpy as np

from explorer.figures.text import table_text

ROWS = [("text", "p"), ('a "b",\tc', 0.1), ("👩‍🚀\n漢", 1e-300), ("<b>&lt;", 3)]


def text(rows: Iterable[Sequence[object]], form: table_text.Form = "csv") -> str:
    """A whole table as text."""
    out = io.StringIO(newline="")
    table_text.write_all(rows, out, form)
    return out.getvalue()


def test_comma_and_tab_separated_text_reads_back() -> None:
    for form, dialect in (("csv", "excel"), ("tab", "excel-tab")):
        found = text(ROWS, form)  # type: ignore[arg-type]
        read = list(csv.reader(io.StringIO(found, newline=""), dialect=dialect))
        assert read == [[str(cell) for cell in row] for row in ROWS]


def test_html_holds_the_cells_as_text_and_a_header_for_each_block() -> None:
    found = text([*ROWS, (), ("second",), (1,)], "html")
    assert "<th>text</th><th>p</th>" in found
    assert "<td>&lt;b&gt;&amp;lt;</td><td>3</td>" in found
    assert "<th>second</th>" in found
    assert found.endswith("<td>1</td></tr></table>")


def test_several_forms_are_written_at_once() -> None:
    outs: dict[table_text.Form, io.StringIO] = {f: io.StringIO() for f in ("tab", "html", "csv")}
    list(table_text.write_forms(iter(ROWS), outs))
    for form, out in outs.items():
        assert out.getvalue() == text(ROWS, form)


def test_every_float32_reads_back_as_it_was() -> None:
    bits = np.random.default_rng(1).integers(0, 0x7F800000, 4000, dtype=np.uint32)
    figures = bits.view(np.float32)
    read = np.array(table_text.exact(figures), np.float64).astype(np.float32)
    np.testing.assert_array_equal(read, figures)


def test_a_matrix_is_what_numpy_reads() -> None:
    figures = np.random.default_rng(2).random((5, 3), np.float32)
    found = text(table_text.matrix(figures))
    read = np.loadtxt(io.StringIO(found), delimiter=",", dtype=np.float32)
    np.testing.assert_array_equal(read, figures)
