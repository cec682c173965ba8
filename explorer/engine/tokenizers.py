"""Text to tokens and back, exactly: raw bytes of every token, special tokens told apart."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from explorer.engine import token_bytes
from explorer.engine.errors import BadInput
from explorer.trace.step import Origin, Token


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of one text, and what is wrong with it or worth knowing, if anything."""

    tokens: tuple[Token, ...]
    problem: str = ""


class Tokenizer:
    """One model's tokenizer.  Its methods may be called from several threads."""

    def __init__(self, library: Any) -> None:
        """Wrap a transformers tokenizer."""
        self.library = library
        self._backend = getattr(library, "backend_tokenizer", None)
        self._lock = threading.Lock()  # tokenizers written in Python are not safe to share
        if self._backend is None:
            self._vocabulary = _of_python(library)
        else:
            self._backend.no_truncation()
            self._backend.no_padding()
            self._vocabulary = token_bytes.of_backend(self._backend)
        self._before, self._after = self._added_around()

    @property
    def missing_bytes(self) -> tuple[int, ...]:
        """Byte values that the vocabulary cannot spell."""
        return self._vocabulary.missing_bytes

    @property
    def spelling(self) -> token_bytes.Spelling:
        """How the vocabulary writes bytes."""
        return self._vocabulary.spelling

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return len(self._vocabulary.raw)

    @property
    def has_chat_template(self) -> bool:
        """True if the model's folder says how messages become text."""
        return bool(getattr(self.library, "chat_template", None))

    @property
    def bos_policy(self) -> str:
        """What the tokenizer adds to a text of its own accord, as one sentence."""
        before, after = self._names(self._before), self._names(self._after)
        if not before and not after:
            return "Nothing is added in front of the text."
        words = f"{before} is added in front of the text" if before else "Nothing is added in front"
        return f"{words}, {after} behind it." if after else f"{words}."

    def token(self, token_id: int, origin: Origin = "prompt") -> Token:
        """The token of any id, also of those the model has and the tokenizer has not."""
        raw = self._vocabulary.raw
        if 0 <= token_id < len(raw) and (known := raw[token_id]) is not None:
            return Token(token_id, known, origin, token_id in self._vocabulary.special)
        return Token(token_id, f"<id {token_id}>".encode(), origin, True)

    def encode(self, text: str, chat: bool = False) -> Encoded:
        """The tokens of a text, or of one user message put through the chat template.

        BadInput for half a surrogate pair, or if there is no chat template.
        """
        _check_text(text)
        if chat:
            return Encoded(self._tokens(self._ids(self.render(text), add=False)))
        ids = self._ids(text, add=True)
        repeated = self._repeats_start(ids)
        if repeated:
            ids = ids[1:]
        problem = self._lost(text, ids)
        if repeated and not problem:
            name = self._names(self._before[:1])
            problem = f"The text starts with {name} itself, so no second one is put in front."
        return Encoded(self._tokens(ids), problem)

    def render(self, text: str) -> str:
        """One user message as the model's chat template writes it, ready for the answer."""
        _check_text(text)
        if not self.has_chat_template:
            raise BadInput("This model has no chat template; switch chat off and type raw text.")
        messages = [{"role": "user", "content": text}]
        try:
            with self._lock:
                return str(
                    self.library.apply_chat_template(
                        messages, tokenize=False, add_generation_prompt=True
                    )
                )
        except Exception as error:  # a template is a program of the model's own
            raise BadInput(
                "This model's chat template failed on the message; switch chat off.",
                traceback.format_exc(),
            ) from error

    def _ids(self, text: str, add: bool) -> list[int]:
        if self._backend is not None:
            return list(self._backend.encode(text, add_special_tokens=add).ids)
        with self._lock:
            return list(self.library(text, add_special_tokens=add)["input_ids"])

    def _tokens(self, ids: list[int]) -> tuple[Token, ...]:
        return tuple(self.token(i) for i in ids)

    def _added_around(self) -> tuple[list[int], list[int]]:
        """Ids that the tokenizer puts before and after every text."""
        bare, dressed = self._ids("a", add=False), self._ids("a", add=True)
        for start in range(len(dressed) - len(bare) + 1):
            if dressed[start : start + len(bare)] == bare:
                return dressed[:start], dressed[start + len(bare) :]
        return [], []

    def _repeats_start(self, ids: list[int]) -> bool:
        start = self._before
        return len(start) == 1 and len(ids) > 1 and ids[:2] == [start[0], start[0]]

    def _names(self, ids: list[int]) -> str:
        return " ".join(self.token(i).text for i in ids)

    def _lost(self, text: str, ids: list[int]) -> str:
        """One sentence if the tokens do not spell the text; empty if they do."""
        if self.spelling != "byte-level":
            return ""
        raw = [self.token(i).raw for i in ids]
        inner = raw[len(self._before) : len(raw) - len(self._after)]
        wanted, got = text.encode("utf-8"), b"".join(inner)
        if got in (wanted, b" " + wanted):  # some vocabularies put a space in front of every text
            return ""
        missing = sorted(set(wanted) & set(self.missing_bytes))
        if missing:
            names = ", ".join(f"0x{byte:02X}" for byte in missing)
            return f"This model's vocabulary cannot spell some bytes of the text: {names}."
        return "This model's tokenizer changes the text before it splits it: the tokens spell " + (
            "a normalised form of it." if len(got) > 0 else "nothing of it."
        )


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model folder; BadInput with a next step if there is none."""
    if not any((folder / name).is_file() for name in _FILES):
        raise BadInput(
            f"{folder.name} has no tokenizer (tokenizer.json or tokenizer.model); copy or download "
            "the whole folder."
        )
    try:
        library = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        return Tokenizer(library)
    except BadInput:
        raise
    except Exception as error:  # a damaged file fails in many ways
        raise BadInput(
            f"The tokenizer of {folder.name} cannot be read; download it again.",
            traceback.format_exc(),
        ) from error


_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
)


def _check_text(text: str) -> None:
    for place, char in enumerate(text):
        if 0xD800 <= ord(char) <= 0xDFFF:
            raise BadInput(
                f"Character {place + 1} of the text is half a surrogate pair, which no text file "
                "can hold; remove it."
            )


def _of_python(library: Any) -> token_bytes.Vocabulary:
    """The vocabulary of a tokenizer written in Python."""
    entries = library.get_vocab()
    raw: list[bytes | None] = [None] * (max(entries.values(), default=-1) + 1)
    for entry, token_id in entries.items():
        raw[token_id] = token_bytes.spell(entry, "byte-fallback")
    return token_bytes.Vocabulary("plain", tuple(raw), frozenset(library.all_special_ids), ())
