"""What a model's files ask for is bounded before it is made: counts, tables, ids, lengths."""

from __future__ import annotations

import base64
import json
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from explorer.engine.errors import BadInput
from explorer.engine.library import recipe
from explorer.engine.loading.loading import load
from explorer.engine.machine import memory_limit
from explorer.engine.text.tokenizers import load_tokenizer
from tests.engine.folders import byte_level, model, write_folder, write_tokenizer
from tests.engine.loading.test_loading import change_config
from tests.engine.text.test_tiktoken_folder import write_ranks


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("llama", {"num_labels": 2**63}),
        ("llama", {"num_hidden_layers": 10**9}),
        ("llama", {"num_hidden_layers": -1}),
        ("llama", {"vocab_size": 10**9}),
        ("gptj", {"n_positions": 2 * 10**8}),
        ("gptj", {"n_positions": 9 * 10**7, "rotary_dim": 16}),
        ("bart", {"decoder_layers": 10**9}),
    ],
)
def test_a_config_that_asks_for_too_much(tmp_path: Path, kind: str, change: dict[str, Any]) -> None:
    sizes = {"gptj": {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128,
                      "rotary_dim": 8, "vocab_size": 320},
             "bart": {"d_model": 64, "vocab_size": 320, "is_decoder": True}}  # fmt: skip
    made = model(kind, **sizes.get(kind, {})) if kind != "bart" else model()
    folder = write_folder(tmp_path / "tiny", made)
    if kind == "bart":
        change = {"model_type": "bart", "architectures": ["BartForCausalLM"], **change}
    change_config(folder, **change)
    began = time.monotonic()
    with pytest.raises(BadInput):
        load(str(folder))
    if change.get("n_positions") != 9 * 10**7 and "vocab_size" not in change:
        with pytest.raises(BadInput):
            recipe.inspect(str(folder))
    assert time.monotonic() - began < 20


def test_a_token_beyond_every_vocabulary(tmp_path: Path) -> None:
    described = json.loads(byte_level().to_str())
    described["model"]["vocab"]["far away"] = 500_000_000
    write_tokenizer(tmp_path, byte_level())
    (tmp_path / "tokenizer.json").write_text(json.dumps(described))
    with pytest.raises(BadInput, match="500,000,000"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json"])
def test_settings_that_are_far_too_long(tmp_path: Path, name: str) -> None:
    write_tokenizer(tmp_path, byte_level())
    with (tmp_path / name).open("wb") as file:
        file.truncate(300_000_000)
    with pytest.raises(BadInput, match=f"{name} of .* far too long"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(90000) %}{% for j in range(90000) %}xx{% endfor %}{% endfor %}",
        "{{ 'x' * 100000000 }}",
        "{{ 100000000 * 'x' }}",
        "{% set x = 'x' * 100000 %}{% for i in range(100000) %}{{ x }}{% endfor %}",
        "{{ 10 ** 100000000 }}",
    ],
)
@pytest.mark.parametrize("tiktoken", [False, True])
def test_a_template_that_writes_without_end(tmp_path: Path, template: str, tiktoken: bool) -> None:
    if tiktoken:
        write_ranks(tmp_path / "tokenizer.model")
        (tmp_path / "chat_template.jinja").write_text(template)
    else:
        write_tokenizer(tmp_path, byte_level(), chat_template=template)
    began = time.monotonic()
    with pytest.raises(BadInput, match="more than 8,388,608 letters"):
        load_tokenizer(tmp_path).encode("hi", chat=True)
    assert time.monotonic() - began < 30


def test_a_template_may_multiply(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, byte_level(), chat_template="{{ '-' * 3 }}{{ 2 * 4 }}{{ 2 ** 3 }}")
    assert load_tokenizer(tmp_path).render("hi") == "---88"


SETTINGS: dict[str, dict[str, Any]] = {
    "empty ones": {"pat_str": ""},
    "cannot split": {"pat_str": "("},
    "matches empty": {"pat_str": "x*"},
    "is empty": {"added_tokens_decoder": {"300": {"content": ""}}},
    "tokens is empty": {"added_tokens_decoder": {"301": ""}},
    "numbers and texts": {"added_tokens_decoder": {"one": {"content": "<x>"}}},
    "not written as numbers": {"added_tokens_decoder": {"300": {}}},
    "500,000,000": {"added_tokens_decoder": {"500000000": {"content": "<x>"}}},
}


@pytest.mark.parametrize("words", SETTINGS)
def test_tiktoken_settings_that_do_not_fit(tmp_path: Path, words: str) -> None:
    write_ranks(tmp_path / "tokenizer.model")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(SETTINGS[words]))
    with pytest.raises(BadInput, match=words):
        load_tokenizer(tmp_path)


def test_a_tokenizer_that_panics_on_a_text_says_so(tmp_path: Path) -> None:
    lines = [f"{base64.b64encode(bytes([byte])).decode()} {byte}" for byte in range(256)]
    (tmp_path / "tokenizer.model").write_text("\n".join(lines))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"pat_str": "[^q]|"}))
    tokenizer = load_tokenizer(tmp_path)
    assert len(tokenizer.encode("abc").tokens) == 3
    with pytest.raises(BadInput, match="tokenizer failed on the text"):
        tokenizer.encode("a q")


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_the_file_at_fault_is_named(tmp_path: Path, name: str) -> None:
    write_tokenizer(tmp_path, byte_level())
    (tmp_path / name).write_text('{"version": ')
    with pytest.raises(BadInput, match=f"The {name} of"):
        load_tokenizer(tmp_path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux sets such limits")
def test_a_limit_is_set_while_another_thread_imports_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the list of modules then, but most of it is not there yet."""
    import resource

    half = ModuleType("torch")
    half.__spec__ = ModuleSpec("torch", None)
    monkeypatch.setattr(half.__spec__, "_initializing", True, raising=False)
    monkeypatch.setitem(sys.modules, "torch", half)
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    memory_limit.set_here()
    assert len(asked) == 1
    assert asked[0][0] > 0
