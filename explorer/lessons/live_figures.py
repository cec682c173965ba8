"""Every name that a lesson's figures may use, and the functions that are not about a run."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.lessons.figures import of_model, of_prediction, of_training
from explorer.lessons.quantities import NamedFigure, NotKnown, Quantity, Value

_NO_DIGITS = Quantity(0)


def _when(*_: object) -> Value:
    return NotKnown("“when” needs a condition.")  # worked out where expressions are


def _rounded(_: object, value: Quantity, digits: Quantity = _NO_DIGITS) -> Value:
    number, places = value.number, digits.number
    if number is None or places is None or not 0 <= places <= 9:
        return NotKnown("“round” takes a number, and 0 to 9 digits.")
    try:
        return Quantity(round(number, int(places)) if places else round(number), value.unit)
    except (OverflowError, ValueError):
        return NotKnown("This number can't be rounded.")


def _absolute(_: object, value: Quantity) -> Value:
    number = value.number
    return (
        NotKnown("“abs” takes a number.") if number is None else Quantity(abs(number), value.unit)
    )


def _largest(_: object, *values: Quantity) -> Value:
    return _one_of(values, 1)


def _smallest(_: object, *values: Quantity) -> Value:
    return _one_of(values, -1)


def _one_of(values: tuple[Quantity, ...], sign: int) -> Value:
    numbers = [value.number for value in values]
    if None in numbers:
        return NotKnown("Only numbers have a largest and a smallest.")
    return max(values, key=lambda value: sign * (value.number or 0.0))


_GENERAL = (
    NamedFigure("when", "when(condition, value, other value)", 3, 3, _when),
    NamedFigure("round", "round(number) or round(number, digits)", 1, 2, _rounded),
    NamedFigure("abs", "a number without its sign", 1, 1, _absolute),
    NamedFigure("max", "the largest of some numbers", 2, 6, _largest),
    NamedFigure("min", "the smallest of some numbers", 2, 6, _smallest),
)

_ALL = (
    *_GENERAL, *of_prediction.FIGURES, *of_model.FIGURES, *of_training.FIGURES,
)  # fmt: skip

NAMES: Mapping[str, NamedFigure] = {figure.name: figure for figure in _ALL}
