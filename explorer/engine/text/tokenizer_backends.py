"""Three ways a text becomes ids: a fast tokenizer, one written in Python, and tiktoken."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tiktoken
from tokenizers import Tokenizer as Backend

from explorer.engine.errors import BadInput, no_panic
from explorer.engine.text import token_bytes
from explorer.engine.text.token_bytes import TokenBytes


@contextmanager
def _splitting() -> Iterator[None]:
    """While inside, whatever a model's tokenizer makes of a text ends as BadInput."""
    try:
        with no_panic():
            yield
    except MemoryError:
        raise
    except Exception as error:  # patterns and tables are the model's own
        raise BadInput(
            "This model's tokenizer failed on the text; change the text, or download the model's "
            "tokenizer again.",
            traceback.format_exc(),
        ) from error


class FastSplitter:
    """A `tokenizers.Tokenizer`, as a tokenizer.json describes it."""

    def __init__(self, backend: Any) -> None:
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        self.vocabulary = token_bytes.of_backend(backend)
        self._literal: Any = None
        self._making = threading.Lock()

    def ids(self, text: str, add: bool, special_as_text: bool = False) -> list[int]:
        backend = self._without_specials() if special_as_text else self.backend
        with _splitting():
            return list(backend.encode(text, add_special_tokens=add).ids)

    def starts(self, text: str) -> list[int] | None:
        with _splitting():
            found = self.backend.encode(text, add_special_tokens=False)
        starts = [start for start, _ in found.offsets]
        return starts if starts == sorted(starts) else None

    def unspelled(self, text: str) -> list[str]:
        name = getattr(self.backend.model, "unk_token", None)
        unknown = self.backend.token_to_id(name) if name else None
        if unknown is None:
            return []
        found = self.backend.encode(text, add_special_tokens=False)
        pairs = zip(found.ids, found.offsets, strict=True)
        return [text[start:end] for token_id, (start, end) in pairs if token_id == unknown]

    def _without_specials(self) -> Any:
        # A copy: the switch belongs to the tokenizer, and another thread may be using that.
        with self._making:
            if self._literal is None:
                self._literal = Backend.from_str(self.backend.to_str())
                self._literal.encode_special_tokens = True
            return self._literal


class PythonSplitter:
    """A transformers tokenizer written in Python; one thread at a time."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._lock = threading.Lock()
        special = frozenset(int(i) for i in library.all_special_ids)
        self.vocabulary = token_bytes.of_entries(library.get_vocab(), {}, special, "plain")

    def ids(self, text: str, add: bool, special_as_text: bool = False) -> list[int]:
        with self._lock, _splitting():
            found = self._library(
                text, add_special_tokens=add, split_special_tokens=special_as_text
            )
        return [int(i) for i in found["input_ids"]]

    def unspelled(self, text: str) -> list[str]:
        return []

    def starts(self, text: str) -> list[int] | None:
        return None


class TiktokenSplitter:
    """A tiktoken encoding; `start` is put in front of every text."""

    def __init__(
        self, encoding: tiktoken.Encoding, vocabulary: TokenBytes, start: tuple[int, ...] = ()
    ) -> None:
        self.encoding = encoding
        self.vocabulary = vocabulary
        self._start = start

    def ids(self, text: str, add: bool, special_as_text: bool = False) -> list[int]:
        front = list(self._start) if add else []
        with _splitting():
            if special_as_text:
                return front + self.encoding.encode(text, disallowed_special=())
            return front + self.encoding.encode(text, allowed_special="all")

    def unspelled(self, text: str) -> list[str]:
        return []

    def starts(self, text: str) -> list[int] | None:
        return None
