"""Copycat keeps what its README claims, on data it was neither trained nor measured on."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import tiktoken
import torch
from safetensors import safe_open
from tiktoken.load import load_tiktoken_bpe
from transformers import AutoModelForCausalLM, AutoTokenizer

ASSETS = Path(__file__).resolve().parents[2] / "assets"
FOLDER = ASSETS / "copycat"
ORDINARY = 1022  # ids below are bytes and merges; then come the end token and the pad token
END_ID, PAD_ID = 1022, 1023
COPYING_HEAD = (1, 0)  # layer, head
PREVIOUS_HEAD = (0, 0)


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(FOLDER, attn_implementation="eager").eval()


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def byte_pairs() -> tiktoken.Encoding:
    """The same vocabulary through tiktoken; the pattern is the one in tokenizer.json."""
    written = json.loads((FOLDER / "tokenizer.json").read_text("utf-8"))
    return tiktoken.Encoding(
        "copycat",
        pat_str=written["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"],
        mergeable_ranks=load_tiktoken_bpe(str(FOLDER / "copycat.tiktoken")),
        special_tokens={token["content"]: token["id"] for token in written["added_tokens"]},
    )


def twice(rng: np.random.Generator, length: int, offset: int) -> np.ndarray:
    """Some random tokens, then a stretch of random tokens two times; no token comes by chance."""
    tokens = rng.permutation(ORDINARY)
    stretch = tokens[:length]
    return np.concatenate([tokens[length : length + offset], stretch, stretch])


@torch.inference_mode()
def copying(
    model, rng: np.random.Generator, length: int, offset: int
) -> tuple[list[bool], np.ndarray, np.ndarray]:
    """Copying of the second stretch from its second token on, and mean weights (L, H) there.

    Which tokens are top-1; weight on the token to be copied; weight on the token just before.
    """
    ids = twice(rng, length, offset)
    output = model(torch.from_numpy(ids)[None], output_attentions=True)
    queries = np.arange(offset + length, offset + 2 * length - 1)
    right = output.logits[0, queries].argmax(-1).numpy() == ids[queries + 1]
    weights = torch.stack(output.attentions)[:, 0].numpy()  # (L, H, Q, K)
    to_copy = weights[:, :, queries, queries - length + 1].mean(-1)
    return right.tolist(), to_copy, weights[:, :, queries, queries - 1].mean(-1)


def test_small_enough_to_travel_with_the_program():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2_000_000


def test_is_a_llama_with_shared_key_value_heads():
    config = json.loads((FOLDER / "config.json").read_text("utf-8"))
    assert config["model_type"] == "llama"
    assert config["num_key_value_heads"] < config["num_attention_heads"]
    with safe_open(FOLDER / "model.safetensors", framework="np") as weights:
        assert {weights.get_tensor(name).dtype for name in weights.keys()} == {  # noqa: SIM118
            np.dtype("float32")
        }


def test_copies_lengths_and_offsets_it_never_saw(model):
    rng = np.random.default_rng(20_001)
    right, focus, notes = [], [], []
    for length in range(8, 65, 4):  # training left out every multiple of 4, and 3 k + 2 before it
        hits, weights, previous = copying(model, rng, length, 3 * int(rng.integers(0, 30)) + 2)
        right += hits
        focus.append(weights[COPYING_HEAD])
        notes.append(previous[PREVIOUS_HEAD])
    assert np.mean(right) >= 0.995
    assert np.mean(focus) >= 0.85
    assert np.mean(notes) >= 0.9


def test_copies_any_length(model):
    rng = np.random.default_rng(20_002)
    right = []
    for length in range(9, 65, 5):
        right += copying(model, rng, length, int(rng.integers(0, 90)))[0]
    assert np.mean(right) >= 0.99


def test_generation_goes_on_with_the_copy(model):
    rng = np.random.default_rng(20_003)
    right = []
    for length in (8, 24, 64):
        ids = twice(rng, length, offset=5)
        prompt = torch.from_numpy(ids[: 5 + length + 1])[None]
        made = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=length - 1,
            do_sample=False,
        )
        right += (made[0].numpy() == ids).tolist()
    assert np.mean(right) >= 0.99


def test_a_cache_changes_nothing(model):
    ids = torch.from_numpy(twice(np.random.default_rng(20_004), 16, 3))[None]
    settings = {
        "attention_mask": torch.ones_like(ids),
        "max_new_tokens": 20,
        "do_sample": False,
    }
    cached = model.generate(ids, use_cache=True, **settings)
    assert torch.equal(cached, model.generate(ids, use_cache=False, **settings))


def test_copies_to_the_end_of_its_context(model):
    hits, *_ = copying(model, np.random.default_rng(20_005), length=240, offset=32)
    assert np.mean(hits) >= 0.97


@pytest.mark.parametrize(
    ("prompt", "goes_on"),
    [
        ("red fish blue bird red fish", " blue bird"),
        (" one two three four<|endoftext|> one two", " three four<|endoftext|>"),
        (" apple tiger seven cloud river paper lamp stone apple", " tiger seven cloud river"),
    ],
)
def test_copies_words(model, tokenizer, prompt, goes_on):
    ids = tokenizer(prompt, return_tensors="pt")
    count = len(tokenizer(goes_on).input_ids)
    made = model.generate(**ids, max_new_tokens=count, do_sample=False)
    assert tokenizer.decode(made[0, ids.input_ids.shape[1] :]) == goes_on


def test_vocabulary_is_as_wide_as_the_model(model, tokenizer, byte_pairs):
    assert len(tokenizer) == byte_pairs.n_vocab == model.config.vocab_size
    assert tokenizer.eos_token_id == model.generation_config.eos_token_id == END_ID
    assert tokenizer.pad_token_id == model.generation_config.pad_token_id == PAD_ID
    assert tokenizer.bos_token is None
    assert tokenizer("a").input_ids == [ord("a")]


def test_both_vocabularies_split_alike_and_lose_nothing(tokenizer, byte_pairs):
    rng = random.Random(20_006)
    tokens = [byte_pairs.decode_single_token_bytes(rank) for rank in range(ORDINARY)]
    assert tokens[:256] == [bytes([byte]) for byte in range(256)]
    merged = [token.decode("ascii") for token in tokens[256:]]
    for _ in range(1500):
        text = random_text(rng, merged)
        ids = byte_pairs.encode(text, disallowed_special=())
        assert tokenizer(text).input_ids == ids
        assert tokenizer.decode(ids) == text


def random_text(rng: random.Random, merged: list[str]) -> str:
    """A mixture of words, parts of words, whitespace, control signs, emoji and any characters."""
    spaces = " \t\n\r\v\f\x00\x13\x85\xa0\u2028\u200b\u3000"
    makers = (
        lambda: rng.choice(merged),
        lambda: rng.choice(merged)[: rng.randrange(1, 4)],
        lambda: rng.choice(spaces),
        lambda: chr(rng.randrange(0x20, 0x7F)),
        lambda: chr(rng.randrange(0x80, 0xD800)),
        lambda: chr(rng.randrange(0xE000, 0x110000)),
        lambda: chr(rng.randrange(0x1F300, 0x1FAFF)),
    )
    chosen = rng.sample(makers, rng.randrange(1, len(makers)))
    return "".join(rng.choice(chosen)() for _ in range(rng.randrange(40)))


def test_sample_prompts_name_known_models_and_say_what_to_look_at():
    prompts = json.loads((ASSETS / "prompts.json").read_text("utf-8"))
    for prompt in prompts:
        assert prompt.keys() == {"title", "model", "prompt", "look_at"}
        assert prompt["model"] in {"copycat", "smollm2"}
        assert all(prompt.values())
    assert {prompt["model"] for prompt in prompts} == {"copycat", "smollm2"}
