"""Downloads: only when asked, only what a model needs, gone on with, from any endpoint."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from explorer.engine.callbacks import never
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.library import catalog, hub_process
from tests.engine.folders import model, write_folder
from tests.engine.library.hub_server import REVISION, Hub, folder_files

REPO = "someone/tiny-model"
EXTRA = {"pytorch_model.bin": b"pickle", "README.md": b"#", "onnx/model.safetensors": b"no"}
WEIGHTS = "model.safetensors"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    write_folder(tmp_path / "source", model())
    server = Hub(REPO, {**folder_files(tmp_path / "source"), **EXTRA})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("HF_HUB_CACHE", "HF_TOKEN", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.go_on.set()
    server.shutdown()
    thread.join()
    server.server_close()


def get(progress: Any = lambda *_: None, cancelled: Any = never) -> dict[str, Any]:
    return hub_process.run("get", REPO, progress, cancelled)


def test_a_look_says_what_would_come_and_fetches_nothing(hub: Hub, tmp_path: Path) -> None:
    found = hub_process.run("look", REPO, lambda *_: None, never)
    names = {name for name, _ in found["files"]}
    assert {"config.json", "tokenizer.json", WEIGHTS} <= names
    assert not names & set(EXTRA)
    assert found["bytes"] == sum(len(hub.files[name]) for name in names)
    assert found["free_bytes"] > 0
    assert [path for _, path, _ in hub.asked] == [f"/api/models/{REPO}"]
    assert not (tmp_path / "hf").exists()


def test_a_download_is_a_model_of_the_cache_with_the_same_bytes(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub.constants

    said: list[tuple[str, float | None]] = []
    path = Path(get(lambda *what: said.append(what))["path"])
    assert {f.name for f in path.iterdir()} == set(hub.files) - set(EXTRA)
    assert all((path / n).read_bytes() == hub.files[n] for n in set(hub.files) - set(EXTRA))
    assert {text.rsplit(": ", 1)[1] for text, _ in said} == set(hub.files) - set(EXTRA)
    assert all(fraction is not None and 0 <= fraction <= 1 for _, fraction in said)
    cache = str(tmp_path / "hf" / "hub")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", cache)
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))
    assert REPO in {row["name"] for row in catalog.find()}
    before = len(hub.asked)
    get()
    assert not any(method == "GET" and "resolve" in at for method, at, _ in hub.asked[before:])


def test_a_cancelled_download_is_gone_on_with_where_it_stopped(hub: Hub, tmp_path: Path) -> None:
    half = len(hub.files[WEIGHTS]) // 2
    hub.stalls_at[WEIGHTS] = half
    with pytest.raises(Cancelled):
        get(cancelled=hub.stalled.is_set)
    parts = list((tmp_path / "hf").rglob("*.part"))
    assert len(parts) == 1
    held = parts[0].stat().st_size
    assert 0 <= held <= half
    parts[0].write_bytes(hub.files[WEIGHTS][:half])  # however much of it had reached the disk
    hub.stalls_at.clear()
    hub.asked.clear()
    path = Path(get()["path"])
    ranges = [asked for method, at, asked in hub.asked if method == "GET" and WEIGHTS in at]
    assert ranges == [f"bytes={half}-"]
    assert (path / WEIGHTS).read_bytes() == hub.files[WEIGHTS]
    assert not list((tmp_path / "hf").rglob("*.part"))


def test_a_part_that_is_wrong_is_never_taken_for_the_file(hub: Hub, tmp_path: Path) -> None:
    hub.stalls_at[WEIGHTS] = 10
    with pytest.raises(Cancelled):
        get(cancelled=hub.stalled.is_set)
    next(iter((tmp_path / "hf").rglob("*.part"))).write_bytes(b"x" * 20)
    hub.stalls_at.clear()
    with pytest.raises(BadInput, match="damaged"):
        get()
    assert (Path(get()["path"]) / WEIGHTS).read_bytes() == hub.files[WEIGHTS]


def test_offline_mode_contacts_nobody(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_process, "asked_offline", ("HF_HUB_OFFLINE",))
    with pytest.raises(BadInput, match="Offline mode is set"):
        get()
    assert hub.asked == []


@pytest.mark.parametrize(
    ("repo", "words"),
    [
        ("no-owner", "is not a repository name"),
        ("../passwd", "is not a repository name"),
        ("someone/else", "There is no public model someone/else"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_sentence(hub: Hub, repo: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        hub_process.run("look", repo, lambda *_: None, never)


def test_what_is_no_model_or_gated_or_away_is_said(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.files = {"config.json": b"{}", "flax_model.msgpack": b"x"}
    with pytest.raises(BadInput, match="no model that can be opened"):
        get()
    hub.gated = True
    with pytest.raises(BadInput, match="accept its terms"):
        get()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(BadInput, match="could not be reached"):
        get()


def test_a_repository_of_gguf_files_offers_each_and_fetches_the_chosen_one(hub: Hub) -> None:
    hub.files = {
        "README.md": b"#", "big.gguf": b"GGUF" * 50, "deep/small.Q4.gguf": b"GGUF",
        "split-00001-of-00002.gguf": b"x", "split-00002-of-00002.gguf": b"x",
    }  # fmt: skip
    found = hub_process.run("look", REPO, lambda *_: None, never)
    assert found["forms"] == [["deep/small.Q4.gguf", 4], ["big.gguf", 200]]
    assert (found["form"], found["files"]) == (
        "deep/small.Q4.gguf", [["deep/small.Q4.gguf", 4]],
    )  # fmt: skip
    found = hub_process.run("look", REPO, lambda *_: None, never, "big.gguf")
    assert found["bytes"] == 200
    for form, name in (("", "deep/small.Q4.gguf"), ("big.gguf", "big.gguf")):
        got = hub_process.run("get", REPO, lambda *_: None, never, form)
        assert got["open"] == got["path"]
        assert Path(got["path"]).read_bytes() == hub.files[name]
        assert Path(got["path"]).as_posix().endswith(f"snapshots/{REVISION}/{name}")
    with pytest.raises(BadInput, match=r"no longer contains gone\.gguf"):
        hub_process.run("get", REPO, lambda *_: None, never, "gone.gguf")


def test_a_cancelled_gguf_is_gone_on_with(hub: Hub, tmp_path: Path) -> None:
    hub.files = {"a.gguf": b"GGUF" * 1000}
    hub.stalls_at["a.gguf"] = 1000
    with pytest.raises(Cancelled):
        get(cancelled=hub.stalled.is_set)
    next(iter((tmp_path / "hf").rglob("*.part"))).write_bytes(hub.files["a.gguf"][:1000])
    hub.stalls_at.clear()
    hub.asked.clear()
    assert Path(get()["path"]).read_bytes() == hub.files["a.gguf"]
    assert [r for method, at, r in hub.asked if method == "GET" and "a.gguf" in at] == [
        "bytes=1000-"
    ]


def test_pickles_are_fetched_only_where_there_is_nothing_better(hub: Hub, tmp_path: Path) -> None:
    found = hub_process.run("look", REPO, lambda *_: None, never)
    assert [name for name, _ in found["forms"]] == ["safetensors"]
    del hub.files[WEIGHTS]
    found = hub_process.run("look", REPO, lambda *_: None, never)
    assert [name for name, _ in found["forms"]] == ["pickle"]
    got = get()
    assert got["open"] == REPO
    assert (Path(got["path"]) / "pytorch_model.bin").read_bytes() == b"pickle"


def test_a_search_finds_names_and_fetches_nothing(hub: Hub) -> None:
    found = hub_process.run("search", "tiny", lambda *_: None, never)
    assert found == {"repos": [REPO]}
    assert hub_process.run("search", "nowhere", lambda *_: None, never) == {"repos": []}
    assert {path for _, path, _ in hub.asked} == {"/api/models"}


def test_the_newest_revision_is_what_main_means(hub: Hub, tmp_path: Path) -> None:
    get()
    assert [ref.read_text() for ref in (tmp_path / "hf").rglob("refs/main")] == [REVISION]
