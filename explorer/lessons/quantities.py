"""Values of live figures: a number, text or truth with its unit, and the sums of two of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
_SIGNS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip

Unit = Literal["", "share", "count", "bytes", "ms", "nats", "text", "truth"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value and what it is a value of; its unit says how it is worded."""

    value: float | str | bool
    unit: Unit = ""

    @property
    def number(self) -> float | None:
        """The value as a number; None for a text."""
        return None if isinstance(self.value, str) else float(self.value)


@dataclass(frozen=True, slots=True)
class NotKnown:
    """A value that can't be had, and why, as one sentence."""

    reason: str


Value = Quantity | NotKnown


@dataclass(frozen=True, slots=True)
class NamedFigure:
    """One name of the language: what it means, and the function that works it out.

    `work(facts, *arguments)` gets numbers and texts; `least` to `most` of them.
    """

    name: str
    words: str
    least: int
    most: int
    work: Callable[..., Value]


def operated(sign: str, values: list[Quantity]) -> Value:
    if sign in ("and", "or", "not"):
        truth = bool(values[-1].value)
        return Quantity(truth is not (sign == "not"), "truth")
    texts = [isinstance(one.value, str) for one in values]
    if sign in ("==", "!=") and any(texts):
        same = all(texts) and _folded(values[0]) == _folded(values[1])
        return Quantity(same is (sign == "=="), "truth")
    if any(texts):
        return NotKnown("A text can only be compared with == and !=.")
    numbers = [float(one.value) for one in values]
    if sign == "negative":
        return Quantity(-values[0].value, values[0].unit)  # type: ignore[operator]
    if sign in COMPARISONS:
        return Quantity(_compared(sign, *numbers), "truth")
    return _computed(sign, values)


def _folded(value: Quantity) -> str:
    return str(value.value).strip().casefold()


def _compared(sign: str, left: float, right: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return sign == "!="
    close = math.isclose(left, right, rel_tol=1e-9)
    if sign in ("==", "!="):
        return close is (sign == "==")
    if sign in ("<=", ">="):
        return close or (left < right if sign == "<=" else left > right)
    return not close and (left < right if sign == "<" else left > right)


def _computed(sign: str, values: list[Quantity]) -> Value:
    left, right = values
    one, other = left.value, right.value
    assert not isinstance(one, str)
    assert not isinstance(other, str)
    if sign == "/" and other == 0:
        return NotKnown("This would divide by zero.")
    try:
        number = _SIGNS[sign](one, other)
    except OverflowError:
        return NotKnown("The number is too large.")
    if abs(number) > 1e300:
        return NotKnown("The number is too large.")
    return Quantity(number, _unit(sign, left.unit, right.unit))


def _unit(sign: str, left: Unit, right: Unit) -> Unit:
    if sign in "+-":
        return left if left == right or not right else right if not left else ""
    plain = ("", "count")
    if sign == "*":
        return left if right in plain else right if left in plain else ""
    return left if right in plain and left not in plain else ""
