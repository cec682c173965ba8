"""The file's own tokenizer, as llama.cpp runs it."""

from __future__ import annotations

import ctypes as c
import threading
from typing import Any

from explorer.engine.errors import BadInput
from explorer.engine.gguf.header import Header
from explorer.engine.text.encoding import ModelTokenizer
from explorer.engine.text.token_bytes import Spelling, TokenBytes
from explorer.llama_engine.binding.library import LlamaLibrary
from explorer.llama_engine.model import chat_template

_SPELLINGS: dict[int, Spelling] = {  # llama_vocab_type
    1: "byte-fallback",  # SentencePiece
    2: "byte-level",
    3: "word-piece",
    4: "byte-fallback",  # unigram
    5: "byte-level",
    6: "byte-fallback",
}
_UNKNOWN, _CONTROL = 1 << 0, 1 << 3  # llama_token_attr
_LONGEST_PIECE = 4096  # bytes of one token


class LlamaSplitter:
    """Text to ids by llama_tokenize."""

    def __init__(self, library: LlamaLibrary, vocab: int) -> None:
        self._library, self._vocab = library, vocab
        self._lock = threading.Lock()
        self.vocabulary = _token_bytes(library, vocab)

    def ids(self, text: str, add: bool, special_as_text: bool = False) -> list[int]:
        """Ids of a text; `add`: with what the file says to put around every text."""
        data = text.encode()
        room = len(data) + 8
        while True:
            found = (c.c_int32 * room)()
            with self._lock:
                count = self._library.llama_tokenize(
                    self._vocab, data, len(data), found, room, add, not special_as_text
                )
            if count >= 0:
                return found[:count]
            if -count <= room:
                raise BadInput("llama.cpp's tokenizer failed on the text. Change the text.")
            room = -count

    def unspelled(self, text: str) -> list[str]:
        """Characters that become the unknown token: none is marked here."""
        return []

    def starts(self, text: str) -> list[int] | None:
        """Where tokens begin in the text: llama.cpp does not say."""
        return None


class LlamaTokenizer(ModelTokenizer):
    """Tokenizer and chat template of one .gguf file."""

    def __init__(self, library: LlamaLibrary, vocab: int, header: Header) -> None:
        super().__init__(LlamaSplitter(library, vocab))
        self._pad = int(library.llama_vocab_pad(vocab))
        self._chat = _templates(header)
        self._named = self._named_tokens(header)
        self._start = header.metadata.get("tokenizer.ggml.bos_token_id")

    @property
    def pad_token_id(self) -> int | None:
        """The padding token that the file states, if any."""
        return self._pad if self._pad >= 0 else None

    def _named_tokens(self, header: Header) -> dict[str, str]:
        """bos_token, eos_token and the like, for the chat template."""
        found = {}
        for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
            token_id = header.metadata.get(f"tokenizer.ggml.{key}_token_id")
            if isinstance(token_id, int) and 0 <= token_id < self.size:
                found[f"{name}_token"] = self.token(token_id).text
        return {"bos_token": "", "eos_token": "", **found}

    @property
    def _stated_start(self) -> int | None:
        start = self._start
        return start if isinstance(start, int) and 0 <= start < self.size else None

    def _template(self) -> Any:
        return self._chat

    def _rendered(
        self, source: str, messages: list[dict[str, str]], opened: bool, more: dict[str, Any]
    ) -> str:
        return chat_template.render(source, messages, opened, {**more, **self._named})


def _templates(header: Header) -> str | dict[str, str]:
    """The file's chat template; several by their names where there are more."""
    key = "tokenizer.chat_template"
    default = header.metadata.get(key) or ""
    more = {
        name.removeprefix(f"{key}."): str(text)
        for name, text in header.metadata.items()
        if name.startswith(f"{key}.") and text
    }
    return ({"default": default, **more} if default else more) if more else default


def _token_bytes(library: LlamaLibrary, vocab: int) -> TokenBytes:
    """The bytes of every id; some hundredths of a second for a wide vocabulary."""
    count = library.llama_vocab_n_tokens(vocab)
    piece, attributes = library.llama_token_to_piece, library.llama_vocab_get_attr
    buffer = c.create_string_buffer(_LONGEST_PIECE)
    raw: list[bytes | None] = []
    special, single = set(), set()
    for token_id in range(count):
        kind = attributes(vocab, token_id)
        length = piece(vocab, token_id, buffer, _LONGEST_PIECE, 0, True)
        data = c.string_at(buffer, length) if length > 0 else b""
        raw.append(data or None)
        if kind & (_CONTROL | _UNKNOWN):
            special.add(token_id)
        elif len(data) == 1:
            single.add(data[0])
    spelling = _SPELLINGS.get(library.llama_vocab_type(vocab), "plain")
    return TokenBytes(spelling, tuple(raw), frozenset(special), _missing(spelling, single))


def _missing(spelling: Spelling, single: set[int]) -> tuple[int, ...]:
    """Byte values that no entry spells, in vocabularies that spell bytes."""
    if spelling == "byte-level":
        return tuple(byte for byte in range(256) if byte not in single)
    if spelling == "byte-fallback":
        high = tuple(byte for byte in range(128, 256) if byte not in single)
        return high if len(high) < 128 else ()
    return ()
