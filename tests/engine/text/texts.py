"""Texts that tokenizers get wrong, and a tokenizer of the SentencePiece kind to try them on."""

from __future__ import annotations

import random

from tokenizers import AddedToken, decoders, normalizers
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing

from explorer.engine.text.tokenizers import Tokenizer

TEXTS = [
    "the cat sat",
    "a  5 b",
    "x\n\n\n7",
    "👩‍👩‍👧‍👦 and 🇫🇷",
    "日本語、中文",
    "a\0b\x07\x1b[0m",
    "e\u0301 and \u00e9",
    "\ufffd",
    " ",
    "\n",
    "\t\t",
]


def wild_texts(count: int = 200) -> list[str]:
    draw = random.Random(1)
    points = [*range(0xD800), *range(0xE000, 0x110000)]
    return ["".join(map(chr, draw.choices(points, k=12))) for _ in range(count)]


def raws(tokenizer: Tokenizer, text: str) -> list[bytes]:
    return [token.raw for token in tokenizer.encode(text).tokens]


def sentence_piece(byte_fallback: bool = True) -> Backend:
    """Llama 2's way: spaces as U+2581, unknown characters as bytes."""
    pieces = ["<unk>", "<s>", "</s>"]
    if byte_fallback:
        pieces += [f"<0x{byte:02X}>" for byte in range(256)]
    pieces += ["\u2581", "c", "a", "t", "at", "cat", "\u2581cat"]
    backend = Backend(
        BPE(
            {piece: i for i, piece in enumerate(pieces)},
            [("a", "t"), ("c", "at"), ("\u2581", "cat")],
            unk_token="<unk>",
            byte_fallback=byte_fallback,
        )
    )
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    backend.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    backend.add_special_tokens([AddedToken(p, special=True) for p in ("<unk>", "<s>", "</s>")])
    backend.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return backend
