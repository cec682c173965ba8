"""What the self-test found is kept for exactly the same model, and for nothing else."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from explorer.engine import kept_json
from explorer.engine.callbacks import Report, nobody
from explorer.engine.capture.capture import Capture
from explorer.engine.errors import NoMemory
from explorer.engine.loading.loading import load
from explorer.engine.passes.generate import generate
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest, store
from explorer.trace.request import RunRequest, Sampling
from tests.engine.folders import model, write_folder

WINDOWS = {
    "sliding_window": 5,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}


@pytest.fixture
def tests_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Runner]:
    """The runners that were really tested, each time it happened."""
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "home"))
    run: list[Runner] = []
    stock = selftest.run

    def noting(runner: Runner, *how: Any) -> None:
        run.append(runner)
        stock(runner, *how)

    monkeypatch.setattr(selftest, "run", noting)
    return run


@dataclasses.dataclass(frozen=True)
class Opened:
    """A model's folder, the data folder that keeps what its test found, and the tested runner."""

    folder: Path
    home: Path
    runner: Runner


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """Nobody changes it: each test has copies."""
    root = tmp_path_factory.mktemp("tested")
    folder = write_folder(root / "tiny", model("gemma2", eos_token_id=None, **WINDOWS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DECODER_EXPLORER_HOME", str(root / "home"))
        return Opened(folder, root / "home", opened(folder))


@pytest.fixture
def folder(tmp_path: Path, tested: Opened) -> Path:
    """The model; of its test nothing is known."""
    return Path(shutil.copytree(tested.folder, tmp_path / "tiny"))


@pytest.fixture
def known(folder: Path, tmp_path: Path, tested: Opened, tests_run: list[Runner]) -> Path:
    """The model, after its test."""
    shutil.copytree(tested.home, tmp_path / "home")
    return folder


def opened(folder: Path, again: bool = False, progress: Report = nobody) -> Runner:
    runner = Runner(load(str(folder)))
    store.find(runner, lambda: False, again, progress)
    return runner


def state(runner: Runner) -> Any:
    """All that the self-test decides, with modules by name."""
    names = {id(module): path for path, module in runner.model.named_modules()}
    capture = {f.name: getattr(runner.capture, f.name) for f in dataclasses.fields(Capture)}
    for kind in ("token_modules", "map_modules"):
        if capture[kind] is not None:
            capture[kind] = sorted(names[module] for module in capture[kind])
    plain = (bool, int, str, type(None))
    decided = {name: held for name, held in vars(runner).items() if isinstance(held, plain)}
    cache = (runner.cache.kind, runner.cache.can_crop)
    return capture, decided, cache, runner.loaded.card.capabilities


def ran(runner: Runner) -> list[tuple[int, bytes]]:
    kept: list[tuple[int, bytes]] = []
    request = RunRequest(prompt="the cat sat on the mat")
    generate(
        runner,
        runner.prompt(request),
        (),
        3,
        Sampling,
        lambda s, t: kept.append((t.id, s.logits.tobytes())),
    )
    return kept


def test_the_second_time_nothing_is_tested_and_all_is_as_after_the_test(
    folder: Path, tests_run: list[Runner]
) -> None:
    first, second = opened(folder), opened(folder)
    assert tests_run == [first]
    assert state(second) == state(first)
    assert first.loaded.card.tested == ""
    assert second.loaded.card.tested.startswith("20")
    assert ran(second) == ran(first)


def test_the_wait_is_explained_where_there_is_one(folder: Path, tests_run: list[Runner]) -> None:
    said: list[tuple[str, float | None]] = []

    def tell(text: str, share: float | None) -> None:
        said.append((text, share))

    opened(folder, progress=tell)
    assert said.pop(0) == ("Checking the weights", None)
    assert {text for text, _ in said} == {
        "Testing which features work on this model (only when it is first opened)"
    }
    shares = [share for _, share in said]
    assert shares[0] == 0
    assert shares == sorted(shares)  # type: ignore[type-var]
    assert len(set(shares)) > 5
    said.clear()
    opened(folder, progress=tell)
    assert said == []
    opened(folder, again=True, progress=tell)
    assert {text for text, _ in said[1:]} == {"Testing which features work on this model"}


def test_it_is_tested_again_when_asked(known: Path, tests_run: list[Runner]) -> None:
    opened(known)
    assert tests_run == []
    second = opened(known, again=True)
    assert tests_run == [second]
    assert second.loaded.card.tested == ""


@pytest.mark.parametrize(
    "changed", ["weights", "data", "config", "code", "versions", "dtype", "padding"]
)
def test_whatever_it_depends_on_makes_it_another_model(
    known: Path, tests_run: list[Runner], monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    runner = opened(known)
    assert tests_run == []
    name = store.identity(runner)
    card = runner.loaded.card
    match changed:
        case "weights":  # written anew: same names, sizes and headers
            path = known / "model.safetensors"
            stat = path.stat()
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
        case "data":  # and with the time of change of the file it replaced
            path = known / "model.safetensors"
            stat = path.stat()
            path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\x3f")
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        case "config":
            path = known / "config.json"
            path.write_text(path.read_text().replace("{", "{ ", 1))
        case "code":
            monkeypatch.setattr(kept_json, "code_of", lambda rooms: "another")
        case "versions":
            card = msgspec.structs.replace(card, versions={**card.versions, "torch": "0"})
        case "dtype":
            card = msgspec.structs.replace(card, dtype="bfloat16")
        case "padding":
            card = msgspec.structs.replace(card, pad_id=7)
    if changed in ("weights", "data", "config"):
        runner = Runner(load(str(known)))
    else:
        runner.loaded = dataclasses.replace(runner.loaded, card=card)
    assert store.identity(runner) != name
    store.find(runner, lambda: False)
    assert tests_run == [runner]


@pytest.mark.parametrize("finding", ["causal_off", "cache", "capture"])
def test_want_of_memory_says_nothing_of_the_model(
    folder: Path, tests_run: list[Runner], monkeypatch: pytest.MonkeyPatch, finding: str
) -> None:
    runner, calls = Runner(load(str(folder))), []
    least = {"capture": 1, "causal_off": 4, "cache": 12}[finding]  # passes until then
    stock = runner.model.forward

    def refused(*given: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) >= least:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")
        return stock(*given, **named)

    monkeypatch.setattr(runner.model, "forward", refused)
    with pytest.raises(NoMemory):
        store.find(runner, lambda: False)
    assert not store._folder().exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: b"",
        lambda raw: raw.replace(b'"of": "', b'"of": "0'),
        lambda raw: raw.replace(b'"route": "', b'"route": "x'),
        lambda raw: re.sub(rb'"exact":\s*\[\s*0', b'"exact": [99', raw),
        lambda raw: raw.replace(b"self_attn", b"elsewhere"),
        lambda raw: raw + b" " * 10_000_000,
    ],
)
def test_a_damaged_entry_is_ignored(
    known: Path, tested: Opened, tests_run: list[Runner], damage: Any
) -> None:
    (entry,) = store._folder().iterdir()
    broken = damage(entry.read_bytes())
    assert broken != entry.read_bytes()
    entry.write_bytes(broken)
    second = opened(known)
    assert tests_run == [second]
    assert state(second) == state(tested.runner)


def test_only_the_newest_are_kept_and_a_disk_that_takes_nothing_is_no_error(
    folder: Path, tests_run: list[Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_KEPT", 2)
    for number in range(3):
        (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")
        opened(folder)
        assert len(list(store._folder().iterdir())) == min(number + 1, 2)
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(folder / "config.json"))
    assert opened(folder).loaded.card.offers("capture")
