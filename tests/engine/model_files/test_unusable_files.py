"""Sound files of other kinds are named for what they are; no figure of a model is made up."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import gguf as library
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from explorer.engine.errors import BadInput
from explorer.engine.library import recipe
from explorer.engine.loading.loading import load
from tests.engine.folders import model, write_folder, write_gguf
from tests.engine.loading.test_loading import change_config, opens_the_same

F32 = library.GGMLQuantizationType.F32
POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))


def refused(path: Path) -> str:
    """The one sentence with which `load` refuses a model."""
    with pytest.raises(BadInput) as caught:
        load(str(path))
    sentence = caught.value.sentence
    assert sentence.endswith(".")
    assert len(sentence) < 400
    assert "damaged" not in sentence
    return sentence


def other_gguf(
    path: Path,
    architecture: str,
    numbers: dict[str, Any],
    tensors: tuple[str, ...] = ("blk.0.attn_q.weight",),
) -> Path:
    """A file with these keys and small tensors."""
    writer = library.GGUFWriter(path, architecture)
    for key, value in numbers.items():
        add = writer.add_string if isinstance(value, str) else writer.add_uint32
        add(key, value)
    for name in tensors:
        writer.add_tensor(name, np.ones((2, 2), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


LORA = ("blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight.lora_b")
KINDS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "LoRA adapter": ("llama", {"general.type": "adapter", "adapter.type": "lora"}, LORA),
    "base model (Tiny)": ("llama", {"general.base_model.0.name": "Tiny"}, LORA),
    "sees or hears (mmproj)": ("clip", {}, ("v.blk.0.attn_q.weight",)),
    "(mmproj)": ("llama", {"general.type": "mmproj"}, ("v.blk.0.attn_q.weight",)),
    "importance matrix": ("llama", {"general.type": "imatrix"}, ("blk.0.attn_q.weight.in_sum2",)),
    "control vector": ("controlvector", {}, ("direction.1",)),
    "embedding model": ("nomic-bert", {}, ("blk.0.attn_q.weight",)),
    "an embedding model": ("qwen3", {"qwen3.pooling_type": 3}, ("blk.0.attn_q.weight",)),
    "is a reranker": ("qwen3", {"qwen3.pooling_type": 4}, ("blk.0.attn_q.weight",)),
    "no weights": ("llama", {"llama.block_count": 2}, ()),
    "one of 3 parts": ("llama", {"split.count": 3}, ("blk.0.attn_q.weight",)),
}


@pytest.mark.parametrize("words", KINDS)
def test_a_gguf_of_another_kind_is_named(tmp_path: Path, words: str) -> None:
    path = other_gguf(tmp_path / "x.gguf", *KINDS[words])
    assert words in refused(path)
    with pytest.raises(BadInput) as caught:
        recipe.inspect(str(path))
    assert words in caught.value.sentence


def test_a_later_part_states_no_architecture(tmp_path: Path) -> None:
    path = other_gguf(tmp_path / "x-00002-of-00003.gguf", "llama", {"split.count": 3})
    path.write_bytes(path.read_bytes().replace(b"general.architecture", b"general.architectuxx"))
    assert "one of 3 parts" in refused(path)


def test_a_big_endian_gguf(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF" + struct.pack(">I", 3) + bytes(64))
    assert "big-endian" in refused(path)


def test_a_gguf_of_nothing_but_zeros(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(BadInput, match="cut short or damaged"):
        recipe.inspect(str(path))


@pytest.mark.parametrize("content", [POINTER, b"<!DOCTYPE html><html>404</html>"])
@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "tokenizer.json", "pytorch_model.bin", "x.gguf"]
)
def test_a_note_in_place_of_a_file(tmp_path: Path, name: str, content: bytes) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    if name.endswith(".bin"):
        (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(content)
    sentence = refused(folder / name if name == "x.gguf" else folder)
    assert name in sentence
    assert ("git lfs pull" if content == POINTER else "web page") in sentence


@pytest.mark.parametrize("name", ["x" * 5000, "日" * 200, "\ud800", "a\0b"])
def test_an_index_that_names_what_no_disk_holds(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "tiny", model(), shard_size="60KB")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"lm_head.weight": name}}))
    refused(folder).encode()


def test_a_name_without_end_is_cut_in_its_middle(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    change_config(folder, model_type="a" * 5000 + "z")
    assert "aaa…aaa" in refused(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are for Unix")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.gguf")
    assert "not a file" in refused(tmp_path / "x.gguf")
    folder = write_folder(tmp_path / "tiny", model())
    for name in ("tokenizer.json", "model.safetensors", "config.json"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        refused(folder)


def test_llama_cpps_older_forms(tmp_path: Path) -> None:
    (tmp_path / "old.bin").write_bytes(b"tjgg" + bytes(100))
    assert "GGML form" in refused(tmp_path / "old.bin")


def test_a_model_of_pictures(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text("{}")
    assert "makes pictures" in refused(tmp_path)


def test_a_folder_of_gguf_files(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny-Q8_0.gguf", model(), F32)
    assert "open the file itself (tiny-Q8_0.gguf)" in refused(tmp_path)


def test_a_pickle_of_more_than_tensors(tmp_path: Path) -> None:
    made = model()
    folder = write_folder(tmp_path / "tiny", made)
    (folder / "model.safetensors").unlink()
    torch.save({**made.state_dict(), "of": Path("x")}, folder / "pytorch_model.bin")
    assert "more than tensors" in refused(folder)


def test_an_adapter_folder(tmp_path: Path) -> None:
    settings = {"peft_type": "LORA", "base_model_name_or_path": "someone/base"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(settings))
    save_file({"x.lora_A.weight": torch.ones(2, 2)}, tmp_path / "adapter_model.safetensors")
    sentence = refused(tmp_path)
    assert "LoRA adapter" in sentence
    assert "someone/base" in sentence
    assert "part of a model's weights" not in refused(tmp_path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("model.safetensors", "open the folder that holds it"),
        ("model-00002-of-00003.safetensors", "part 2 of 3"),
        ("model.onnx", "ONNX Runtime"),
        ("lesson.dxt", "saved session"),
    ],
)
def test_one_file_of_a_folder(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / name).write_bytes(b"\x08" + bytes(100))
    assert words in refused(tmp_path / name)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["model-00001-of-00003.safetensors"], "1 of 3 parts"),
        (["consolidated.00.pth"], "makers' own layout"),
        (["tf_model.h5"], "TensorFlow"),
        (["adapter_model.safetensors", "adapter_config.json"], "LoRA adapter"),
        ([], "no weights"),
    ],
)
def test_a_folder_without_weights_of_ours(tmp_path: Path, names: list[str], words: str) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    (folder / "model.safetensors").unlink()
    for name in names:
        (folder / name).write_text("{}")
    assert words in refused(folder)


METHODS = {
    "awq": "AWQ", "gptq": "GPTQ", "bitsandbytes": "bitsandbytes", "exl2": "ExLlamaV2",
    "compressed-tensors": "compressed-tensors", "hqq": "HQQ", "unheard-of": "unheard-of",
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_weights_packed_for_a_library_that_is_not_here(tmp_path: Path, method: str) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    packing = {"quant_method": method, "bits": 4, "load_in_4bit": True, "group_size": 32}
    change_config(folder, quantization_config=packing)
    sentence = refused(folder)
    assert f"packed for {METHODS[method]}," in sentence
    assert "GGUF" in sentence


def test_weights_packed_for_mlx(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    change_config(folder, quantization={"group_size": 32, "bits": 4})
    assert "packed for MLX" in refused(folder)
    change_config(folder, quantization_config={"group_size": 32, "bits": 4})
    assert "packed for MLX" in refused(folder)


@pytest.mark.parametrize("suffix", ["qweight", "weight_packed", "weight_scale_inv"])
def test_packed_weights_that_no_config_tells_of(tmp_path: Path, suffix: str) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    tensors = load_file(folder / "model.safetensors")
    tensors[f"model.layers.0.mlp.up_proj.{suffix}"] = torch.ones(3)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    assert "packed for" in refused(folder)


def test_a_stray_single_file_beside_good_shards(tmp_path: Path) -> None:
    made = model()
    folder = write_folder(tmp_path / "tiny", made, shard_size="60KB")
    (folder / "model.safetensors").write_bytes(b"cut short")
    opens_the_same(load(str(folder)), made)
    save_file({"other": torch.ones(2)}, folder / "model.safetensors", {"format": "pt"})
    loaded = load(str(folder))
    opens_the_same(loaded, made)
    assert loaded.card.warnings == ()


def test_an_embedding_model_in_its_own_layout(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    stages = [{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
    (folder / "modules.json").write_text(json.dumps(stages))
    assert "embedding model" in refused(folder)


FIGURES = {
    "llama.block_count": "block_count",
    "llama.context_length": "context_length",
    "llama.embedding_length": "embedding_length",
    "llama.feed_forward_length": "feed_forward_length",
    "llama.attention.head_count": "attention.head_count",
}


@pytest.mark.parametrize("key", FIGURES)
def test_a_gguf_header_that_lacks_a_figure(tmp_path: Path, key: str) -> None:
    path = write_gguf(tmp_path / "x.gguf", model(), F32)
    written = struct.pack("<Q", len(key)) + key.encode()
    assert path.read_bytes().count(written) == 1
    path.write_bytes(path.read_bytes().replace(written, written[:-1] + b"_"))
    for use in (recipe.inspect, load):
        with pytest.raises(BadInput, match=f"does not state {FIGURES[key]},"):
            use(str(path))


def test_a_gguf_header_that_describes_a_larger_model(tmp_path: Path) -> None:
    made = model()
    made.config.num_hidden_layers = 5
    path = write_gguf(tmp_path / "x.gguf", made, F32)
    with pytest.raises(BadInput, match="does not match its weights"):
        recipe.inspect(str(path))


SIZES = (
    "num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "intermediate_size",
)  # fmt: skip


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("figure", SIZES)
def test_a_config_that_lacks_a_figure(tmp_path: Path, figure: str, weights: bool) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    config = json.loads((folder / "config.json").read_text())
    del config[figure]
    (folder / "config.json").write_text(json.dumps(config))
    if not weights:
        (folder / "model.safetensors").unlink()
    with pytest.raises(BadInput, match=rf"config\.json of tiny .*{figure}"):
        recipe.inspect(str(folder))
    with pytest.raises(BadInput):
        load(str(folder))


def test_a_figure_that_the_weights_prove_may_be_left_out(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model("gpt2", n_positions=1024))
    config = json.loads((folder / "config.json").read_text())
    del config["n_positions"]
    (folder / "config.json").write_text(json.dumps(config))
    assert load(str(folder)).card.parameters == recipe.inspect(str(folder))["parameters"]


def test_a_context_that_is_not_stated_is_not_made_up(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    config = json.loads((folder / "config.json").read_text())
    del config["max_position_embeddings"]
    (folder / "config.json").write_text(json.dumps(config))
    assert recipe.inspect(str(folder))["context"] == 0
    assert load(str(folder)).card.context == 0
