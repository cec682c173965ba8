"""Folders of every kind open and give transformers' own tokens; broken ones get one sentence."""

from __future__ import annotations

import json
import pickle
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.loading.loading import LoadedModel, load
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import store
from tests.engine.architectures import tiny
from tests.engine.folders import byte_level, greedy, model, write_folder, write_tokenizer

PROMPT = "the cat sat on"


def opens_the_same(loaded: LoadedModel, original: Any) -> None:
    ids = [token.id for token in loaded.tokenizer.encode(PROMPT).tokens]
    assert greedy(loaded.model, ids) == greedy(original, ids)
    assert not loaded.model.training
    assert not any(p.requires_grad for p in loaded.model.parameters())


def refused(folder: Path) -> str:
    """The one sentence with which a folder is refused."""
    with pytest.raises(BadInput) as caught:
        load(str(folder))
    sentence = caught.value.sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2"])
def test_a_folder_generates_the_same_tokens(tmp_path: Path, kind: str) -> None:
    made = model(kind)
    loaded = load(str(write_folder(tmp_path / "tiny", made)))
    opens_the_same(loaded, made)
    assert loaded.card.architecture == kind
    assert loaded.card.parameters == sum(p.numel() for p in made.parameters())


def test_sharded_safetensors(tmp_path: Path) -> None:
    made = model()
    folder = write_folder(tmp_path / "tiny", made, shard_size="60KB")
    shards = list(folder.glob("model-*.safetensors"))
    assert len(shards) > 2
    loaded = load(str(folder))
    opens_the_same(loaded, made)
    assert len(loaded.card.fingerprint["weights"]) == len(shards)


def test_a_bin_file_opens_with_a_warning(tmp_path: Path) -> None:
    made = model()
    folder = write_folder(tmp_path / "tiny", made)
    (folder / "model.safetensors").unlink()
    torch.save(made.state_dict(), folder / "pytorch_model.bin")
    loaded = load(str(folder))
    opens_the_same(loaded, made)
    assert any("pickle" in warning for warning in loaded.card.warnings)


def test_a_malicious_pickle_runs_nothing(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    folder = write_folder(tmp_path / "tiny", model())
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"lm_head.weight": Evil()}))
    refused(folder)
    torch.save({"lm_head.weight": Evil()}, folder / "pytorch_model.bin")
    refused(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_every_dtype(tmp_path: Path, dtype: str) -> None:
    loaded = load(str(write_folder(tmp_path / "tiny", model())), dtype)
    assert {str(p.dtype) for p in loaded.model.parameters()} == {f"torch.{dtype}"}
    assert loaded.card.kv_bytes_per_token == 2 * 3 * 2 * 16 * (4 if dtype == "float32" else 2)


def test_card(tmp_path: Path) -> None:
    card = load(str(write_folder(tmp_path / "tiny", model()))).card
    assert (card.name, card.layers, card.hidden_size) == ("tiny", 3, 64)
    assert (card.heads, card.kv_heads, card.head_dim) == (4, 2, 16)
    assert (card.vocab_size, card.context) == (320, 128)
    assert card.eos_ids == (2,)
    assert card.pad_id == 0
    assert card.has_chat_template
    assert card.warnings == ()
    assert set(card.versions) >= {"torch", "transformers", "tokenizers"}
    assert card.capabilities == ()


@pytest.mark.filterwarnings("ignore")  # BLT's own code
def test_layers_that_only_the_configs_inside_state_are_counted(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "blt", tiny("blt"))
    loaded = load(str(folder))
    assert loaded.card.layers == len(Runner(loaded).layers) == 4


def test_progress_goes_to_the_caller_and_nowhere_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    capfd.readouterr()
    said: list[tuple[str, float | None]] = []
    load(str(folder), progress=lambda text, share: said.append((text, share)))
    shares = [share for _, share in said if share is not None]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert capfd.readouterr() == ("", "")


def test_loading_can_be_cancelled(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    with pytest.raises(Cancelled):
        load(str(folder), cancelled=lambda: True)
    opens_the_same(load(str(folder)), model())


def test_the_look_at_the_weights_can_be_cancelled(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    said: list[str] = []
    with pytest.raises(Cancelled):
        store.find(
            Runner(load(str(folder))),
            lambda: said[-1:] == ["Checking the weights"],
            again=True,
            progress=lambda text, share: said.append(text),
        )


def test_a_missing_folder() -> None:
    with pytest.raises(BadInput, match="no model called nowhere"):
        load("nowhere")


@pytest.mark.parametrize("name", ["/nowhere/model", "./nowhere", "nowhere.gguf"])
def test_a_missing_path(name: str) -> None:
    with pytest.raises(BadInput, match="no file or folder"):
        load(name)


@pytest.mark.parametrize("name", ["", "\0", "x" * 5000])
def test_names_that_are_no_paths(name: str) -> None:
    with pytest.raises(BadInput):
        load(name)


def test_the_root_folder_is_named() -> None:
    with pytest.raises(BadInput, match=r"^/ has no config\.json"):
        load("/")


def test_no_config(tmp_path: Path) -> None:
    assert "config.json" in refused(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"model_type": 3}', "[" * 100_000])
def test_a_broken_config(tmp_path: Path, text: str) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    (folder / "config.json").write_text(text)
    assert "config.json" in refused(folder)


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("kind", "word"), [("t5", "decoder-only"), ("clip", "decoder-only"), ("frob", "does not know")]
)
def test_a_type_that_is_no_decoder(tmp_path: Path, kind: str, word: str) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    change_config(folder, model_type=kind)
    assert word in refused(folder)


def test_remote_code_is_never_run(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass C: pass\n")
    names = {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.C", "AutoTokenizer": "evil.C"}
    change_config(folder, model_type="evil", auto_map=names)
    assert "own program code" in refused(folder)
    change_config(folder, model_type="llama")
    opens_the_same(load(str(folder)), model())
    assert not (tmp_path / "ran").exists()


def test_no_weights(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    (folder / "model.safetensors").unlink()
    assert "no weights" in refused(folder)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_cut_pickles(tmp_path: Path, share: float) -> None:
    made = model()
    folder = write_folder(tmp_path / "tiny", made)
    (folder / "model.safetensors").unlink()
    torch.save(made.state_dict(), folder / "pytorch_model.bin")
    whole = (folder / "pytorch_model.bin").read_bytes()
    (folder / "pytorch_model.bin").write_bytes(whole[: int(len(whole) * share)])
    refused(folder)


def test_a_model_for_another_task(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    change_config(folder, architectures=["LlamaForSequenceClassification"])
    assert "another task" in refused(folder)


def test_a_packed_model_whose_library_is_not_there(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    change_config(
        folder, quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}
    )
    assert "packed" in refused(folder)


def test_a_config_that_asks_for_more_than_the_files_hold(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    change_config(folder, intermediate_size=10**12)
    assert "does not match its weights" in refused(folder)


def test_no_network_is_ever_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("the network was asked")

    folder = write_folder(tmp_path / "tiny", model())
    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    opens_the_same(load(str(folder)), model())


def test_a_missing_shard(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model(), shard_size="60KB")
    sorted(folder.glob("model-*.safetensors"))[1].unlink()
    assert "weight files are missing" in refused(folder)


def test_an_index_that_points_elsewhere(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model(), shard_size="60KB")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"lm_head.weight": "../../secret.safetensors"}}))
    assert "outside its own folder" in refused(folder)


def test_no_tokenizer(tmp_path: Path) -> None:
    made = model()
    made.save_pretrained(tmp_path / "tiny")
    assert "no tokenizer" in refused(tmp_path / "tiny")


@pytest.mark.parametrize("share", [0.0, 0.00001, 0.01, 0.5, 0.99])
def test_cut_safetensors(tmp_path: Path, share: float) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: int(len(whole) * share)])
    assert "not a whole safetensors file" in refused(folder)


@pytest.mark.parametrize(
    "head",
    [
        struct.pack("<Q", 2**62) + b"{}",
        struct.pack("<Q", 4) + b"null",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 13) + b'{"a":{"b":1}}',
        struct.pack("<Q", 45) + b'{"a":{"dtype":"F32","data_offsets":[0,1e400]}',
    ],
)
def test_hostile_safetensors_headers(tmp_path: Path, head: bytes) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    (folder / "model.safetensors").write_bytes(head)
    assert "not a whole safetensors file" in refused(folder)


def test_missing_weights_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    assert "lacks 1 of the weights" in refused(folder)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    change_config(folder, intermediate_size=100)
    assert "do not fit" in refused(folder)


def test_unexpected_tensors_are_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    tensors = load_file(folder / "model.safetensors")
    tensors["model.extra.weight"] = torch.ones(3)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    warnings = load(str(folder)).card.warnings
    assert any("model.extra.weight" in warning for warning in warnings)


def test_a_vocabulary_wider_than_the_tokenizer(tmp_path: Path) -> None:
    made = model(vocab_size=400)
    made.save_pretrained(tmp_path / "tiny")
    write_tokenizer(tmp_path / "tiny", byte_level(320))
    loaded = load(str(tmp_path / "tiny"))
    assert loaded.card.vocab_size == 400
    token = loaded.tokenizer.token(399)
    assert (token.raw, token.special) == (b"<id 399>", True)


def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    folder = str(write_folder(tmp_path / "tiny", model()))
    with pytest.raises(BadInput, match="choose cpu"):
        load(folder, device="quantum")
    with pytest.raises(BadInput, match="choose float32"):
        load(folder, dtype="int4")
