"""The exact bytes of every vocabulary entry, for each way that vocabularies are spelled."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from explorer.engine.errors import BadInput

MOST_IDS = 1 << 22  # the widest vocabularies have 2^18; each id takes a place in a table
Spelling = Literal["byte-level", "byte-fallback", "word-piece", "plain"]
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_alphabet() -> dict[str, int]:
    """The byte value of each printable stand-in that byte-level vocabularies are written in."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(rest)}


ALPHABET = byte_alphabet()
_TO_LATIN1 = {ord(char): byte for char, byte in ALPHABET.items()}


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """Bytes and special flag of each id; ids that no entry has are None."""

    spelling: Spelling
    raw: tuple[bytes | None, ...]
    special: frozenset[int]
    missing_bytes: tuple[int, ...]  # byte values that no entry spells


def of_backend(backend: Any) -> TokenBytes:
    """Read a `tokenizers.Tokenizer`, added tokens included."""
    added = backend.get_added_tokens_decoder()
    entries = backend.get_vocab(with_added_tokens=True)
    spelling = spelling_of(backend)
    texts = {i: token.content for i, token in added.items()}
    special = frozenset(i for i, token in added.items() if token.special)
    return of_entries(entries, texts, special, spelling)


def of_entries(
    entries: dict[str, int], texts: dict[int, str], special: frozenset[int], spelling: Spelling
) -> TokenBytes:
    """From entries as the vocabulary spells them, and added tokens, which are plain text."""
    raw = _table([*entries.values(), *texts])
    for entry, token_id in entries.items():
        raw[token_id] = spell(entry, spelling)
    for token_id, text in texts.items():
        raw[token_id] = text.encode("utf-8")
    return TokenBytes(spelling, tuple(raw), special, _missing(entries, spelling))


def of_bytes(ranks: dict[bytes, int], special: dict[str, int]) -> TokenBytes:
    """From a tiktoken vocabulary, whose entries are bytes to begin with."""
    raw = _table([*ranks.values(), *special.values()])
    for entry, token_id in ranks.items():
        raw[token_id] = entry
    for text, token_id in special.items():
        raw[token_id] = text.encode("utf-8")
    missing = tuple(byte for byte in range(256) if bytes([byte]) not in ranks)
    return TokenBytes("byte-level", tuple(raw), frozenset(special.values()), missing)


def _table(ids: Collection[int]) -> list[bytes | None]:
    """An empty place for each id; BadInput where one is beyond any vocabulary."""
    largest = max(ids, default=-1)
    if largest > MOST_IDS or min(ids, default=0) < 0:
        wrong = largest if largest > MOST_IDS else min(ids)
        raise BadInput(
            f"The tokenizer names a token {wrong:,}, which no vocabulary has; download it again."
        )
    return [None] * (largest + 1)


def spell(entry: str, spelling: Spelling) -> bytes:
    """The bytes that one vocabulary entry stands for."""
    if spelling == "byte-level":
        try:
            return entry.translate(_TO_LATIN1).encode("latin-1")
        except UnicodeEncodeError:  # an entry outside the byte alphabet is plain text
            return entry.encode("utf-8")
    if spelling == "byte-fallback":
        if match := _BYTE_TOKEN.fullmatch(entry):
            return bytes([int(match[1], 16)])
        return entry.replace("\u2581", " ").encode("utf-8")
    if spelling == "word-piece":
        return entry.removeprefix("##").encode("utf-8")
    return entry.replace("</w>", " ").encode("utf-8")


def spelling_of(backend: Any) -> Spelling:
    """How a `tokenizers.Tokenizer` writes bytes, from its parts."""
    parts = (backend.pre_tokenizer, backend.decoder, backend.normalizer)
    kinds = {kind for part in parts for kind in _types(_described(part))}
    model = type(backend.model).__name__
    if "ByteLevel" in kinds:
        return "byte-level"
    if model == "WordPiece" or "WordPiece" in kinds:
        return "word-piece"
    falls_back = getattr(backend.model, "byte_fallback", False)
    if falls_back or model == "Unigram" or kinds & {"Metaspace", "ByteFallback"}:
        return "byte-fallback"
    return "plain"


def _described(part: Any) -> dict[str, Any]:
    """A pre-tokenizer, decoder or normaliser as the JSON it is saved as."""
    if part is None:
        return {}
    try:
        state = json.loads(part.__getstate__())
    except (TypeError, ValueError, AttributeError):  # one written in Python
        return {}
    return state if isinstance(state, dict) else {}


def _types(node: dict[str, Any]) -> Iterable[str]:
    yield str(node.get("type", ""))
    for name in ("pretokenizers", "decoders", "normalizers"):
        for inner in node.get(name, ()):
            yield from _types(inner)


def _missing(entries: dict[str, int], spelling: Spelling) -> tuple[int, ...]:
    if spelling == "byte-level":
        return tuple(sorted(byte for char, byte in ALPHABET.items() if char not in entries))
    if spelling == "byte-fallback":
        spelled = {byte for byte in range(256) if f"<0x{byte:02X}>" in entries}
        return tuple(b for b in range(128, 256) if b not in spelled) if spelled else ()
    return ()
