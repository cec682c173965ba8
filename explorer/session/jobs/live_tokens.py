"""The prompt's live tokens, and what can be wrong with a text before any model has seen it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from explorer.session.connection.engine_link import EngineLink
from explorer.session.state import Reading, reading
from explorer.session.store import Store
from explorer.trace.chat import ChatParts
from explorer.trace.request import RunRequest
from explorer.trace.wire.messages import Cancel, Failed, Finished, Tokenize, Tokens

_SLOW_SECONDS = 2.0  # a question that is open for longer may never be answered
_PROMPTS = 16  # whose parts are remembered
NONE: dict[str, Any] = {
    "prompt_tokens": (), "prompt_parts": None, "prompt_turns": (), "prompt_note": "",
}  # fmt: skip
"""The state without live tokens."""


def encoding_problem(text: str) -> str:
    """One sentence if the text is not valid Unicode (a lone surrogate); else empty."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        return (
            f"Character {error.start + 1} of the prompt is half of a character (lone surrogate "
            f"U+{code:04X}). Delete it and try again."
        )
    return ""


def problem_of(request: RunRequest) -> str:
    """The same of all that a run reads."""
    texts = [one.content for one in request.messages] or [request.prompt]
    return next(filter(None, map(encoding_problem, texts)), "")


class LiveTokens:
    """Keeps `prompt_tokens` in step with the prompt: one question at a time, about the newest."""

    def __init__(self, store: Store, link: EngineLink) -> None:
        self._store = store
        self._link = link
        self._on = False  # a model is there to ask
        self._asked: tuple[int, Reading] | None = None  # run and subject of the open question
        self._asked_at = 0.0  # monotonic seconds
        self._known: Reading | None = None  # what prompt_tokens are the tokens of

    def start(self) -> None:
        """A model was loaded."""
        self._on = True
        self.refresh()

    def stop(self) -> None:
        """The model or the engine is gone; an open question is never answered.

        It is cancelled, so that a tokenizer that never returns is noticed.
        """
        self._on = False
        if self._asked is not None:
            self._link.send(Cancel(run=self._asked[0]))
        self._asked = self._known = None

    def refresh(self) -> None:
        """Ask about the prompt, unless its tokens are known or a question is open."""
        request = self._store.state.request
        wanted = reading(request)
        problem = problem_of(request)
        if problem:
            self._forget(problem)
        elif self._store.state.other_model:  # the open one would split the text its own way
            self._forget("")
        elif self._on and self._asked is None and wanted != self._known:
            run = self._link.ask(Tokenize(request=request))
            self._asked = (run, wanted)
            self._asked_at = time.monotonic()
        elif self._asked is not None and wanted != self._asked[1]:
            # What is wanted now may be answered, without the chat template, say.
            otherwise = wanted[2:] != self._asked[1][2:]
            if otherwise or time.monotonic() - self._asked_at > _SLOW_SECONDS:
                self._link.send(Cancel(run=self._asked[0]))

    def _forget(self, problem: str) -> None:
        """There are no tokens to show, for this reason."""
        self._known = None
        self._store.set(**NONE, prompt_problem=problem)

    def ended(self, event: Finished) -> bool:
        """True if the question was cancelled: then the newest text is asked about."""
        if self._asked is None or event.run != self._asked[0]:
            return False
        self._asked = None
        self.refresh()
        return True

    def answered(self, event: Tokens) -> None:
        """Show the tokens if they are those of the newest text; else ask again."""
        if self._asked is None or event.run != self._asked[0]:
            return
        about, self._asked = self._asked[1], None
        if about == reading(self._store.state.request):
            self._known = about
            self._store.set(
                prompt_tokens=event.tokens,
                prompt_parts=event.parts,
                prompt_turns=event.turns,
                prompt_problem=event.problem,
                prompt_note=event.note,
                chat_parts=self._remembered(event.parts),
            )
        else:
            self.refresh()

    def failed(self, event: Failed) -> bool:
        """True if the failure was this question's."""
        if self._asked is None or event.run != self._asked[0]:
            return False
        self._asked = None
        self._store.set(**NONE, prompt_problem=event.sentence)
        return True

    def _remembered(self, parts: ChatParts | None) -> Mapping[Reading, ChatParts]:
        """A run keeps the marks of its prompt when another is typed: those of the last prompts."""
        known = self._store.state.chat_parts
        if parts is None:
            return known
        kept = list({**known, reading(self._store.state.request): parts}.items())
        return dict(kept[-_PROMPTS:])
