"""Model folders whose only tokenizer is a tiktoken vocabulary: lines of base64 and rank."""

from __future__ import annotations

import base64
import binascii
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tiktoken

from explorer import disk
from explorer.engine.errors import BadInput, no_panic
from explorer.engine.model_files.weights import read_json
from explorer.engine.text import token_bytes
from explorer.engine.text.tokenizer_backends import TiktokenSplitter

_LONGEST = 64 * 1024 * 1024
TOKENS = "tokenizer.json"  # read in place of a vocabulary beside it
# How Llama 3 splits text into words before merging; transformers takes it where none is stated.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_SAMPLE = "A sample, isn't it?\n\n  3.14 = π; 日本語 <|x|>"
_LLAMA3_RANKS, _QWEN_RANKS = 128_000, 151_643


@dataclass(frozen=True, slots=True)
class Family:
    """What a vocabulary's file leaves out, for the families that ship nothing else."""

    pattern: str
    special: tuple[str, ...]
    start: str = ""  # put in front of every text
    end: str = ""


def _llama3() -> Family:
    named = (
        "<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
        "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>", "<|step_id|>",
        "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>",
    )  # fmt: skip
    rest = tuple(f"<|reserved_special_token_{i}|>" for i in range(2, 247))
    return Family(LLAMA3, named + rest, named[0], named[1])


def _qwen() -> Family:
    named = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    return Family(QWEN, named + tuple(f"<|extra_{i}|>" for i in range(205)), end=named[0])


def find_vocabulary(folder: Path) -> Path | None:
    """The tiktoken file of a folder, told by its content: other files are called *.model too."""
    names = ("tokenizer.model", "tiktoken.model")
    for path in [*(folder / name for name in names), *sorted(folder.glob("*.tiktoken"))]:
        if path.is_file() and _looks_right(path):
            return path
    return None


@dataclass(frozen=True, slots=True)
class TiktokenFolder:
    """A folder's tiktoken vocabulary, and what is assumed about it."""

    splitter: TiktokenSplitter
    settings: dict[str, Any]  # tokenizer_config.json, if there is one
    assumption: str  # one sentence; empty if the files say everything


def open_folder(folder: Path, vocabulary: Path) -> TiktokenFolder:
    """Build the encoding; BadInput if the file is damaged."""
    ranks = read_ranks(vocabulary)
    settings = _settings(folder)
    template = folder / "chat_template.jinja"
    if template.is_file():
        settings["chat_template"] = _template(template)
    if not isinstance(settings.get("chat_template", ""), str):
        del settings["chat_template"]
    family = _family(ranks)
    special = _special(folder.name, settings, ranks, family)
    pattern = settings.get("pat_str")
    if not isinstance(pattern, str):
        pattern = family.pattern if family else LLAMA3
    encoding = _encoding(folder.name, pattern, ranks, special)
    start = _start(settings, special, family)
    splitter = TiktokenSplitter(encoding, token_bytes.of_bytes(ranks, special), start)
    return TiktokenFolder(splitter, settings, _assumption(settings, family))


def assumption_of(folder: Path) -> str:
    """What `open_folder` would assume of a model folder; empty if its tokenizer is another kind."""
    with contextlib.suppress(BadInput, OSError):
        vocabulary = None if (folder / TOKENS).is_file() else find_vocabulary(folder)
        if vocabulary is not None:
            return _assumption(_settings(folder), _family(read_ranks(vocabulary)))
    return ""


def _settings(folder: Path) -> dict[str, Any]:
    config = folder / "tokenizer_config.json"
    return read_json(config) if config.is_file() else {}


def _family(ranks: dict[bytes, int]) -> Family | None:
    return {_LLAMA3_RANKS: _llama3(), _QWEN_RANKS: _qwen()}.get(len(ranks))


def _assumption(settings: dict[str, Any], family: Family | None) -> str:
    if family or isinstance(settings.get("pat_str"), str):
        return ""
    return (
        "The tokenizer's files do not say how text is split into words before merging; the "
        "pattern of Llama 3 is used, as transformers does."
    )


def _template(path: Path) -> str:
    try:
        return disk.read_text(path, _LONGEST)
    except disk.TextError as error:
        raise BadInput(str(error)) from error


def _encoding(
    name: str, pattern: str, ranks: dict[bytes, int], special: dict[str, int]
) -> tiktoken.Encoding:
    """BadInput if the pattern is none, or splits a plain text into empty pieces."""
    try:
        with no_panic():
            made = tiktoken.Encoding(
                name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
            )
            made.encode(_SAMPLE, disallowed_special=())
            return made
    except Exception as error:  # a pattern fails in many ways
        raise _unfit(
            name, "its pattern (pat_str) cannot split a text, or matches empty ones", str(error)
        ) from error


def _unfit(name: str, why: str, details: str = "") -> BadInput:
    return BadInput(
        f"The tokenizer_config.json of {name} does not fit its vocabulary: {why}; download it "
        "again.",
        details,
    )


def named_tokens(settings: dict[str, Any]) -> dict[str, str]:
    """bos_token, eos_token and the like, for a chat template."""
    named = {name: value for name, value in settings.items() if name.endswith("_token")}
    texts = {n: v.get("content") if isinstance(v, dict) else v for n, v in named.items()}
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def read_ranks(path: Path) -> dict[bytes, int]:
    """Bytes and rank of each line; BadInput if it is no whole tiktoken vocabulary."""
    broken = BadInput(f"{path.name} is not a whole tiktoken vocabulary; download it again.")
    if path.stat().st_size > _LONGEST:
        raise broken
    ranks: dict[bytes, int] = {}
    try:
        for line in path.read_bytes().splitlines():
            if line:
                token, rank = line.split()
                ranks[base64.b64decode(token, validate=True)] = int(rank)
    except (ValueError, binascii.Error) as error:
        raise broken from error
    whole = sorted(ranks.values()) == list(range(len(ranks)))
    if not whole or any(bytes([byte]) not in ranks for byte in range(256)):
        raise broken
    return ranks


def _looks_right(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.readline(4096).split()
    try:
        return (
            len(first) == 2
            and bool(base64.b64decode(first[0], validate=True))
            and (int(first[1]) >= 0)
        )
    except (ValueError, binascii.Error):
        return False


def _special(
    name: str, settings: dict[str, Any], ranks: dict[bytes, int], family: Family | None
) -> dict[str, int]:
    stated = settings.get("added_tokens_decoder")
    if isinstance(stated, dict) and stated:
        try:
            pairs = {int(i): t["content"] if isinstance(t, dict) else t for i, t in stated.items()}
        except (ValueError, KeyError) as error:
            raise _unfit(name, "its added tokens are not written as numbers and texts") from error
        if not all(isinstance(text, str) and text for text in pairs.values()):
            raise _unfit(name, "one of its added tokens is empty")
        return {text: i for i, text in pairs.items() if i >= len(ranks)}
    return {text: len(ranks) + i for i, text in enumerate(family.special)} if family else {}


def _start(
    settings: dict[str, Any], special: dict[str, int], family: Family | None
) -> tuple[int, ...]:
    text = named_tokens(settings).get("bos_token") if settings.get("add_bos_token") else None
    if "add_bos_token" not in settings and family:
        text = family.start
    return (special[text],) if text in special else ()
