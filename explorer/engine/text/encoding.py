"""Text to tokens and back, exactly, whatever library splits the text: bytes of every token."""

from __future__ import annotations

import functools
import threading
import traceback
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from explorer.engine.errors import BadInput
from explorer.engine.text import chat_parts, conversation, template_limits, template_settings
from explorer.engine.text.conversation import TurnText
from explorer.engine.text.token_bytes import Spelling, TokenBytes
from explorer.trace.chat import ChatParts, ChatTurn, Message
from explorer.trace.step import Origin, Token

_KEPT_SPELLINGS = 4096


class Splitter(Protocol):
    """What a tokenizer of any kind must do; `ids` may be called from several threads."""

    vocabulary: TokenBytes

    def ids(self, text: str, add: bool, special_as_text: bool = False) -> list[int]:
        """Ids of a text; `add`: with what the tokenizer puts around every text."""

    def unspelled(self, text: str) -> list[str]:
        """Characters that become the unknown token."""

    def starts(self, text: str) -> list[int] | None:
        """The character at which each of `ids(text, add=False)` begins; None if not known."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of one text, and what is wrong with it or worth knowing, if anything."""

    tokens: tuple[Token, ...]
    problem: str = ""  # where they are not simply the text that was asked for
    note: str = ""
    parts: ChatParts | None = None  # of a chat prompt, where they can be told
    turns: tuple[ChatTurn, ...] = ()  # of a chat prompt or a conversation


class ModelTokenizer(ABC):
    """One model's tokenizer.  Its methods may be called from several threads."""

    def __init__(self, splitter: Splitter) -> None:
        self._splitter = splitter
        self._vocabulary = splitter.vocabulary
        self._lock = threading.Lock()
        # Of the hundred tokens that each step names, most were named before.
        self._spelled = functools.lru_cache(_KEPT_SPELLINGS)(self._spell)
        self._before, self._after = self._added_around()

    @property
    @abstractmethod
    def pad_token_id(self) -> int | None:
        """The tokenizer's own padding token, if it states one."""

    @property
    @abstractmethod
    def _stated_start(self) -> int | None:
        """The token that a text may begin with, if the files state one."""

    @property
    def start_id(self) -> int | None:
        """The start token; None if the model has none."""
        if len(self._before) == 1:
            return self._before[0]
        return self._stated_start

    @abstractmethod
    def _template(self) -> Any:
        """The chat template, a program that the model brings; empty or None without one."""

    @abstractmethod
    def _rendered(
        self, source: str, messages: list[dict[str, str]], opened: bool, more: dict[str, Any]
    ) -> str:
        """Messages as the template `source` writes them, told `more`; any exception if it fails."""

    @property
    def missing_bytes(self) -> tuple[int, ...]:
        """Byte values that the vocabulary cannot spell."""
        return self._vocabulary.missing_bytes

    @property
    def spelling(self) -> Spelling:
        """How the vocabulary writes bytes."""
        return self._vocabulary.spelling

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return len(self._vocabulary.raw)

    @property
    def has_chat_template(self) -> bool:
        """True if the model's folder says how messages become text."""
        return bool(self._template())

    @property
    def bos_policy(self) -> str:
        """What the tokenizer adds to a text of its own accord, as one sentence."""
        before, after = self._names(self._before), self._names(self._after)
        if not before and not after:
            return "No start token is added."
        words = f"{before} is added at the start" if before else "No start token is added"
        return f"{words}, {after} at the end." if after else f"{words}."

    def token(self, token_id: int, origin: Origin = "prompt") -> Token:
        """The token of any id, also of those the model has and the tokenizer has not."""
        return self._spelled(token_id, origin)

    def _spell(self, token_id: int, origin: Origin) -> Token:
        raw = self._vocabulary.raw
        if 0 <= token_id < len(raw) and (known := raw[token_id]) is not None:
            return Token(token_id, known, origin, token_id in self._vocabulary.special)
        return Token(token_id, f"<id {token_id}>".encode(), origin, True)

    def encode(self, text: str, chat: bool = False, special_as_text: bool = False) -> Encoded:
        """The tokens of a text, or of one user message put through the chat template.

        Text such as `<|im_end|>` becomes the control token of that name, as in transformers;
        with `special_as_text` it stays text, in a message too if the tokenizer can.  BadInput for
        half a surrogate pair, or if there is no chat template.
        """
        check_text(text)
        if chat:
            written = conversation.once(self._written)
            rendered = written([Message("user", text)], True)
            tokens = self._tokens(self._splitter.ids(rendered, add=False))
            problem = self._inside_chat(text)
            if special_as_text and problem:
                as_letters = self._letters_inside(rendered, text, tokens)
                if as_letters is None:
                    problem += " With this tokenizer and template, it can't be read as plain text."
                else:
                    tokens, problem = as_letters, ""
            parts = chat_parts.of(
                rendered,
                text,
                tokens,
                lambda some, opened: written([Message("user", some)], opened),
            )
            turns = self._turns_of_message(text, rendered, tokens, written)
            return Encoded(tokens, problem, parts=parts, turns=turns)
        return self._encoded(text, self._splitter.ids(text, True, special_as_text))

    def render(self, text: str, opened: bool = True) -> str:
        """One user message as the model's chat template writes it; `opened`: ready to answer."""
        check_text(text)
        return self._written([Message("user", text)], opened)

    def encode_messages(self, messages: Sequence[Message], arguments: str = "") -> Encoded:
        """The tokens of a conversation, with its turns; `arguments`: a JSON object.

        BadInput, in words, if the template refuses the messages or reads no such argument.
        """
        more = template_settings.read_arguments(arguments)
        for message in messages:
            check_text(message.content)
        render = conversation.once(lambda some, opened: self._written(some, opened, more))
        written = conversation.rendered(messages, render, self._start_text)
        ids = self._splitter.ids(written.text, add=False)
        tokens = self._tokens(ids)
        starts = self._starts(written.text, tokens)
        notes = written.notes
        if starts is None:
            notes.append(
                "The turns are not shown: this model's tokenizer changes the text of the template."
            )
        contents = dict.fromkeys(message.content for message in messages)
        problems = list(filter(None, map(self._inside_chat, contents)))
        source, _ = template_settings.chosen(self._template(), more)
        if template_settings.writes_date(source):
            notes.append("This chat template can write today's date into the prompt.")
        turns = () if starts is None else _slots(written.turns, starts)
        return Encoded(tokens, " ".join(problems), " ".join(notes), turns=turns)

    @property
    def _start_text(self) -> str:
        return "" if self.start_id is None else self.token(self.start_id).text

    def _starts(self, text: str, tokens: Sequence[Token]) -> list[int] | None:
        """The character at which each of these tokens of `text` begins; None if not known."""
        starts = self._splitter.starts(text)
        return chat_parts.character_starts(text, tokens) if starts is None else starts

    def _turns_of_message(
        self, text: str, rendered: str, tokens: Sequence[Token], render: conversation.Render
    ) -> tuple[ChatTurn, ...]:
        """The turns of one user message; none where they can't be told."""
        message = Message("user", text)
        try:
            written = conversation.rendered([message], render, self._start_text)
        except BadInput:
            return ()
        starts = self._starts(rendered, tokens)
        return () if starts is None or written.text != rendered else _slots(written.turns, starts)

    def _written(
        self, messages: Sequence[Message], opened: bool, more: dict[str, Any] | None = None
    ) -> str:
        """`more`: what else the template is given; None for a message that was typed."""
        template = self._template()
        if not template:
            raise BadInput("This model has no chat template. Switch chat off and type raw text.")
        try:
            template_limits.bind(template)
            source, rest = template_settings.chosen(template, more or {})
            told = [{"role": one.role, "content": one.content} for one in messages]
            with self._lock:
                return self._rendered(source, told, opened, rest)
        except BadInput:
            raise
        except Exception as error:  # a template is a program of the model's own
            words = "" if more is None else template_settings.refusal(error)
            raise BadInput(
                words or "This model's chat template failed on the message. Switch chat off.",
                traceback.format_exc(),
            ) from error

    def _encoded(self, text: str, ids: list[int]) -> Encoded:
        """Tokens with exactly one start token, and remarks."""
        start = self._before
        doubled = len(start) == 1 and ids[:2] == [start[0], start[0]]
        if doubled:
            ids = ids[1:]
        note = ""
        if doubled:
            name = self._names(self._before)
            note = f"The text already starts with {name}, so no second one is added."
        return Encoded(self._tokens(ids), self._problems(text, ids), note)

    def _tokens(self, ids: list[int]) -> tuple[Token, ...]:
        return tuple(self.token(i) for i in ids)

    def _names(self, ids: list[int]) -> str:
        return " ".join(self.token(i).text for i in ids)

    def _added_around(self) -> tuple[list[int], list[int]]:
        """Ids that the tokenizer puts before and after every text."""
        bare, dressed = self._splitter.ids("a", add=False), self._splitter.ids("a", add=True)
        for start in range(len(dressed) - len(bare) + 1):
            if dressed[start : start + len(bare)] == bare:
                return dressed[:start], dressed[start + len(bare) :]
        return [], []

    def _inside_chat(self, text: str) -> str:
        """A remark on control tokens inside the user's own message."""
        return self._control_words(self._splitter.ids(text, add=False))

    def _letters_inside(
        self, rendered: str, text: str, tokens: tuple[Token, ...]
    ) -> tuple[Token, ...] | None:
        """The chat prompt with the names of control tokens in the message read as letters.

        None unless the same way of reading gives the usual tokens for a message without any.
        """
        plain = text
        for token in tokens:
            if token.special and token.raw:
                plain = plain.replace(token.raw.decode("utf-8", "replace"), " ")
        usual = self.render(plain)
        ids = self._splitter.ids(usual, add=False)
        if self._pieces(usual, plain, self._tokens(ids)) != ids:
            return None
        found = self._pieces(rendered, text, tokens)
        if found is None:
            return None
        spelled = self._tokens(found)
        same = b"".join(token.raw for token in spelled) == rendered.encode()
        return spelled if same else None

    def _pieces(self, rendered: str, text: str, tokens: tuple[Token, ...]) -> list[int] | None:
        place = chat_parts.place_of(rendered, text, self.render)
        if place is None:
            return None
        return chat_parts.letters_within(
            rendered, place, tokens, lambda piece: self._splitter.ids(piece, False, True)
        )

    def _problems(self, text: str, ids: list[int]) -> str:
        """Where the tokens do not simply spell the text, in words; empty if they do."""
        inner = ids[len(self._before) : len(ids) - len(self._after)]
        return " ".join(filter(None, (self._lost(text, inner), self._control_words(inner))))

    def _control_words(self, ids: list[int]) -> str:
        found = sorted({i for i in ids if i in self._vocabulary.special})
        if not found:
            return ""
        return f"{self._names(found)} in the text is read as a control token, not as plain text."

    def _lost(self, text: str, ids: list[int]) -> str:
        """One sentence if the tokens do not spell the text; empty if they do."""
        if self.spelling not in ("byte-level", "byte-fallback"):
            return ""
        wanted, got = text.encode("utf-8"), b"".join(self.token(i).raw for i in ids)
        if got in (wanted, b" " + wanted):  # some vocabularies put a space in front of every text
            return ""
        if missing := sorted(set(wanted) & set(self.missing_bytes)):
            names = ", ".join(f"0x{byte:02X}" for byte in missing)
            return f"Some bytes of the text are missing from this model's vocabulary: {names}."
        if unknown := self._splitter.unspelled(text):
            names = ", ".join(dict.fromkeys(unknown))
            return f"Some characters of the text are missing from this model's vocabulary: {names}."
        return (
            "This model's tokenizer normalises the text first (for example accents or "
            "spaces). The tokens show what the model gets."
        )


def _slots(turns: Sequence[TurnText], starts: Sequence[int]) -> tuple[ChatTurn, ...]:
    """Turns by tokens: each belongs to the turn in which it begins, as no turn is without one."""
    found = []
    for one in turns:
        first, end = bisect_left(starts, one.first), bisect_left(starts, one.end)
        if first >= end:  # within one token
            first = max(0, bisect_right(starts, one.first) - 1)
            end = first + 1
        text = None if one.text is None else _within(one.text, starts)
        found.append(
            ChatTurn(
                role=one.role, first_slot=first, last_slot=end - 1, message=one.message, text=text
            )
        )
    return tuple(found)


def _within(place: tuple[int, int], starts: Sequence[int]) -> tuple[int, int]:
    """The first token that holds some of these characters, and the first behind them."""
    first = max(0, bisect_right(starts, place[0]) - 1)
    return first, bisect_left(starts, place[1]) if place[1] > place[0] else first


def check_text(text: str) -> None:
    """BadInput if a text holds half a surrogate pair, which no encoding can spell."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(
            f"Character {error.start + 1} of the text is half of a surrogate pair. Delete it."
        ) from error
