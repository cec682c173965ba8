"""The exact bytes of every vocabulary entry, for each way that vocabularies are spelled."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

Spelling = Literal["byte-level", "byte-fallback", "word-piece", "plain"]
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-in for each of the 256 byte values, reversed."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(rest)}


_ALPHABET = byte_alphabet()
_TO_LATIN1 = {ord(char): byte for char, byte in _ALPHABET.items()}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Bytes and special flag of each id; ids that no entry has are None."""

    spelling: Spelling
    raw: tuple[bytes | None, ...]
    special: frozenset[int]
    missing_bytes: tuple[int, ...]


def of_backend(backend: Any) -> Vocabulary:
    """Read a `tokenizers.Tokenizer`, added tokens included."""
    pipeline = json.loads(backend.to_str())
    spelling = _spelling(pipeline)
    entries = backend.get_vocab(with_added_tokens=True)
    added = {token["id"]: token for token in pipeline.get("added_tokens", ())}
    raw: list[bytes | None] = [None] * (max(entries.values(), default=-1) + 1)
    for entry, token_id in entries.items():
        if token_id not in added:
            raw[token_id] = spell(entry, spelling)
    for token_id, token in added.items():
        raw[token_id] = token["content"].encode("utf-8")
    special = frozenset(i for i, token in added.items() if token["special"])
    return Vocabulary(spelling, tuple(raw), special, _missing(entries, spelling))


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


def _spelling(pipeline: dict[str, Any]) -> Spelling:
    kinds = set(_types(pipeline.get("pre_tokenizer"))) | set(_types(pipeline.get("decoder")))
    model = pipeline["model"]
    if "ByteLevel" in kinds or "ByteLevel" in _types(pipeline.get("normalizer")):
        return "byte-level"
    if model.get("type") == "WordPiece" or "WordPiece" in kinds:
        return "word-piece"
    if model.get("byte_fallback") or "Metaspace" in kinds or "ByteFallback" in kinds:
        return "byte-fallback"
    return "byte-fallback" if model.get("type") == "Unigram" else "plain"


def _types(node: Any) -> list[str]:
    """Every `type` in a nested description of pre-tokenizers or decoders."""
    if not isinstance(node, dict):
        return []
    nested = [
        *node.get("pretokenizers", ()),
        *node.get("decoders", ()),
        *node.get("normalizers", ()),
    ]
    return [node.get("type", ""), *(kind for part in nested for kind in _types(part))]


def _missing(entries: dict[str, int], spelling: Spelling) -> tuple[int, ...]:
    if spelling == "byte-level":
        return tuple(sorted(byte for char, byte in _ALPHABET.items() if char not in entries))
    if spelling == "byte-fallback":
        spelled = {int(m[1], 16) for entry in entries if (m := _BYTE_TOKEN.fullmatch(entry))}
        return tuple(b for b in range(128, 256) if b not in spelled) if spelled else ()
    return ()
