"""When a run ends by itself: the context is full, an end token, a string, enough tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from explorer.engine.passes.layout import Layout
from explorer.trace.card import ModelCard
from explorer.trace.request import RunRequest, Stops
from explorer.trace.step import Token


class StopRules:
    """Asked before and after each step; each answer is the reason to end, empty to go on."""

    def __init__(
        self,
        card: ModelCard,
        token: Callable[[int], Token],
        request: RunRequest,
        stops: Stops,
        chosen: Sequence[int],
    ) -> None:
        """`token` spells an id."""
        self._ends = set(card.eos_ids) if stops.end_tokens else set()
        policy = request.context
        self._context = 0 if policy.moves_sinks else card.context
        self._limit = policy.limit(0)
        self._most = min(filter(None, (request.max_tokens, stops.tokens)), default=0)
        self._strings = [text.encode("utf-8", "surrogatepass") for text in stops.strings if text]
        self._count = len(chosen)
        self._text = b"".join(token(i).raw for i in chosen)

    def before(self, layout: Layout) -> str:
        """May the model read so many slots, and one more token come of it?"""
        if self._most and self._count >= self._most:
            return "length"
        slots = len(layout.ids)
        full = self._context and slots + layout.offset > self._context
        return "context" if full or (self._limit and slots > self._limit) else ""

    def after(self, token: Token) -> str:
        """Was this token, or a string that it completes, one to end with?"""
        self._count += 1
        before, self._text = len(self._text), self._text + token.raw
        if token.id in self._ends:
            return "end token"
        for string in self._strings:
            if self._text.find(string, max(0, before - len(string) + 1)) >= 0:
                return "stop string"
        return ""
