"""One file's text, split by llama.cpp and by the torch engine's reading of the same file.

Where they differ, the difference is named here.  Each shows what its own engine reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer import smollm2
from explorer.engine.gguf import tokenizer as torch_reading
from explorer.engine.gguf.header import read_header
from explorer.engine.text.encoding import ModelTokenizer
from explorer.engine.text.tokenizers import load_tokenizer
from explorer.llama_engine.model.model import LlamaModel
from tests import hostile
from tests.llama_engine import tiny_gguf

Both = tuple[ModelTokenizer, ModelTokenizer]  # of the torch engine, of llama.cpp

TEXTS = (
    "The capital of France is", "\n\n tabs\t\tend ", "é 日本語 😀👩\u200d👩\u200d👧",
    "don't WE'LL x's", "1234567 3.14 12", hostile.ACTING, "a\u0301\u00a0b\u200bc", "\ufffd\x00x",
    "", "\r\n\r\nA", "(x)=>{return x**2;}//", "Привет мир العربية", "\ufb01 ½ Ⅷ",
)  # fmt: skip
SPACED = ("  two  spaces ", " ")
CONTROL = ("<|im_start|>user\nhi<|im_end|>", "<s>a</s>", hostile.TEXT)


def both(path: Path, folder: Path) -> Iterator[Both]:
    folder.mkdir()
    torch_reading.write(read_header(path), folder)
    model = LlamaModel(path)
    yield load_tokenizer(folder), model.tokenizer
    model.close()


@pytest.fixture(params=["gpt2", "llama"])
def tiny(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Both]]:
    path = tiny_gguf.write(tmp_path / "x.gguf", "llama", tokenizer=request.param)
    for found in both(path, tmp_path / "folder"):
        yield request.param, found


def differing(readings: Both, texts: tuple[str, ...], as_text: bool) -> list[str]:
    ids = [
        [[token.id for token in one.encode(text, False, as_text).tokens] for text in texts]
        for one in readings
    ]
    return [text for text, a, b in zip(texts, *ids, strict=True) if a != b]


def test_both_engines_split_a_text_alike(tiny: tuple[str, Both]) -> None:
    for as_text in (False, True):
        assert differing(tiny[1], TEXTS, as_text) == []


@pytest.mark.smollm2
def test_smollm2_is_split_alike(tmp_path: Path) -> None:
    for readings in both(smollm2.path(), tmp_path / "folder"):
        for as_text in (False, True):
            assert differing(readings, (*TEXTS, *SPACED, *CONTROL), as_text) == []


def test_of_sentencepiece_the_spaces_put_in_front_differ(tiny: tuple[str, Both]) -> None:
    """llama.cpp puts one before every text, the torch engine's reading not where one is.

    llama.cpp puts one behind every control token, too.
    """
    kind, readings = tiny
    named = kind == "llama"
    for as_text in (False, True):
        assert differing(readings, SPACED, as_text) == (list(SPACED) if named else [])
    inside = [text for text in CONTROL if named]
    assert differing(readings, CONTROL, False) == inside
    assert differing(readings, CONTROL, True) == []
