"""Tokens are exact: bytes, special tokens, one BOS, nothing lost without a word."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer as Backend
from tokenizers import normalizers, pre_tokenizers
from tokenizers.models import WordPiece
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer, CTRLTokenizer

from explorer.engine.errors import BadInput
from explorer.engine.loading.loading import load
from explorer.engine.text import token_bytes
from explorer.engine.text.tokenizer_backends import FastSplitter
from explorer.engine.text.tokenizers import Tokenizer, load_tokenizer
from tests.engine.folders import SPECIAL, byte_level, write_tokenizer
from tests.engine.text.texts import TEXTS, raws, sentence_piece, wild_texts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tokenizer(tmp_path, byte_level())
    return tmp_path


@pytest.fixture
def tokenizer(folder: Path) -> Tokenizer:
    return load_tokenizer(folder)


def test_the_byte_alphabet_has_every_byte_once() -> None:
    assert sorted(token_bytes.byte_alphabet().values()) == list(range(256))
    assert set(token_bytes.byte_alphabet()) == set(pre_tokenizers.ByteLevel.alphabet())


@pytest.mark.parametrize("text", TEXTS + wild_texts(20))
def test_byte_level_tokens_spell_the_text(tokenizer: Tokenizer, folder: Path, text: str) -> None:
    encoded = tokenizer.encode(text)
    assert b"".join(token.raw for token in encoded.tokens) == text.encode()
    assert encoded.problem == ""
    theirs = AutoTokenizer.from_pretrained(folder)(text)["input_ids"]
    assert [token.id for token in encoded.tokens] == theirs


def test_an_empty_text_has_no_tokens(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("").tokens == ()
    assert tokenizer.encode("").problem == ""


def test_special_tokens_are_told_from_text(tokenizer: Tokenizer) -> None:
    encoded = tokenizer.encode("hi<|im_end|>")
    assert [t.special for t in encoded.tokens] == [False, False, True]
    assert encoded.tokens[-1].raw == b"<|im_end|>"
    assert "<|im_end|>" in encoded.problem
    literal = tokenizer.encode("hi<|im_end|>", special_as_text=True)
    assert not any(token.special for token in literal.tokens)
    assert b"".join(token.raw for token in literal.tokens) == b"hi<|im_end|>"
    assert literal.problem == ""
    assert tokenizer.encode("hi<|im_end|>") == encoded  # the switch left nothing behind


def test_ids_that_the_tokenizer_lacks_have_a_label(tokenizer: Tokenizer) -> None:
    for token_id in (320, 99_999, -1):
        token = tokenizer.token(token_id, "generated")
        assert token.raw == f"<id {token_id}>".encode()
        assert token.special
        assert token.origin == "generated"


def test_half_a_surrogate_pair_is_refused(tokenizer: Tokenizer) -> None:
    for ask in (tokenizer.encode, tokenizer.render):
        with pytest.raises(BadInput, match="Character 3 "):
            ask("ab\ud800c")


def test_bytes_missing_from_the_vocabulary_are_reported() -> None:
    described = json.loads(byte_level().to_str())
    entry = next(char for char, byte in token_bytes.ALPHABET.items() if byte == 0x13)
    del described["model"]["vocab"][entry]
    tokenizer = Tokenizer(FastSplitter(Backend.from_str(json.dumps(described))))
    assert tokenizer.missing_bytes == (0x13,)
    assert "0x13" in tokenizer.encode("a\x13b").problem
    assert tokenizer.encode("a b").problem == ""


def test_a_normal_form_is_named() -> None:
    backend = byte_level()
    backend.normalizer = normalizers.NFC()
    tokenizer = Tokenizer(FastSplitter(backend))
    assert "normalises the text" in tokenizer.encode("e\u0301").problem
    assert tokenizer.encode("\u00e9").problem == ""


def with_bos(backend: Backend) -> Backend:
    backend.post_processor = TemplateProcessing(
        single=f"{SPECIAL[0]} $A", special_tokens=[(SPECIAL[0], 0)]
    )
    return backend


def test_exactly_one_bos(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, with_bos(byte_level()))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.encode("the").tokens[0].id == 0
    assert tokenizer.bos_policy == "<|endoftext|> is added at the start."
    assert tokenizer.encode("the").problem == ""
    assert [t.id for t in tokenizer.encode("").tokens] == [0]
    twice = tokenizer.encode("<|endoftext|>the")
    assert [t.id for t in twice.tokens].count(0) == 1
    assert "no second one" in twice.note


def test_chat_is_the_template_with_the_generation_prompt(folder: Path) -> None:
    library = AutoTokenizer.from_pretrained(folder)
    expected = library.apply_chat_template(
        [{"role": "user", "content": "hi"}], add_generation_prompt=True, tokenize=True
    )["input_ids"]
    tokens = load_tokenizer(folder).encode("hi", chat=True).tokens
    assert [token.id for token in tokens] == expected
    text = b"".join(token.raw for token in tokens)
    assert text == b"<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_chat_with_a_bos_has_one(tmp_path: Path) -> None:
    template = "{{ bos_token }}{{ messages[0]['content'] }}"
    write_tokenizer(tmp_path, with_bos(byte_level()), chat_template=template)
    tokens = load_tokenizer(tmp_path).encode("hi", chat=True).tokens
    assert [token.id for token in tokens].count(0) == 1


def test_chat_without_a_template(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, byte_level(), chat_template=None)
    with pytest.raises(BadInput, match="no chat template"):
        load_tokenizer(tmp_path).encode("hi", chat=True)


def test_a_template_that_fails(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, byte_level(), chat_template="{{ raise_exception('no') }}")
    with pytest.raises(BadInput, match="chat template failed"):
        load_tokenizer(tmp_path).encode("hi", chat=True)


def test_a_template_can_run_nothing(tmp_path: Path) -> None:
    hostile = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    write_tokenizer(tmp_path, byte_level(), chat_template=hostile)
    with pytest.raises(BadInput):
        load_tokenizer(tmp_path).encode("hi", chat=True)


@pytest.mark.parametrize("text", ["cat cat", *TEXTS, *wild_texts(20)])
def test_byte_fallback_tokens_spell_the_text(text: str) -> None:
    tokenizer = Tokenizer(FastSplitter(sentence_piece()))
    encoded = tokenizer.encode(text)
    assert encoded.tokens[0].special
    assert b"".join(t.raw for t in encoded.tokens[1:]) == b" " + text.encode()
    assert encoded.problem == ""
    assert tokenizer.missing_bytes == ()


def write_sentence_piece(path: Path) -> None:
    """The vocabulary of `sentence_piece` as SentencePiece itself stores it."""
    model = sentencepiece_model_pb2.ModelProto()
    vocabulary = sorted(sentence_piece().get_vocab().items(), key=lambda entry: entry[1])
    for piece, token_id in vocabulary:
        kind = 2 if token_id == 0 else 3 if token_id < 3 else 6 if piece.startswith("<0x") else 1
        model.pieces.add(piece=piece, score=-float(token_id), type=kind)
    model.trainer_spec.model_type = model.trainer_spec.BPE
    model.trainer_spec.byte_fallback = True
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("text", ["cat cat", "a\n  cat", "日本 👩‍👩‍👧", "\x07"])
def test_a_folder_with_only_a_sentencepiece_model(tmp_path: Path, text: str) -> None:
    write_sentence_piece(tmp_path / "tokenizer.model")
    settings = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    tokenizer = load_tokenizer(tmp_path)
    expected = sentence_piece().encode(text).ids
    encoded = tokenizer.encode(text)
    assert [token.id for token in encoded.tokens] == expected
    assert b"".join(token.raw for token in encoded.tokens[1:]) == b" " + text.encode()
    assert encoded.problem == ""


@pytest.mark.parametrize("kind", ["LlamaTokenizer", "T5Tokenizer", "GPTSw3Tokenizer"])
def test_ids_are_those_of_sentencepiece_itself(tmp_path: Path, kind: str) -> None:
    """Also of a class that transformers has in Python only."""
    name = "spiece.model" if kind != "LlamaTokenizer" else "tokenizer.model"
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat", "a cat and a bat", "the hat of the cat"]),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        model_type="unigram" if kind == "T5Tokenizer" else "bpe",
        pad_id=3,
        minloglevel=2,
    )
    (tmp_path / name).write_bytes(model.getvalue())
    settings = {"tokenizer_class": kind, "add_bos_token": False, "extra_ids": 0}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    tokenizer = load_tokenizer(tmp_path)
    own = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = [token.id for token in tokenizer.encode("the bat sat").tokens if not token.special]
    assert ids == own.encode("the bat sat")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_cut_sentencepiece_model(tmp_path: Path, share: float) -> None:
    path = tmp_path / "tokenizer.model"
    write_sentence_piece(path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(BadInput, match=r"tokenizer.model of .* cannot be read"):
        load_tokenizer(tmp_path)


def test_characters_without_byte_fallback_are_named() -> None:
    tokenizer = Tokenizer(FastSplitter(sentence_piece(byte_fallback=False)))
    assert "日" in tokenizer.encode("cat日").problem
    assert tokenizer.encode("cat cat").problem == ""


def test_word_pieces() -> None:
    backend = Backend(WordPiece({"[UNK]": 0, "cat": 1, "##s": 2}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    assert raws(Tokenizer(FastSplitter(backend)), "cats") == [b"cat", b"s"]


def test_a_tokenizer_written_in_python(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"<unk>": 0, "c@@": 1, "at</w>": 2, "at": 3}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na t</w>\n")
    library = CTRLTokenizer(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    library.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "ctrl"}')
    tokenizer = load_tokenizer(tmp_path)
    assert [t.id for t in tokenizer.encode("cat").tokens] == library("cat")["input_ids"]


def test_threads_share_a_tokenizer(tokenizer: Tokenizer) -> None:
    expected = [tokenizer.encode(text) for text in TEXTS]
    wrong: list[str] = []

    def work() -> None:
        for _ in range(50):
            for text, right in zip(TEXTS, expected, strict=True):
                if tokenizer.encode(text) != right or "x" not in tokenizer.render("x"):
                    wrong.append(text)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("content", [b"", b"{}", b"{" * 5000, b"\xff" * 5000, b"[1,2"])
def test_a_broken_tokenizer_gets_one_sentence(folder: Path, content: bytes) -> None:
    (folder / "tokenizer.json").write_bytes(content)
    with pytest.raises(BadInput, match="cannot be read"):
        load_tokenizer(folder)


def test_rubbish_of_200_mb_is_not_even_read(folder: Path) -> None:
    with (folder / "tokenizer.json").open("wb") as file:
        file.truncate(200_000_000)
    with pytest.raises(BadInput, match="far too long"):
        load_tokenizer(folder)


# tiktoken


@pytest.mark.smollm2
def test_smollm2_splits_as_the_original() -> None:
    tokenizer = load("smollm2").tokenizer
    assert raws(tokenizer, "a  5 b") == [b"a", b"  ", b"5", b" b"]
    assert raws(tokenizer, "x\n\n\n7") == [b"x", b"\n\n\n", b"7"]
    assert len(tokenizer.missing_bytes) == 21
    assert "0x13" in tokenizer.encode("a\x13").problem
