"""Folders that hold only a tiktoken vocabulary."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from transformers.convert_slow_tokenizer import TikTokenConverter

from explorer.engine.errors import BadInput
from explorer.engine.loading.loading import load
from explorer.engine.text import tiktoken_folder, token_bytes
from explorer.engine.text.tokenizers import load_tokenizer
from tests.engine.folders import byte_level, greedy, model
from tests.engine.text.texts import TEXTS, raws, wild_texts


def ranks() -> dict[bytes, int]:
    """A tiktoken vocabulary: bytes, then the merges of the trained tokenizer."""
    found = {bytes([byte]): byte for byte in range(256)}
    for left, right in json.loads(byte_level().to_str())["model"]["merges"]:
        found.setdefault(token_bytes.spell(left + right, "byte-level"), len(found))
    return found


def write_ranks(path: Path) -> int:
    lines = [f"{base64.b64encode(raw).decode()} {rank}" for raw, rank in ranks().items()]
    path.write_text("\n".join(lines) + "\n")
    return len(lines)


@pytest.mark.parametrize("name", ["tokenizer.model", "small.tiktoken", "tiktoken.model"])
def test_a_folder_with_only_a_tiktoken_vocabulary(tmp_path: Path, name: str) -> None:
    size = write_ranks(tmp_path / name)
    made = model(vocab_size=size)
    made.save_pretrained(tmp_path)
    loaded = load(str(tmp_path))
    converted = TikTokenConverter(str(tmp_path / name)).converted()
    for text in TEXTS + wild_texts():
        tokens = loaded.tokenizer.encode(text).tokens
        assert [t.id for t in tokens] == converted.encode(text).ids, text
        assert b"".join(t.raw for t in tokens) == text.encode()
    ids = converted.encode("the cat sat").ids
    assert greedy(loaded.model, ids) == greedy(made, ids)
    assert any("pattern of Llama 3" in warning for warning in loaded.card.warnings)


def test_a_tiktoken_folder_with_settings(tmp_path: Path) -> None:
    size = write_ranks(tmp_path / "tokenizer.model")
    settings = {
        "add_bos_token": True,
        "bos_token": "<|start|>",
        "pat_str": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        "chat_template": "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}",
        "added_tokens_decoder": {
            str(size): {"content": "<|start|>"},
            str(size + 5): {"content": "<|stop|>"},
        },
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.assumption == ""
    assert [t.id for t in tokenizer.encode("").tokens] == [size]
    assert [t.id for t in tokenizer.encode("<|stop|>").tokens] == [size, size + 5]
    assert tokenizer.token(size + 2).raw == f"<id {size + 2}>".encode()
    assert raws(tokenizer, "<|start|>a") == [b"<|start|>", b"a"]
    chat = tokenizer.encode("a", chat=True).tokens
    assert [t.raw for t in chat] == [b"<|start|>", b"a"]
    encoded = tokenizer.encode("<|stop|>", special_as_text=True)
    assert b"".join(t.raw for t in encoded.tokens[1:]) == b"<|stop|>"


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9999])
def test_a_cut_tiktoken_vocabulary(tmp_path: Path, share: float) -> None:
    write_ranks(tmp_path / "tokenizer.model")
    whole = (tmp_path / "tokenizer.model").read_bytes().rstrip()
    (tmp_path / "tokenizer.model").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(BadInput, match="not a whole tiktoken vocabulary"):
        load_tokenizer(tmp_path)


def test_a_sentencepiece_model_is_not_taken_for_tiktoken(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02")
    assert tiktoken_folder.find_vocabulary(tmp_path) is None
