"""A bound on what a model's chat template, a program that its files bring, may write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment

from explorer.engine.errors import BadInput

MOST_LETTERS = 1 << 23  # far more than any context holds
_LONGEST = 1 << 20  # of the template itself; real ones have some thousand letters
_LARGEST_POWER = 1000
_STOCK = ImmutableSandboxedEnvironment.call_binop


def bind(template: Any) -> None:
    """Let a template that writes too much end as BadInput, also if it is itself far too long.

    For this process as a whole: each template that is rendered here is a model's.
    """
    kind: Any = ImmutableSandboxedEnvironment
    kind.concat = staticmethod(_joined)
    kind.intercepted_binops = frozenset({"*", "**"})
    kind.call_binop = _multiplied
    if len(template if isinstance(template, str) else str(template)) > _LONGEST:
        raise BadInput("This model's chat template is far too long to be one; switch chat off.")


def _joined(pieces: Iterable[str]) -> str:
    """The pieces as one text; they are made one by one, so that an endless template stops here."""
    found, length = [], 0
    for piece in pieces:
        length += len(piece)
        if length > MOST_LETTERS:
            raise _too_long()
        found.append(piece)
    return "".join(found)


def _multiplied(self: Any, context: Any, operator: str, left: Any, right: Any) -> Any:
    """`left * right`, unless that repeats a text or a list more often than it may be written."""
    count, repeated = (left, right) if isinstance(left, int) else (right, left)
    if isinstance(count, int) and operator == "*" and hasattr(repeated, "__len__"):
        if len(repeated) * count > MOST_LETTERS:
            raise _too_long()
    elif operator == "**" and not (isinstance(right, int) and abs(right) < _LARGEST_POWER):
        raise _too_long()
    return _STOCK(self, context, operator, left, right)


def _too_long() -> BadInput:
    return BadInput(
        f"This model's chat template writes more than {MOST_LETTERS:,} letters for one message; "
        "switch chat off."
    )
