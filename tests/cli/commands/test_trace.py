"""`trace`, `check`, `inspect` and `models` on a tiny model, the engine in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer.cli import client
from explorer.trace.files import dxt
from tests.cli.conftest import Done
from tests.engine import folders
from tests.engine.local_engine import LocalEngine

Command = Callable[..., Done]
PROMPT = "the cat sat on"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama with random weights and 128 positions, as a folder."""
    return folders.write_folder(tmp_path_factory.mktemp("tiny"), folders.model())


@pytest.fixture(autouse=True)
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())


@pytest.fixture
def trace(command: Command, tiny: Path) -> Callable[..., dict[str, Any]]:
    """The JSON of `trace`; the prompt and three steps unless said."""

    def run(*words: object, prompt: str = PROMPT, steps: int = 3) -> dict[str, Any]:
        done = command("trace", tiny, "--prompt", prompt, "--steps", steps, "--json", *words)
        assert (done.code, done.err) == (0, ""), done.err
        document: dict[str, Any] = json.loads(done.out)
        return document

    return run


Trace = Callable[..., dict[str, Any]]


def column(document: dict[str, Any], name: str) -> list[Any]:
    return [step[name] for step in document["steps"]]


def test_prefill_then_cached_decode(trace: Trace) -> None:
    document = trace(steps=4)
    prompt = document["prompt_tokens"]
    assert column(document, "index") == [0, 1, 2, 3]
    assert column(document, "phase") == ["prefill", "decode", "decode", "decode"]
    assert column(document, "positions_processed") == [prompt, 1, 1, 1]
    assert column(document, "cache_tokens") == [prompt, prompt + 1, prompt + 2, prompt + 3]
    per_token = 2 * 3 * 2 * 16 * 4  # 2 · L · H_kv · d_h · bytes
    assert column(document, "cache_bytes") == [per_token * (prompt + i) for i in range(4)]
    assert column(document, "probability") == [1.0] * 4
    assert column(document, "rank") == [0] * 4
    assert document["stop_reason"] == "steps"
    assert document["sampling"]["greedy"] is True
    assert [t["origin"] for t in document["tokens"]] == ["prompt"] * prompt + ["generated"] * 4
    assert [t["id"] for t in document["tokens"][prompt:]] == column(document, "chosen_id")
    assert document["self_check"] == {"passed": None, "checks": []}


def test_the_tokens_are_transformers_own(trace: Trace) -> None:
    document = trace(steps=6)
    ids = [token["id"] for token in document["tokens"]]
    prompt = document["prompt_tokens"]
    assert ids[prompt:] == folders.greedy(folders.model(), ids[:prompt], 6)


def test_without_a_cache_the_same_tokens_cost_more(trace: Trace) -> None:
    cached, whole = trace(), trace("--no-cache")
    prompt = whole["prompt_tokens"]
    assert column(whole, "chosen_id") == column(cached, "chosen_id")
    assert column(whole, "positions_processed") == [prompt, prompt + 1, prompt + 2]
    assert column(whole, "cache_bytes") == [0, 0, 0]
    assert whole["cache"]["enabled"] is False
    assert "switched off" in whole["cache"]["reason"]


def test_without_the_mask_tokens_read_ahead(trace: Trace, command: Command, tmp_path: Path) -> None:
    document = trace("--no-causal-mask", "--out", tmp_path / "a.dxt")
    assert document["causal_mask"] is False
    assert document["cache"]["enabled"] is False
    assert "causal mask" in document["cache"]["reason"]
    assert column(document, "phase")[1:] == ["recompute", "recompute"]
    for layer in range(3):
        out = tmp_path / "a.npy"
        words = ("--layer", layer, "--head", 3, "--step", 1, "--out", out)
        assert command("attention", tmp_path / "a.dxt", *words).code == 0
        weights = np.load(out)
        size = document["prompt_tokens"] + 1
        assert weights.shape == (size, size)
        assert (weights[np.triu_indices(size, 1)] > 0).all()


def test_sampling_is_seeded_and_zero_means_greedy(trace: Trace) -> None:
    greedy = column(trace(), "chosen_id")
    hot = ("--temperature", 5, "--top-k", 50, "--seed")
    first, again, other = (trace(*hot, seed, steps=6) for seed in (1, 1, 2))
    assert column(first, "chosen_id") == column(again, "chosen_id")
    assert column(first, "chosen_id") != column(other, "chosen_id")
    drawn = {"greedy": False, "temperature": 5.0, "top_k": 50, "top_p": 1.0, "seed": 1}
    assert drawn.items() <= first["sampling"].items()
    assert column(trace("--temperature", 0), "chosen_id") == greedy
    narrow = trace("--top-p", 0)
    assert column(narrow, "chosen_id") == greedy
    assert column(narrow, "probability") == [1.0] * 3


def test_min_p_and_the_repetition_penalty(trace: Trace) -> None:
    greedy = column(trace(), "chosen_id")
    best_only = trace("--min-p", 1)
    assert best_only["sampling"]["min_p"] == 1
    assert best_only["sampling"]["greedy"] is False
    assert column(best_only, "chosen_id") == greedy
    punished = trace("--repetition-penalty", 50, "--greedy", steps=8)
    assert punished["sampling"]["repetition_penalty"] == 50
    assert punished["sampling"]["greedy"] is True
    ids = column(punished, "chosen_id")
    prompt = [token["id"] for token in punished["tokens"][: punished["prompt_tokens"]]]
    assert len({*ids, *prompt}) == len(ids) + len(set(prompt))  # nothing comes twice


def test_padding_leaves_the_tokens_alone(trace: Trace) -> None:
    alone = trace()
    padded = trace("--padding", "left", "--pad", 3)
    assert column(padded, "chosen_id") == column(alone, "chosen_id")
    assert padded["prompt_tokens"] == alone["prompt_tokens"]
    assert [t["origin"] for t in padded["tokens"][:4]] == ["padding"] * 3 + ["prompt"]


def test_out_holds_what_json_says(trace: Trace, command: Command, tmp_path: Path) -> None:
    document = trace("--out", tmp_path / "a.dxt")
    assert document.pop("path"), "of this machine: no file holds it"
    assert json.loads(command("show", tmp_path / "a.dxt", "--json").out) == document
    saved = dxt.load(tmp_path / "a.dxt")
    first = saved.weights(0, 0, 0)
    assert first.shape == (document["prompt_tokens"],) * 2
    assert (np.triu(first, 1) == 0).all()
    np.testing.assert_allclose(first.sum(axis=1), 1, atol=1e-6)


def test_any_text_in_a_prompt_file_is_taken_byte_for_byte(
    command: Command, tiny: Path, tmp_path: Path
) -> None:
    text = "NUL \x00, \ufeff, emoji 👩‍👩‍👧, CJK 日本語, <|im_end|>\r\n\n"
    (tmp_path / "p.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())  # a mark is no token
    done = command(
        "trace", tiny, "--prompt-file", tmp_path / "p.txt", "--steps", 1, "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    document = json.loads(done.out)
    spelled = bytes.fromhex("".join(t["bytes_hex"] for t in document["tokens"][:-1]))
    assert spelled == text.encode()


def test_what_the_vocabulary_cannot_spell_is_reported(command: Command, tmp_path: Path) -> None:
    tokenizer = folders.byte_level()
    model = folders.model()
    spelled = json.loads(tokenizer.to_str())
    del spelled["model"]["vocab"]["ē"]  # how byte-level vocabularies write the byte 0x13
    folder = folders.write_folder(tmp_path / "m", model)
    (folder / "tokenizer.json").write_text(json.dumps(spelled))
    done = command("trace", folder, "--prompt", "bell \x13 end", "--steps", 1, "--json")
    assert done.code == 0
    assert "0x13" in done.err
    assert done.err.count("\n") == 1
    assert json.loads(done.out)["steps"]


def test_without_json_a_table(command: Command, tiny: Path) -> None:
    done = command("trace", tiny, "--prompt", PROMPT, "--steps", 2)
    assert (done.code, done.err) == (0, "")
    assert "prefill" in done.out
    assert "stopped: steps" in done.out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--prompt", ""), "prompt is empty"),
        (("--prompt", "cat " * 200), "128"),
        (("--prompt", "x", "--device", "toaster"), "toaster"),
    ],
)
def test_what_the_engine_refuses_is_one_sentence(
    command: Command, tiny: Path, tmp_path: Path, words: tuple[str, ...], named: str
) -> None:
    out = tmp_path / "a.dxt"
    done = command("trace", tiny, *words, "--steps", 2, "--json", "--out", out)
    assert (done.code, done.out) == (2, "")
    assert named in done.err
    assert done.err.count("\n") == 1
    assert not out.exists()


def test_models_that_cannot_be_opened(command: Command, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    for model in ("no-such-model", tmp_path / "bare", tmp_path / "missing.gguf"):
        for words in (("trace", model, "--prompt", "x", "--steps", 1), ("inspect", model)):
            done = command(*words)
            assert (done.code, done.out) == (2, ""), words
            assert done.err.count("\n") == 1


def test_check_passes_and_says_by_how_much(command: Command, tiny: Path) -> None:
    done = command("check", tiny, "--json")
    document = json.loads(done.out)
    assert list(document) == ["model", "passed", "checks", "warnings"]
    failed = [check for check in document["checks"] if not check["passed"]]
    assert (done.code, document["passed"], failed) == (0, True, [])
    assert all(c["measured"] <= c["tolerance"] for c in document["checks"])
    assert len(document["checks"]) >= 4
    table = command("check", tiny)
    assert "all checks passed" in table.out


def test_a_failed_check_is_exit_1(
    command: Command, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from explorer.engine.selftest import selfcheck
    from explorer.trace.card import Check

    bad = Check(name="rows", passed=False, measured=2.0, tolerance=1.0)
    good = Check(name="mask", passed=True, measured=0.0, tolerance=1.0)
    monkeypatch.setattr(selfcheck, "check", lambda *_: iter([good, bad]))
    done = command("check", tiny, "--json")
    assert (done.code, json.loads(done.out)["passed"]) == (1, False)
    assert "FAILED" in command("check", tiny).out


def test_inspect_counts_from_the_config(command: Command, tiny: Path) -> None:
    done = command("inspect", tiny, "--json")
    facts = json.loads(done.out)
    assert facts["parameters"] == sum(p.numel() for p in folders.model().parameters())
    assert (facts["layers"], facts["heads"], facts["kv_heads"]) == (3, 4, 2)
    assert facts["kv_bytes_per_token"]["float32"] == 2 * 3 * 2 * 16 * 4
    assert "parameters: " in command("inspect", tiny).out


def test_models_as_json_and_as_a_table(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from explorer.engine.library import catalog

    mine = {
        "name": "mine", "path": "/models/mine", "source": "folder", "architecture": "llama",
        "parameters": 134_515_008, "bytes": 98_362_432, "dtype": "Q4_1", "fits": None,
    }  # fmt: skip
    monkeypatch.setattr(catalog, "find", lambda: [mine])
    assert json.loads(command("models", "--json").out) == {"models": [mine]}
    heads, row = command("models").out.splitlines()
    assert heads.split()[:4] == ["name", "architecture", "parameters", "bytes"]
    cells = [cell.strip() for cell in row.split("  ") if cell.strip()]
    assert cells == [
        "mine", "llama", "134,515,008", "98,362,432", "Q4_1", "not known", "/models/mine",
    ]  # fmt: skip


def test_no_models_is_said_in_words(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from explorer.engine.library import catalog

    monkeypatch.setattr(catalog, "find", list)
    assert json.loads(command("models", "--json").out) == {"models": []}
    assert "No models were found" in command("models").out


def test_interventions_change_the_run_and_are_named(trace: Trace, command: Command) -> None:
    plain = trace()
    assert plain["interventions"] == []
    lines = ["silence 1.0", "silence 0.mlp", "cut *.2:*<-q-1", "silence 2", "silence 0.1=mean",
             "restore 1.2:3-4<-*", "scale 0.*:0.5"]  # fmt: skip
    options = [part for line in lines for part in f"--{line}".split()]
    changed = trace(*options)
    assert changed["interventions"] == lines
    assert column(changed, "phase") == ["prefill", "decode", "decode"]
    assert column(changed, "raw_probability") != column(plain, "raw_probability")


def test_a_cut_cell_is_zero_in_the_saved_run(
    trace: Trace, command: Command, tmp_path: Path
) -> None:
    saved = tmp_path / "a.dxt"
    trace("--cut", "1.3:2<-1", "--out", saved)
    assert json.loads(command("show", saved, "--json").out)["interventions"] == ["cut 1.3:2<-1"]
    assert "interventions: cut 1.3:2<-1" in command("show", saved).out
    maps = []
    for head in (3, 2):
        out = tmp_path / "a.npy"
        command("attention", saved, "--layer", 1, "--head", head, "--out", out)
        maps.append(np.load(out))
    assert maps[0][2, 1] == 0 < maps[1][2, 1]
    assert np.allclose(maps[0].sum(axis=1), 1, atol=1e-5)


def test_a_patch_is_taken_from_a_saved_run(command: Command, tiny: Path, tmp_path: Path) -> None:
    """The last stream at the last position is all that the first token is chosen by."""
    other, saved = tmp_path / "other.dxt", tmp_path / "patched.dxt"
    asked = ("trace", tiny, "--json", "--steps", 1, "--prompt")
    given = json.loads(command(*asked, "a cat and a dog", "--out", other).out)
    plain = json.loads(command(*asked, PROMPT).out)
    here, there = (len(run["tokens"]) - 2 for run in (plain, given))
    patch = f"2:{here}<-{there} of {other}"
    patched = json.loads(command(*asked, PROMPT, "--patch", patch, "--out", saved).out)
    step, wanted = patched["steps"][0], given["steps"][0]
    assert step["chosen_id"] == wanted["chosen_id"]
    assert step["raw_probability"] == pytest.approx(wanted["raw_probability"], rel=1e-5)
    assert step["raw_probability"] != pytest.approx(plain["steps"][0]["raw_probability"], rel=1e-3)
    ids = ",".join(str(token["id"]) for token in given["tokens"][:-1])
    assert patched["interventions"] == [f"patch 2:{here}<-{there} of {ids}"]
    assert (
        json.loads(command("show", saved, "--json").out)["interventions"]
        == (patched["interventions"])
    )
    done = command(*asked, PROMPT, "--patch", f"1.0:*<-{saved}")
    assert done.code == 2
    assert "This run is patched itself" in done.err
    done = command("trace", "copycat", *asked[2:], "one two", "--patch", f"1.0:0<-{other}")
    assert done.code == 2
    assert "A patch is taken from a run of the same model." in done.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--patch", "0.0:1<-no.dxt"), "no.dxt"),
        (("--patch", "0.0:900<-0 of 5,6"), "This run reads positions 0 to "),
        (("--patch", "0.0:1<-2 of 5,6"), "positions 0 to 1, no position 2"),
        (("--patch", "0.0"), "1.0:5<-3 of 12,7,44,9"),
        (("--silence", "3.0"), "There is no layer 3: this model has layers 0 to 2."),
        (("--silence", "0.4"), "Layer 0 has heads 0 to 3, no head 4."),
        (("--silence", "first"), "write layer and head as 1.0"),
        (("--cut", "0.0:900<-3"), "This run reads positions 0 to "),
        (("--cut", "0.0"), "write layer, head, query and key as 1.0:5<-3"),
        (("--allow", "0.0:3<-900"), "This run reads positions 0 to "),
        (("--scale", "0.0:much"), "write layer, head and factor as 1.0:2"),
    ],
)
def test_an_intervention_that_can_not_be_is_refused(
    command: Command, tiny: Path, words: tuple[str, str], sentence: str
) -> None:
    done = command("trace", tiny, "--prompt", PROMPT, "--steps", 2, *words)
    assert (done.code, done.out) == (2, "")
    assert sentence.lower() in done.err.lower()
    assert len(done.err.splitlines()) == 1


def test_check_proves_a_changed_run(command: Command, tiny: Path) -> None:
    done = command("check", tiny, "--json", "--silence", "1.2", "--cut", "0.*:*<-q-3+")
    document = json.loads(done.out)
    assert (done.code, document["passed"]) == (0, True)
    assert "cut_cells" in {check["name"] for check in document["checks"]}
