"""The language of live figures: what it says, what it refuses, and that it runs nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.lessons.expressions import ExpressionError, parse
from explorer.lessons.quantities import NamedFigure, NotKnown, Quantity, Value


def half(facts: object, token: Quantity) -> Value:
    return Quantity(0.5, "share")


NAMES = {
    one.name: one
    for one in (
        NamedFigure("p", "", 1, 1, half),
        NamedFigure("size", "", 0, 0, lambda facts: Quantity(1024, "bytes")),
        NamedFigure("missing", "", 0, 0, lambda facts: NotKnown("Not measured.")),
        NamedFigure("when", "", 3, 3, lambda *_: NotKnown("")),
    )
}


def value(source: str) -> Value:
    return parse(source, NAMES).value(None)


RIGHT = [
    ("1 + 2 * 3", Quantity(7)),
    ("-(2 - 5) / 2", Quantity(1.5)),
    ("2 - 3 - 4", Quantity(-5)),
    ("p('a') * 2", Quantity(1.0, "share")),
    ("size / 2", Quantity(512.0, "bytes")),
    ("size / size", Quantity(1.0)),
    ("size() + size", Quantity(2048, "bytes")),
    ("1 < 2 and not 2 <= 1", Quantity(True, "truth")),
    ("0.1 + 0.2 == 0.3", Quantity(True, "truth")),
    ("'Paris' == ' paris '", Quantity(True, "truth")),
    ("'a' != 1", Quantity(True, "truth")),
    (r"'it\'s'", Quantity("it's", "text")),
    ("when(1 > 2, 'a', \"b\")", Quantity("b", "text")),
    ("when(1 < 2, 1, missing)", Quantity(1)),
    ("1 == 1 or missing", Quantity(True, "truth")),
    ("missing + 1", NotKnown("Not measured.")),
    ("1 / 0", NotKnown("This would divide by zero.")),
]


@pytest.mark.parametrize(("source", "wanted"), RIGHT, ids=[one[0] for one in RIGHT])
def test_what_an_expression_says(source: str, wanted: Value) -> None:
    assert value(source) == wanted


WRONG = [
    "", "(", "1 +", "p", "p(1, 2)", "p(1", "x", "1 < 2 < 3", "x = 1", "'open", "a.b", "p[0]", "1 2",
    "__import__('os')", "lambda: 1", "{}", "1e400", "(" * 40 + "1" + ")" * 40, "1+" * 100 + "1",
    "-" * 100 + "1", "not " * 90 + "1", "9" * 300, "'" + "a" * 500 + "'",
]  # fmt: skip


@pytest.mark.parametrize("source", WRONG)
def test_what_is_no_expression_is_refused_in_a_sentence(source: str) -> None:
    with pytest.raises(ExpressionError, match=r"[.?]$"):
        parse(source, NAMES)


@given(st.text(st.sampled_from("p(size)'1 2.+-*/<>=!,\\\"whenandmissing\n"), max_size=60))
def test_any_text_is_an_expression_or_refused(source: str) -> None:
    try:
        expression = parse(source, NAMES)
    except ExpressionError:
        return
    assert isinstance(expression.value(None), Quantity | NotKnown)
