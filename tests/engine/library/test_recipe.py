"""The recipe card: exact counts from a config alone, and what they are made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf as library
import pytest
from transformers import AutoConfig, GPT2Config

from explorer.engine.errors import BadInput
from explorer.engine.library import recipe
from explorer.engine.library.parameter_counts import anatomy
from explorer.engine.library.recipe_words import rope_base
from explorer.engine.model_files.meta_model import count, skeleton
from tests.engine.folders import model, write_gguf

SMOLLM2 = {
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}


def facts(kind: str, **sizes: Any) -> dict[str, Any]:
    return recipe.facts(kind, AutoConfig.for_model(kind, **sizes))


def test_gpt2_small_from_its_config_alone(tmp_path: Path) -> None:
    GPT2Config().save_pretrained(tmp_path)
    found = recipe.inspect(str(tmp_path))
    assert found["parameters"] == 124_439_808
    assert found["tied"] is True
    assert found["tying_saves"] == 38_597_376
    assert any("23.7 % of the untied 163,037,184" in line for line in found["recipe"])
    assert any("a learned table" in line for line in found["recipe"])
    assert (found["layers"], found["hidden_size"], found["context"]) == (12, 768, 1024)
    json.dumps(found)


def test_smollm2() -> None:
    found = facts("llama", **SMOLLM2)
    assert found["parameters"] == 134_515_008
    assert found["kv_bytes_per_token"] == {"float32": 46080, "bfloat16": 23040, "float16": 23040}
    assert found["parameters_rule_of_thumb"] == 147_750_912
    assert any("9.8 % too many" in line for line in found["recipe"])
    assert any("attention has 13,271,040 fewer" in line for line in found["recipe"])


@pytest.mark.smollm2
def test_the_bundled_smollm2_is_read_from_its_gguf_header() -> None:
    found = recipe.inspect("smollm2")
    assert found["parameters"] == 134_515_008
    assert found["architecture"] == "llama"


def test_an_untied_head_saves_nothing() -> None:
    found = facts("llama", **{**SMOLLM2, "tie_word_embeddings": False})
    assert found["parameters"] == 134_515_008 + 49152 * 576
    assert (found["tied"], found["tying_saves"]) == (False, 0)


@pytest.mark.parametrize(
    "row", recipe.GPT_TABLE, ids=[str(row["name"]) for row in recipe.GPT_TABLE]
)
def test_the_gpt_table_is_counted_and_near_the_rule(row: dict[str, Any]) -> None:
    layers, width = row["layers"], row["hidden_size"]
    config: Any = GPT2Config(n_layer=layers, n_embd=width, n_head=8, n_positions=1024)
    if row["name"] == "GPT-1":
        config = AutoConfig.for_model("openai-gpt")
    if row["name"] == "GPT-3":
        config = GPT2Config(n_layer=layers, n_embd=width, n_head=96, n_positions=2048)
    found = recipe.facts("x", config)
    assert found["parameters"] == row["parameters"]
    assert abs(found["parameters_rule_of_thumb"] / found["parameters"] - 1) < 0.05


def test_a_latent_cache_is_counted_as_it_is_kept() -> None:
    found = facts("deepseek_v3", num_hidden_layers=4)
    assert found["kv_bytes_per_token"]["float32"] == 4 * (512 + 64) * 4


def test_layers_without_keys_are_left_out() -> None:
    found = facts("qwen3_next", num_hidden_layers=8)
    assert found["layer_kinds"] == ["linear", "linear", "linear", "full"] * 2
    per_layer = 2 * found["kv_heads"] * found["head_dim"] * 4
    assert found["kv_bytes_per_token"]["float32"] == 2 * per_layer


def test_experts_are_named() -> None:
    lines = " ".join(facts("mixtral", num_hidden_layers=2)["recipe"])
    assert "8 in a layer, of which a router picks 2" in lines
    assert "SwiGLU" in lines


def test_windows_are_named() -> None:
    lines = " ".join(facts("gemma3_text", num_hidden_layers=6)["recipe"])
    assert "5 sliding, 1 full" in lines
    assert "4,096 tokens" in lines


@pytest.mark.parametrize(
    ("kind", "sizes", "said"),
    [
        (
            "hrm_text",
            {"num_hidden_layers": 32, "num_layers_per_stack": 4},
            "hold 8 layers, which attend 32",
        ),
        (
            "longcat_flash",
            {"num_layers": 2, "num_hidden_layers": 4},
            "hold 2 layers, which attend 4",
        ),
        ("gemma2", {"num_hidden_layers": 4}, ""),
        ("llama", {"num_hidden_layers": 4}, ""),
    ],
)
def test_layers_that_attend_several_times_are_said_to(
    kind: str, sizes: dict[str, int], said: str
) -> None:
    lines = " ".join(facts(kind, **sizes)["recipe"])
    assert said in lines
    assert bool(said) == ("times for each token" in lines)


def test_the_layers_and_heads_of_a_decoder_are_not_its_encoders() -> None:
    found = facts("bart", encoder_layers=2, decoder_layers=5, encoder_attention_heads=2,
                  decoder_attention_heads=8, d_model=32)  # fmt: skip
    assert (found["layers"], found["heads"]) == (5, 8)
    found = facts("prophetnet", num_encoder_layers=2, num_decoder_layers=3, hidden_size=32,
                  num_encoder_attention_heads=2, num_decoder_attention_heads=8)  # fmt: skip
    assert (found["layers"], found["heads"]) == (3, 8)


def test_a_model_without_attention() -> None:
    found = facts("mamba", num_hidden_layers=2)
    assert found["heads"] == 0
    assert "No attention" in " ".join(found["recipe"])
    assert found["kv_bytes_per_token"]["float32"] == 0


@pytest.mark.parametrize(
    "kind", ["gpt2", "llama", "mixtral", "gpt_neox", "opt", "qwen3", "gemma2", "phi3", "gpt_oss"]
)
def test_the_parts_add_up(kind: str) -> None:
    made = skeleton(AutoConfig.for_model(kind, num_hidden_layers=2))
    parts = anatomy(made)
    total = parts.attention + parts.feed_forward + parts.table + parts.head + parts.positions
    assert total + parts.rest == count(made).parameters
    assert parts.attention > 0
    assert parts.feed_forward > 0
    assert parts.rest < 0.01 * total


def test_what_the_parts_are() -> None:
    gpt2 = anatomy(skeleton(AutoConfig.for_model("gpt2")))
    assert (gpt2.norm, gpt2.biases, gpt2.gated) == ("LayerNorm", True, False)
    assert gpt2.positions == 1024 * 768
    qwen3 = anatomy(skeleton(AutoConfig.for_model("qwen3", num_hidden_layers=2)))
    assert (qwen3.norm, qwen3.biases, qwen3.gated) == ("RMSNorm", False, True)
    assert qwen3.query_key_norm


def test_rope_base() -> None:
    assert rope_base(AutoConfig.for_model("llama", rope_parameters={"rope_theta": 5e5})) == 5e5
    assert rope_base(GPT2Config()) == 0


def test_a_gguf_file_has_a_recipe(tmp_path: Path) -> None:
    made = model("qwen2")
    path = write_gguf(tmp_path / "tiny.gguf", made, library.GGMLQuantizationType.Q8_0)
    found = recipe.inspect(str(path))
    assert found["parameters"] == sum(p.numel() for p in made.parameters())
    assert found["architecture"] == "qwen2"
    assert found["forms"] == ["as-is", "float32"]


def test_impossible_configs_get_one_sentence(tmp_path: Path) -> None:
    for changes in ({"num_hidden_layers": 10**12}, {"hidden_size": -4}, {"hidden_size": 7}):
        config = {"model_type": "llama", **SMOLLM2, **changes}
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(BadInput, match=r"\.$"):
            recipe.inspect(str(tmp_path))


def test_memory_is_estimated_for_each_dtype() -> None:
    found = facts("llama", **SMOLLM2)["memory_bytes"]
    assert found["float32"] > 4 * 134_515_008
    assert 2 * 134_515_008 < found["bfloat16"] < found["float32"]
