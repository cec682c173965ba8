"""Models are found where users have them, and listed without loading weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf as library
import pytest
import torch

from explorer import places
from explorer.engine.errors import BadInput
from explorer.engine.library import catalog, stores
from explorer.engine.loading.loading import load
from explorer.engine.machine import free_memory
from tests.engine.folders import model, write_folder, write_gguf

Q8_0 = library.GGMLQuantizationType.Q8_0
NUMBERS = sum(p.numel() for p in model().parameters())


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without any models."""
    import huggingface_hub.constants

    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.setenv("USERPROFILE", str(path))
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(path / "data"))
    for name in ("OLLAMA_MODELS", "DECODER_EXPLORER_MODELS"):
        monkeypatch.delenv(name, raising=False)
    cache = str(path / "hub")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", cache)
    return path


def rows(origin: str = "") -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in catalog.find() if origin in row["source"]}


def test_an_empty_disk_lists_only_what_is_bundled() -> None:
    assert {row["source"] for row in catalog.find()} <= {"bundled"}


def test_folders_the_user_added(tmp_path: Path) -> None:
    root = tmp_path / "models"
    write_folder(root / "mine" / "tiny", model())
    write_gguf(root / "other.gguf", model(), Q8_0)
    stores.add_folder(root)
    stores.add_folder(root)
    found = rows(str(root))
    assert set(found) == {"mine/tiny", "other"}
    tiny = found["mine/tiny"]
    assert tiny["architecture"] == "llama"
    assert tiny["parameters"] == NUMBERS
    assert tiny["bytes"] == (root / "mine/tiny/model.safetensors").stat().st_size
    assert (tiny["dtype"], tiny["fits"]) == ("float32", True)
    other = found["other"]
    assert (other["parameters"], other["dtype"]) == (NUMBERS, "Q8_0")
    assert other["bytes"] == (root / "other.gguf").stat().st_size
    assert load("mine/tiny").card.name == "mine/tiny"
    assert load("other").card.source == "from Q8_0 (dequantised)"
    stores.remove_folder(root)
    assert rows(str(root)) == {}
    with pytest.raises(BadInput, match="no model called other"):
        catalog.resolve("other")


def test_folders_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "models", model())
    monkeypatch.setenv("DECODER_EXPLORER_MODELS", str(tmp_path / "models"))
    assert "models" in rows(str(tmp_path / "models"))


def test_the_hugging_face_cache(home: Path) -> None:
    repo = home / "hub" / "models--someone--tiny"
    commit = "0123456789012345678901234567890123456789"
    written = write_folder(home / "blob", model())
    snapshot = repo / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (repo / "blobs").mkdir()
    for file in written.iterdir():
        blob = repo / "blobs" / file.name
        file.rename(blob)
        (snapshot / file.name).symlink_to(blob)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    assert rows("Hugging Face")["someone/tiny"]["parameters"] == NUMBERS
    assert load("someone/tiny").card.architecture == "llama"


def test_lm_studio(home: Path) -> None:
    folder = home / ".lmstudio" / "models" / "maker" / "tiny-GGUF"
    folder.mkdir(parents=True)
    write_gguf(folder / "tiny-Q8_0.gguf", model(), Q8_0)
    row = rows("LM Studio")["maker/tiny-GGUF/tiny-Q8_0"]
    assert row["architecture"] == "llama"
    assert catalog.resolve(row["name"]).kind == "gguf"


def ollama_model(root: Path, name: str, digest: str = "sha256:0123abcd") -> Path:
    manifest = root / "manifests" / "registry.ollama.ai" / "library" / name / "latest"
    manifest.parent.mkdir(parents=True, exist_ok=True)
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:ff"},
        {"mediaType": "application/vnd.ollama.image.model", "digest": digest},
    ]
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    blob = root / "blobs" / digest.replace(":", "-")
    blob.parent.mkdir(exist_ok=True)
    return blob


def test_ollama(home: Path) -> None:
    root = home / ".ollama" / "models"
    write_gguf(ollama_model(root, "tiny"), model(), Q8_0)
    ollama_model(root, "gone", "sha256:5678")
    ollama_model(root, "hostile", "../../../../etc/passwd")
    (root / "manifests" / "rubbish").write_text("{")
    assert set(rows("Ollama")) == {"tiny:latest"}
    assert load("tiny:latest").card.source == "from Q8_0 (dequantised)"


def test_what_is_no_decoder_is_not_listed(tmp_path: Path) -> None:
    root = tmp_path / "models"
    whole = write_folder(root / "whole", model())
    (root / "seq2seq").mkdir()
    (root / "seq2seq" / "config.json").write_text('{"model_type": "t5"}')
    (root / "empty").mkdir()
    (root / "empty" / "config.json").write_text((whole / "config.json").read_text())
    (root / "broken").mkdir()
    (root / "broken" / "config.json").write_text("{")
    (root / "cut.gguf").write_bytes(b"GGUF\3\0\0\0")
    for part in (1, 2):
        write_gguf(root / f"split-0000{part}-of-00002.gguf", model(), Q8_0)
    stores.add_folder(root)
    assert set(rows(str(root))) == {"whole", "split-00001-of-00002"}


def in_parts(writer: library.GGUFWriter) -> None:
    writer.add_uint16("split.count", 3)


def test_a_split_file_is_refused_in_words(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "x-00001-of-00003.gguf", model(), Q8_0, in_parts)
    with pytest.raises(BadInput, match="one of 3 parts"):
        load(str(path))


def test_pickled_models_are_counted_without_opening_them(tmp_path: Path) -> None:
    made = model()
    folder = write_folder(tmp_path / "models" / "old", made)
    (folder / "model.safetensors").unlink()
    torch.save(made.state_dict(), folder / "pytorch_model.bin")
    stores.add_folder(tmp_path / "models")
    found = rows()["old"]
    assert found["parameters"] == pytest.approx(NUMBERS, rel=0.3)
    assert (found["pickle"], found["own_code"]) == (True, False)


def test_two_models_of_one_name_stay_two(tmp_path: Path) -> None:
    for place in ("a", "b"):
        write_folder(tmp_path / place / "tiny", model())
        stores.add_folder(tmp_path / place)
    named = [row["name"] for row in catalog.find() if row["source"] != "bundled"]
    assert named == ["tiny", str(tmp_path / "b" / "tiny")]


def test_a_model_that_cannot_fit_is_refused_with_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "models" / "tiny", model())
    path = write_gguf(tmp_path / "models" / "tiny.gguf", model(), Q8_0)
    stores.add_folder(tmp_path / "models")
    needed = free_memory.estimate(NUMBERS, catalog_shape(folder), "float32").total
    monkeypatch.setattr(free_memory, "available_bytes", lambda device="cpu": needed - 200_000)
    figures = r"needs about [\d.,]+ MiB in float32 \(weights [\d.,]+ [KM]iB.* choose bfloat16"
    for name in (folder, path):
        with pytest.raises(BadInput, match=figures):
            load(str(name))
    assert load(str(folder), "bfloat16").card.dtype == "bfloat16"
    assert not list(places.data_folder().rglob("*.safetensors"))  # nothing was converted
    fits = {row["path"]: row["fits"] for row in catalog.find()}
    assert (fits[str(folder)], fits[str(path)]) == (False, True), "the file fits as it is"
    monkeypatch.setattr(free_memory, "available_bytes", lambda device="cpu": 1000)
    with pytest.raises(BadInput, match="choose a smaller model"):
        load(str(folder))


def catalog_shape(folder: Path) -> Any:
    from explorer.engine.library import file_summary

    return file_summary.of_folder(folder).shape


def test_memory_is_known_here() -> None:
    available = free_memory.available_bytes()
    assert available is not None
    assert 10**8 < available < 10**14


def test_the_bundled_names() -> None:
    with pytest.raises(BadInput, match=r"packaging/run.py"):
        catalog.resolve("smollm2")
    assert catalog.resolve("copycat").kind == "folder"


def cut(path: Path) -> None:
    """Leave out the last thousand bytes, as a download does that was cut off."""
    whole = path.read_bytes()
    path.write_bytes(whole[:-1000])


def test_incomplete_downloads_are_listed_as_such_by_name(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "models"
    write_folder(root / "whole", model())
    cut(write_folder(root / "cut", model()) / "model.safetensors")
    shards = write_folder(root / "sharded", model(), shard_size="60KB")
    sorted(shards.glob("model-*.safetensors"))[1].unlink()
    local = write_folder(root / "local", model())
    arriving = local / ".cache" / "huggingface" / "download" / "abc.def.incomplete"
    arriving.parent.mkdir(parents=True)
    (local / "model.safetensors").rename(arriving)
    cut(write_gguf(root / "cut-Q8_0.gguf", model(), Q8_0))
    write_gguf(root / "whole-Q8_0.gguf", model(), Q8_0)
    for name in ("x-Q4_K_M.gguf.part", "downloading_y-Q8_0.gguf.part", "z.gguf.crdownload",
                 "whole-Q8_0.gguf.part", "letter.txt.part"):  # fmt: skip
        (root / name).write_bytes(b"GGUF\3\0\0\0" + bytes(100))
    blobs = home / "hub" / "models--someone--begun" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "0123.decoder-explorer.part").write_bytes(bytes(50))
    stores.add_folder(root)
    found = rows()
    listed = {name for name, row in found.items() if row["incomplete"]}
    assert listed == {
        "cut", "sharded", "local", "cut-Q8_0", "x-Q4_K_M", "y-Q8_0", "z", "someone/begun"
    }  # fmt: skip
    assert found["local"]["architecture"] == "llama"
    assert found["local"]["bytes"] > 4 * NUMBERS
    assert found["cut"]["parameters"] is None
    assert not found["whole"]["incomplete"]
    for name in ("x-Q4_K_M", "someone/begun", str(root / "x-Q4_K_M.gguf.part")):
        with pytest.raises(BadInput, match=r"download of .* is incomplete"):
            load(name)
