"""GGUF files: converted once, the same bits as transformers' own route, safe when damaged."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf as library
import numpy as np
import pytest
import torch

from explorer import places
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.gguf import cache, convert, model_config, model_folder
from explorer.engine.gguf.header import read_header
from explorer.engine.library import catalog
from explorer.engine.loading.loading import load
from tests.engine.folders import (
    byte_level,
    greedy,
    model,
    write_any_gguf,
    write_gguf,
    write_newer_gguf,
)

Q = library.GGMLQuantizationType
PROMPT = "the cat sat on"


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def quantised(made: Any, kind: library.GGMLQuantizationType) -> Any:
    """The model with its matrices rounded as the file stores them."""
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim > 1:
                stored = library.quantize(parameter.numpy(), kind)
                parameter.copy_(torch.from_numpy(library.dequantize(stored, kind)))
    return made


@pytest.mark.parametrize("kind", [Q.F32, Q.F16, Q.BF16, Q.Q8_0, Q.Q4_0], ids=lambda k: k.name)
@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_a_file_generates_what_transformers_does(
    tmp_path: Path, architecture: str, kind: library.GGMLQuantizationType
) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(architecture), kind)
    loaded = load(str(path))
    original = quantised(model(architecture), kind)
    for (name, ours), (_, theirs) in zip(
        loaded.model.named_parameters(), original.named_parameters(), strict=True
    ):
        assert torch.equal(ours, theirs), name
    ids = [token.id for token in loaded.tokenizer.encode(PROMPT).tokens]
    assert ids == byte_level().encode(PROMPT).ids
    assert greedy(loaded.model, ids) == greedy(original, ids)
    words = f"from {kind.name}" + ("" if kind is Q.F32 else " (dequantised)")
    assert loaded.card.source == words
    assert loaded.card.eos_ids == (2,)
    assert loaded.card.has_chat_template
    assert loaded.card.warnings == ()


@pytest.mark.parametrize("kind", [Q.F32, Q.Q8_0], ids=lambda k: k.name)
@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_tensors_equal_transformers_own_load(
    tmp_path: Path, architecture: str, kind: library.GGMLQuantizationType
) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(architecture), kind)
    same_as_transformers(path)


def same_as_transformers(path: Path) -> None:
    """Compare with from_pretrained(gguf_file=…), tensor by tensor."""
    import transformers

    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, local_files_only=True
    )
    ours = load(str(path)).model
    expected = dict(theirs.state_dict())
    found = dict(ours.state_dict())
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


SIZES = {
    "vocab_size": 320, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "max_position_embeddings": 128,
}  # fmt: skip
EXPERTS = {**SIZES, "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2}
ARCHITECTURES = {
    "qwen2": SIZES,
    "qwen3": {**SIZES, "head_dim": 128},
    "phi3": {**SIZES, "pad_token_id": 0},
    "stablelm": SIZES,
    "starcoder2": SIZES,
    "nemotron": SIZES,
    "gemma2": SIZES,
    "gemma3": SIZES,
    "falcon": {
        "vocab_size": 320, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    },
    "gpt2": {"vocab_size": 320, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 1024},
    "bloom": {"vocab_size": 320, "hidden_size": 64, "n_layer": 2, "n_head": 4},
    "mamba": {"vocab_size": 320, "hidden_size": 64, "num_hidden_layers": 2},
    "qwen2_moe": EXPERTS,
    "qwen3_moe": EXPERTS,
    "minimax_m2": {**EXPERTS, "intermediate_size": 32},
}  # fmt: skip


QUICK = ("gemma3", "gpt2", "bloom", "qwen3_moe")


@pytest.mark.parametrize(
    "architecture",
    [pytest.param(a, marks=[] if a in QUICK else pytest.mark.slow) for a in ARCHITECTURES],
)
def test_every_mapped_architecture_equals_transformers_own_load(
    tmp_path: Path, architecture: str
) -> None:
    path = write_any_gguf(tmp_path / "tiny.gguf", architecture, ARCHITECTURES[architecture])
    same_as_transformers(path)
    assert not any("no place" in warning for warning in load(str(path)).card.warnings)


@pytest.mark.parametrize("architecture", ["qwen35", "lfm2"])
def test_the_newest_architectures_equal_transformers_own_load(
    tmp_path: Path, architecture: str
) -> None:
    path = write_newer_gguf(tmp_path / "tiny.gguf", architecture)
    same_as_transformers(path)
    card = load(str(path)).card
    kinds = {"qwen35": ("linear",) * 3 + ("full",), "lfm2": ("conv", "full") * 2}
    assert card.layer_kinds == kinds[architecture]
    path.write_bytes(path.read_bytes().replace(b"blk.1.ffn_up.weight", b"blk.1.ffn_ux.weight"))
    with pytest.raises(BadInput, match="lacks 1 of the weights"):
        load(str(path))


@pytest.mark.parametrize(
    ("architecture", "sizes"),
    [
        ("qwen3", SIZES),
        ("qwen2_moe", {**EXPERTS, "moe_intermediate_size": 32,
                       "shared_expert_intermediate_size": 48}),
        ("qwen3_moe", {**EXPERTS, "moe_intermediate_size": 32}),
    ],
)  # fmt: skip
def test_widths_that_transformers_forgets(
    tmp_path: Path, architecture: str, sizes: dict[str, Any]
) -> None:
    path = write_any_gguf(tmp_path / "tiny.gguf", architecture, sizes)
    loaded = load(str(path))
    assert loaded.card.head_dim == 16
    with torch.inference_mode():
        assert loaded.model(torch.tensor([[1, 2, 3]])).logits.isfinite().all()


def with_rope_factors(writer: library.GGUFWriter) -> None:
    factors = model_config.llama3_factors(8, 10_000.0, 32.0)
    writer.add_tensor("rope_freqs.weight", factors.astype(np.float32))


def with_other_rope_factors(writer: library.GGUFWriter) -> None:
    factors = model_config.llama3_factors(8, 10_000.0, 3.0, 256)
    writer.add_tensor("rope_freqs.weight", factors.astype(np.float32))


def with_linear_scaling(writer: library.GGUFWriter) -> None:
    writer.add_rope_scaling_type(library.RopeScalingType.LINEAR)
    writer.add_rope_scaling_factor(4.0)


def with_yarn(writer: library.GGUFWriter) -> None:
    writer.add_rope_scaling_type(library.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(2.0)
    writer.add_rope_scaling_orig_ctx_len(64)


LLAMA3_ROPE = {
    "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "scaling"),
    [
        (with_rope_factors, LLAMA3_ROPE),
        (
            with_other_rope_factors,
            {**LLAMA3_ROPE, "factor": 3.0, "original_max_position_embeddings": 256},
        ),
        (with_linear_scaling, {"rope_type": "linear", "factor": 4.0}),
        (with_yarn, {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64}),
    ],
    ids=["llama3", "llama3 of another context", "linear", "yarn"],
)
def test_rotary_scaling_is_not_lost(tmp_path: Path, more: Any, scaling: dict[str, Any]) -> None:
    original = model("llama", rope_parameters={"rope_theta": 10_000.0, **scaling})
    path = write_gguf(tmp_path / "tiny.gguf", original, Q.F32, more)
    loaded = load(str(path))
    ids = torch.arange(100)[None] % 320
    with torch.inference_mode():
        difference = (loaded.model(ids).logits - original(ids).logits).abs().max()
        without = (model("llama")(ids).logits - original(ids).logits).abs().max()
    assert difference < 1e-4
    assert without > 1e-2
    assert loaded.card.warnings == ()


def test_rotary_factors_nobody_knows_are_noted(tmp_path: Path) -> None:
    def strange(writer: library.GGUFWriter) -> None:
        writer.add_tensor("rope_freqs.weight", np.linspace(1, 3, 8, dtype=np.float32))

    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.F32, strange)
    assert any("rotary factors" in note for note in load(str(path)).card.warnings)


def test_rotary_scaling_without_its_factors_is_noted(tmp_path: Path) -> None:
    def without_factors(writer: library.GGUFWriter) -> None:
        writer.add_rope_scaling_type(library.RopeScalingType.LONGROPE)

    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.F32, without_factors)
    assert any("longrope without its factors" in note for note in load(str(path)).card.warnings)


def test_a_file_of_several_quantisations_is_named_by_its_parts(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model("llama", intermediate_size=256), Q.Q8_0)
    whole = read_header(path)
    kinds = [Q.Q5_0 if "ffn" in t.name else t.kind for t in whole.tensors]
    mixed = replace(whole, tensors=tuple(
        replace(t, kind=k) for t, k in zip(whole.tensors, kinds, strict=True)
    ))  # fmt: skip
    assert mixed.stored == "Q5_0 65 %, Q8_0 35 %"
    assert whole.stored == "Q8_0"
    assert convert.origin_of(mixed) == "from Q5_0 65 %, Q8_0 35 % (dequantised)"


def test_an_unknown_way_of_splitting_is_noted(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.F32)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"gpt-2", b"gpt-X"))
    assert any("tag gpt-X" in note for note in load(str(path)).card.warnings)


def test_converting_happens_once(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.Q8_0)
    texts: list[str] = []
    load(str(path), progress=lambda text, _: texts.append(text))
    assert any("once" in text for text in texts)
    texts.clear()
    load(str(path), progress=lambda text, _: texts.append(text))
    assert not any("once" in text for text in texts)


def test_converting_holds_less_than_the_whole_model_again(tmp_path: Path) -> None:
    """One tensor at a time: numpy's own bytes at the highest, against those of the file made."""
    made = model(hidden_size=256, intermediate_size=1024)
    path = write_gguf(tmp_path / "tiny.gguf", made, Q.Q8_0)
    tracemalloc.start()
    folder, _ = model_folder.as_folder(path, lambda *_: None, lambda: False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2.2 * (folder / "model.safetensors").stat().st_size


def test_a_changed_file_is_converted_again(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(seed=0), Q.F32)
    load(str(path))
    write_gguf(path, model(seed=1), Q.F32)
    again = load(str(path)).model
    assert torch.equal(again.lm_head.weight, model(seed=1).lm_head.weight)


def test_a_damaged_conversion_is_made_again(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.F32)
    folder, _ = model_folder.as_folder(path, lambda *_: None, lambda: False)
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 0xFF
    weights.write_bytes(content)
    loaded = load(str(path)).model
    assert torch.equal(loaded.lm_head.weight, model().lm_head.weight)


@pytest.mark.parametrize("which", ["source", "converted"])
def test_a_file_that_kept_the_time_of_the_one_it_replaced_is_converted_anew(
    tmp_path: Path, which: str
) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.F32)
    folder, _ = model_folder.as_folder(path, lambda *_: None, lambda: False)
    file = path if which == "source" else folder / "model.safetensors"
    stat = file.stat()
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\x3f")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert cache.opened(path, folder) is None


def test_a_copied_conversion_is_still_good(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.F32)
    folder, _ = model_folder.as_folder(path, lambda *_: None, lambda: False)
    os.utime(folder / "model.safetensors", (1, 1))
    assert cache.opened(path, folder) == cache.Conversion("from F32")


def test_a_cancelled_conversion_leaves_nothing(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.F32)
    calls = iter([False, False, True])
    with pytest.raises(Cancelled):
        load(str(path), cancelled=lambda: next(calls))
    assert list(cache.cache_folder().iterdir()) == []


def test_the_hashing_of_a_conversion_can_be_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF")
    folder = cache.folder_for(path)
    with pytest.raises(Cancelled):
        cache.store(path, folder, "from F32", lambda work: [], lambda: True)
    assert list(cache.cache_folder().iterdir()) == []


def test_the_bundled_model_is_converted_beside_itself() -> None:
    path = places.models_folder() / "smollm2" / "x.gguf"
    assert cache.folder_for(path) == path.parent / "float32"


def test_the_cache_has_a_limit_and_can_be_cleared(tmp_path: Path) -> None:
    folders = []
    for number in range(3):
        path = write_gguf(tmp_path / f"tiny{number}.gguf", model(), Q.F32)
        folder, _ = model_folder.as_folder(path, lambda *_: None, lambda: False)
        os.utime(folder / "converted.json", (number + 1, number + 1))
        folders.append(folder)
    each = cache.size_bytes() // 3
    cache.trim(2 * each + each // 2, keep=folders[0])
    assert [folder.exists() for folder in folders] == [True, False, True]
    assert cache.clear() > 0
    assert cache.size_bytes() == 0


@pytest.mark.parametrize("tenth", range(10))
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, tenth: int) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.Q8_0)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * tenth // 10])
    with pytest.raises(BadInput, match=r"not a whole GGUF file|not a GGUF file"):
        load(str(path))


@pytest.mark.parametrize("place", [8, 16])
def test_absurd_counts_are_refused(tmp_path: Path, place: int) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.Q8_0)
    content = bytearray(path.read_bytes())
    content[place : place + 8] = struct.pack("<Q", 2**62)
    path.write_bytes(content)
    with pytest.raises(BadInput, match="not a whole GGUF file"):
        load(str(path))


def test_flipped_bytes_never_crash(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.Q8_0)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for place in random.integers(0, 12_000, 60):
        content = bytearray(whole)
        content[place] ^= int(random.integers(1, 256))
        path.write_bytes(content)
        with contextlib.suppress(BadInput):  # anything else fails the test
            header = read_header(path)
            assert all(t.start + t.size <= len(whole) for t in header.tensors)


def test_an_unknown_architecture(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    writer = library.GGUFWriter(path, "frobnicator")
    writer.add_tensor("x.weight", np.ones((2, 2), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(BadInput, match="architecture frobnicator"):
        load(str(path))


def test_missing_tensors_are_refused(tmp_path: Path) -> None:
    made = model()
    made.config.num_hidden_layers = 4  # one more than there are weights for
    path = write_gguf(tmp_path / "tiny.gguf", made, Q.F32)
    with pytest.raises(BadInput, match="lacks 9 of the weights"):
        load(str(path))


def test_the_manifest_names_every_file(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", model(), Q.F32)
    folder, _ = model_folder.as_folder(path, lambda *_: None, lambda: False)
    manifest = json.loads((folder / "converted.json").read_text())
    there = {file.name for file in folder.iterdir()} - {"converted.json"}
    assert set(manifest["files"]) == there
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= there


@pytest.mark.slow
@pytest.mark.smollm2
@pytest.mark.timeout(600)
def test_smollm2_equals_transformers_own_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DECODER_EXPLORER_HOME")
    same_as_transformers(catalog.resolve("smollm2").path)
