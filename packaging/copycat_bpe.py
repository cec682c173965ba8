"""The byte-pair vocabulary of copycat: learns it, and writes it for tiktoken and for tokenizers."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

# Words with the space before them, single digits, runs of other signs, single whitespace signs.
PATTERN = r" ?[A-Za-z]+| ?[0-9]| ?[^A-Za-z0-9\s]+|\s"
END = "<|endoftext|>"
PAD = "<|pad|>"

Pair = tuple[bytes, bytes]


def learn(text: str, merges: int) -> tuple[list[bytes], list[Pair]]:
    """Byte-pair encoding of `text`: tokens in order of rank (first all 256 bytes), and the merges.

    The most frequent pair is merged first; ties go to the pair found in the shortest word, then
    to the one that sorts first, so that the same text gives the same vocabulary. `text` is
    ASCII: no merge ever crosses a wider character.
    """
    words = Counter(re.findall(PATTERN, text))
    pieces = {word: [bytes([byte]) for byte in word.encode("ascii")] for word in words}
    tokens = [bytes([byte]) for byte in range(256)]
    pairs = []
    while len(pairs) < merges:
        left, right = _best_pair(pieces, words)
        pairs.append((left, right))
        tokens.append(left + right)
        pieces = {word: _merged(parts, left, right) for word, parts in pieces.items()}
    return tokens, pairs


def _best_pair(pieces: dict[str, list[bytes]], words: Counter) -> Pair:
    counts: Counter = Counter()
    shortest: dict[Pair, int] = {}
    for word, parts in pieces.items():
        for pair in pairwise(parts):
            counts[pair] += words[word]
            shortest[pair] = min(len(word), shortest.get(pair, len(word)))
    return min(counts, key=lambda pair: (-counts[pair], shortest[pair], pair))


def _merged(parts: list[bytes], left: bytes, right: bytes) -> list[bytes]:
    merged: list[bytes] = []
    index = 0
    while index < len(parts):
        if parts[index : index + 2] == [left, right]:
            merged.append(left + right)
            index += 2
        else:
            merged.append(parts[index])
            index += 1
    return merged


def save_tiktoken(path: Path, tokens: list[bytes]) -> None:
    """One token a line, base64 and rank; the special tokens are not part of this format."""
    lines = [f"{base64.b64encode(token).decode()} {rank}" for rank, token in enumerate(tokens)]
    path.write_text("\n".join(lines) + "\n", encoding="ascii", newline="\n")


def save_tokenizer_json(path: Path, tokens: list[bytes], pairs: list[Pair]) -> None:
    """The same vocabulary for tokenizers; the special tokens take the ids after the last rank."""
    letters = _byte_letters()

    def spell(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    split = {
        "type": "Split",
        "pattern": {"Regex": PATTERN},
        "behavior": "Isolated",
        "invert": False,
    }
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            _special(len(tokens), END),
            _special(len(tokens) + 1, PAD),
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {spell(token): rank for rank, token in enumerate(tokens)},
            "merges": [[spell(left), spell(right)] for left, right in pairs],
        },
    }
    path.write_text(
        json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n"
    )


def _special(token_id: int, content: str) -> dict:
    return {
        "id": token_id,
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def _byte_letters() -> list[str]:
    """The letter that byte-level tokenizers write for each byte: itself, or one from U+0100 on."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {byte: chr(byte) for byte in visible}
    hidden = [byte for byte in range(256) if byte not in letters]
    letters.update({byte: chr(256 + order) for order, byte in enumerate(hidden)})
    return [letters[byte] for byte in range(256)]
