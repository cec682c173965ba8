"""Two small tokenizers as a .gguf file holds them; both have a token for every byte."""

from __future__ import annotations

import gguf

START, TURN, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_NORMAL, _UNKNOWN, _CONTROL, _UNUSED, _BYTE = 1, 2, 3, 5, 6  # llama.cpp's token types
_JOINS = (  # in the order in which they are made; "_" is the space
    "t h", "th e", "_ the", "_ c", "_c a", "_ca t", "a n", "an d", "_ and", "i n", "o n", "_ on",
    "s a", "sa t", "_ sat", "_ m", "_m a", "_ma t", "e r", "r e", "_ d", "_d o", "_do g", "_ _",
)  # fmt: skip


def add_byte_level(writer: gguf.GGUFWriter, start: bool | None, size: int = 0) -> None:
    """A byte-level BPE as of GPT-2: three control tokens, 256 bytes, joins.

    `start` says whether a start token is added; None: the file does not say.  Unused tokens fill
    the vocabulary up to `size`.
    """
    letters = _letters()
    space = letters[ord(" ")]
    joins = [pair.replace("_", space) for pair in _JOINS]
    tokens = [START, TURN, END, *letters, *(pair.replace(" ", "") for pair in joins)]
    unused = [f"<unused{number}>" for number in range(size - len(tokens))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens + unused)
    writer.add_token_types([_CONTROL] * 3 + [_NORMAL] * (len(tokens) - 3) + [_UNUSED] * len(unused))
    writer.add_token_merges(joins)
    _add_special(writer, START, END, tokens, start)


def add_sentence_piece(writer: gguf.GGUFWriter, start: bool | None) -> None:
    """A SentencePiece BPE as of Llama 2: <unk>, <s>, </s>, 256 bytes, pieces with scores."""
    special = ["<unk>", "<s>", "</s>", START, TURN, END]
    pieces = ["▁", *map(chr, range(33, 127)), "é", "日"]
    pieces += [pair.replace(" ", "").replace("_", "▁") for pair in _JOINS]
    tokens = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    plain = len(tokens) - len(pieces)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([_UNKNOWN, *[_CONTROL] * 5, *[_BYTE] * 256, *[_NORMAL] * len(pieces)])
    writer.add_token_scores([0.0] * plain + [-float(rank) for rank in range(len(pieces), 0, -1)])
    writer.add_unk_token_id(0)
    _add_special(writer, "<s>", "</s>", tokens, start)


def _add_special(
    writer: gguf.GGUFWriter, first: str, last: str, tokens: list[str], start: bool | None
) -> None:
    writer.add_bos_token_id(tokens.index(first))
    writer.add_eos_token_id(tokens.index(last))
    if start is not None:
        writer.add_add_bos_token(start)
    writer.add_chat_template(CHAT)


def _letters() -> list[str]:
    """The letter that stands for each byte in a byte-level vocabulary: 256 printable ones."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte if byte in shown else 256 + hidden.index(byte)) for byte in range(256)]
