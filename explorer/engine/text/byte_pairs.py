"""A byte-level tokenizer.json as a tiktoken encoding: the same tokens, several times faster.

Only taken into use where it gave the tokenizer's own ids on every text of `PROOF`.
"""

from __future__ import annotations

import json
import random
import unicodedata
from dataclasses import dataclass
from typing import Any

import tiktoken

from explorer.engine.text.token_bytes import ALPHABET, spell

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# Every digit by itself, so white space before a digit ends its stretch.
DIGITS_THEN_GPT2 = (
    r"\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?=\p{N})|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class BytePairs:
    """A tiktoken encoding and the table from its ranks to the tokenizer's ids."""

    encoding: tiktoken.Encoding
    id_of: dict[int, int]
    compose: bool  # text is brought into Unicode's NFC first
    missing: frozenset[int]  # bytes it cannot spell; the tokenizer joins what stands around them

    def ids(self, text: str) -> list[int] | None:
        """The tokenizer's ids of a text, without what it puts around it; None: ask itself."""
        if self.compose:
            text = unicodedata.normalize("NFC", text)
        if self.missing and not self.missing.isdisjoint(text.encode("utf-8")):
            return None
        ranks = self.encoding.encode(text, allowed_special="all")
        return [self.id_of[rank] for rank in ranks]


def of_backend(backend: Any) -> BytePairs | None:
    """The same vocabulary through tiktoken, or None where it can't be or is not the same."""
    described = json.loads(backend.to_str())
    made = _build(described)
    if made is None:
        return None
    for text in PROOF:
        ours = made.ids(text)
        if ours is not None and ours != list(backend.encode(text, add_special_tokens=False).ids):
            return None
    return made


def _build(described: dict[str, Any]) -> BytePairs | None:
    model = described["model"]
    pattern = _pattern(described.get("pre_tokenizer"))
    normalizer = (described.get("normalizer") or {}).get("type")
    plain = model.get("type") == "BPE" and not any(
        model.get(name) for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix")
    )
    if not plain or pattern is None or normalizer not in (None, "NFC"):
        return None
    if any(token["lstrip"] or token["rstrip"] or token["single_word"] or token["normalized"]
           for token in described["added_tokens"]):  # fmt: skip
        return None
    ranks, id_of = _ranks(model)
    special: dict[str, int] = {}
    for token in described["added_tokens"]:
        special[token["content"]] = rank = len(ranks) + len(special)
        id_of[rank] = token["id"]
    encoding = tiktoken.Encoding(
        "tokenizer.json", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
    )
    missing = frozenset(byte for byte in range(256) if byte not in id_of)
    return BytePairs(encoding, id_of, normalizer == "NFC", missing)


def _ranks(model: dict[str, Any]) -> tuple[dict[bytes, int], dict[int, int]]:
    """Bytes first, then merges in their order; the vocabulary's ids may be in another."""
    vocabulary = model["vocab"]
    ranks = {bytes([byte]): byte for byte in range(256)}
    id_of = {byte: vocabulary[char] for char, byte in ALPHABET.items() if char in vocabulary}
    entries = [("".join(m) if isinstance(m, list) else m.replace(" ", "")) for m in model["merges"]]
    if model.get("ignore_merges"):  # a word that is an entry is taken whole, merge or not
        entries += [entry for entry in vocabulary if entry not in set(entries)]
    for entry in entries:
        raw = spell(entry, "byte-level")
        if raw not in ranks:
            ranks[raw] = rank = len(ranks)
            id_of[rank] = vocabulary[entry]
    return ranks, id_of


def _pattern(node: Any) -> str | None:
    """One pattern for the whole pre-tokenizer, or None where one cannot say it."""
    if not isinstance(node, dict):
        return None
    steps = node["pretokenizers"] if node.get("type") == "Sequence" else [node]
    kinds = [step["type"] for step in steps]
    if kinds[-1:] != ["ByteLevel"] or steps[-1].get("add_prefix_space"):
        return None
    splits_words = steps[-1].get("use_regex", True)
    if kinds == ["ByteLevel"] and splits_words:
        return GPT2
    if kinds == ["Digits", "ByteLevel"] and splits_words and steps[0]["individual_digits"]:
        return DIGITS_THEN_GPT2
    if kinds == ["Split", "ByteLevel"] and not splits_words:
        pattern = steps[0]["pattern"].get("Regex")
        if steps[0]["behavior"] == "Isolated" and not steps[0]["invert"]:
            return str(pattern) if pattern else None
    return None


def _proof() -> tuple[str, ...]:
    """Texts of many kinds: written ones, and random strings of characters that matter."""
    written = (
        "The capital of France is Paris, isn't it? I'LL say so; they've said 'so' too.",
        "  indented\n\n\n    code():\t\treturn x_1 + 23456789 == 3.14e-10 # done\r\n\r\n",
        "a  5 b\n\n\n7  \n 8\t\t9   x", "Ünïcödé, naïve café, e\u0301, ǆ, ﬁ, Å",
        "日本語のテキスト、中文，한국어 텍스트", "हिन्दी العربية עברית ไทย",
        "👩‍👩‍👧 👍🏽 🇫🇷 ☃️ ½ ² Ⅷ ٣",
        "\x00\x01\x07\x1b[0m\x7f\u200b\u200d\ufeff\ufffd", "<|im_start|>user\nhi<|im_end|>",
        "<|endoftext|>", "'s'S 'll'LL'd", "$€£¥ %^&*() {}[]<>/\\|~`", " ", "\n", "   \n   ",
        "x" * 300,
    )  # fmt: skip
    draw = random.Random(0)
    alphabet = "ab Z1９ \n\t\r'.,_-é日й\u0301🙂\u00a0\u3000½'s'll" + "  eton"
    strings = ["".join(draw.choices(alphabet, k=draw.randint(1, 60))) for _ in range(150)]
    points = [*range(0xD800), *range(0xE000, 0x11000), *range(0x1F300, 0x1F900)]
    wild = ["".join(map(chr, draw.choices(points, k=20))) for _ in range(50)]
    return (*written, *strings, *wild)


PROOF = _proof()
