"""`trace --context-policy`: what a long text may read, run for real."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from explorer.cli import client
from explorer.figures.attention.map_blocks import ABSENT
from explorer.figures.attention.maps import full_map
from explorer.trace.files import dxt
from tests.cli.conftest import Done
from tests.engine import folders
from tests.engine.local_engine import LocalEngine

Command = Callable[..., Done]
IDS = tuple(range(10, 34))
STEPS = 4


@pytest.fixture(autouse=True)
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())


@pytest.fixture(scope="module")
def model() -> Any:
    return folders.model()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, model: Any) -> Path:
    return folders.write_folder(tmp_path_factory.mktemp("tiny"), model)


def best_logits(
    model: Any, visible: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> list[tuple[int, float]]:
    """Greedy steps of the model itself, each over the whole text, with a mask of its own."""
    model.set_attn_implementation("eager")
    ids, found = list(IDS), []
    for _ in range(STEPS):
        place = np.arange(len(ids))
        open_ = visible(place[:, None], place[None]) & (place[None] <= place[:, None])
        mask = torch.where(torch.from_numpy(open_), 0.0, torch.finfo(torch.float32).min)
        with torch.inference_mode():
            logits = model(torch.tensor([ids]), attention_mask=mask[None, None]).logits[0, -1]
        ids.append(int(logits.argmax()))
        found.append((ids[-1], float(logits.max())))
    return found


def traced(command: Command, folder: Path, *words: object) -> dict[str, Any]:
    ids = ",".join(map(str, IDS))
    done = command(
        "trace", folder, "--input-ids", ids, "--steps", STEPS, "--top", 1, "--json", *words
    )
    assert (done.code, done.err) == (0, "")
    document: dict[str, Any] = json.loads(done.out)
    return document


def best(document: dict[str, Any]) -> list[tuple[int, float]]:
    return [(one["top"][0]["id"], one["top"][0]["logit"]) for one in document["steps"]]


@pytest.mark.parametrize(("policy", "sinks"), [("window", 0), ("sinks", 2)])
def test_only_what_is_kept_is_read(
    command: Command, tiny: Path, model: Any, policy: str, sinks: int
) -> None:
    more = ("--sinks", sinks) if sinks else ()
    document = traced(command, tiny, "--context-policy", policy, "--window", 8, *more)
    ours = best(document)
    expected = best_logits(model, lambda q, k: (q - k < 8 - sinks) | (k < sinks))
    assert [token for token, _ in ours] == [token for token, _ in expected]
    assert [x for _, x in ours] == pytest.approx([x for _, x in expected], abs=1e-4)
    assert document["context_policy"] == {"policy": policy, "window": 8, "sinks": sinks}
    whole = best(traced(command, tiny))
    assert abs(ours[0][1] - whole[0][1]) > 1e-3, "the whole text is something else"
    without = best(traced(command, tiny, "--no-cache", "--context-policy", policy, "--window", 8,
                          *more))  # fmt: skip
    assert [x for _, x in ours] == pytest.approx([x for _, x in without], abs=1e-4)


def test_a_models_own_window_stays(command: Command, tmp_path: Path) -> None:
    own = folders.write_folder(tmp_path, folders.model("mistral", sliding_window=6))

    def logit(*words: object) -> float:
        return best(traced(command, own, *words))[0][1]

    plain = logit()
    wider, narrower = (logit("--context-policy", "window", "--window", n) for n in (9, 4))
    with_sinks = logit("--context-policy", "sinks", "--window", 9)
    assert wider == pytest.approx(plain, abs=1e-4)
    assert with_sinks != pytest.approx(plain, abs=1e-4), "5 of 9 are the last ones"
    assert narrower != pytest.approx(plain, abs=1e-4)


def test_the_oldest_turns_are_dropped_and_the_system_message_stays(
    command: Command, tiny: Path, tmp_path: Path
) -> None:
    talk = [{"role": "system", "content": "be kind"}]
    for number in range(5):
        talk += [
            {"role": "user", "content": f"the cat sat on {number}"},
            {"role": "assistant", "content": "and the dog"},
        ]
    talk.append({"role": "user", "content": "the mat"})
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(talk))
    words = ("trace", tiny, "--messages", file, "--steps", 3, "--json", "--context-policy")
    done = command(*words, "drop-turns", "--window", 64)
    document = json.loads(done.out)
    assert done.code == 0
    assert len(document["tokens"]) - 1 <= 64, "the last token is not read"
    places = [turn["message"] for turn in document["turns"]]
    first = places[1]
    assert places == [0, *range(first, 12), None]
    assert first > 1
    assert talk[first]["role"] == "user"
    assert f"{first - 1} messages were left out" in done.err

    short = command(*words, "drop-turns", "--window", 12)
    assert short.code == 2
    assert "The last turn takes" in short.err
    assert command(*words, "refuse").code == 2, "more than the model reads"


def test_distances_counted_in_the_cache_go_on_past_the_context(
    command: Command, tiny: Path
) -> None:
    ids = ",".join(map(str, range(10, 130)))
    words = ("trace", tiny, "--input-ids", ids, "--steps", 14, "--json", "--context-policy",
             "sinks", "--window", 16)  # fmt: skip
    document = json.loads(command(*words, "--sink-distances", "cache").out)
    assert (document["stop_reason"], len(document["steps"])) == ("steps", 14)
    assert document["context_policy"]["sink_distances"] == "cache"
    text = json.loads(command(*words).out)
    assert (text["stop_reason"], len(text["steps"])) == ("context", 9)
    plain = [word for word in words if word != "--json"]
    said = "context policy sinks, 16 tokens, 4 of them sinks"
    assert f"{said}\n" in command(*plain).out
    assert f"{said}, distances counted in the cache\n" in (
        command(*plain, "--sink-distances", "cache").out
    )


@pytest.mark.parametrize(
    ("words", "room"), [(("--window", 64, "--add-bos"), 64), (("--position-offset", 70), 58)]
)
def test_a_start_token_and_an_offset_take_room_too(
    command: Command, tiny: Path, tmp_path: Path, words: tuple[object, ...], room: int
) -> None:
    talk = [
        {"role": role, "content": f"the cat sat on {number}"}
        for number in range(5)
        for role in ("user", "assistant")
    ]
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([*talk, {"role": "user", "content": "the mat"}]))
    done = command("trace", tiny, "--messages", file, "--steps", 1, "--json",
                   "--context-policy", "drop-turns", *words)  # fmt: skip
    document = json.loads(done.out)
    assert done.code == 0
    assert room - 22 < document["prompt_tokens"] <= room, "not a turn too many is left out"
    assert "messages were left out" in done.err


def test_the_run_goes_on_when_the_oldest_turns_are_left_out(
    command: Command, tiny: Path, model: Any, tmp_path: Path
) -> None:
    talk = [{"role": "system", "content": "be kind"}]
    for number in range(2):
        talk += [
            {"role": "user", "content": f"the cat sat on {number}"},
            {"role": "assistant", "content": "and the dog"},
        ]
    talk.append({"role": "user", "content": "the mat"})
    file, out = tmp_path / "talk.json", tmp_path / "run.dxt"
    file.write_text(json.dumps(talk))
    tokenizer = AutoTokenizer.from_pretrained(tiny)

    def ids_of(messages: list[dict[str, str]]) -> list[int]:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    without = [ids_of([talk[0], *talk[1 + 2 * gone :]]) for gone in range(3)]
    limit, steps = len(without[0]) + 3, len(without[0]) - len(without[2]) + 8
    done = command("trace", tiny, "--messages", file, "--steps", steps, "--json", "--out", out,
                   "--context-policy", "drop-turns", "--window", limit)  # fmt: skip
    assert done.code == 0
    document = json.loads(done.out)
    trace = dxt.load(out)
    assert document["stop_reason"] == "context", "the last turn can't be left out"
    model.set_attn_implementation("eager")
    dropped = 0
    for index, step in enumerate(trace.steps):
        while len(without[dropped]) + index > limit:
            dropped += 1
        ids = [*without[dropped], *trace.chosen_ids[:index]]
        with torch.inference_mode():
            found = model(torch.tensor([ids]), output_attentions=True)
        np.testing.assert_allclose(step.logits, found.logits[0, -1].numpy(), atol=1e-4)
        gone = len(without[0]) - len(without[dropped])
        assert sum(end - first for first, end in step.left_out) == gone
        kept = [slot for slot in range(len(without[0]) + index)
                if not any(first <= slot < end for first, end in step.left_out)]  # fmt: skip
        whole = full_map(trace, index, 1, 2)
        expected = found.attentions[1][0, 2, -1].numpy()
        np.testing.assert_allclose(whole.weights[-1][kept], expected, atol=1e-5)
        assert (np.delete(whole.kinds[-1], kept) == ABSENT).all()
        assert step.cache_tokens == len(ids)
    assert dropped == 2
    assert len({step.left_out for step in trace.steps}) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--window", 5), "Choose one"),
        (("--context-policy", "window"), "needs --window"),
        (("--context-policy", "window", "--window", 5, "--sink-distances", "cache"), "choose that"),
        (("--context-policy", "window", "--window", 5, "--sinks", 2), "Leave it out"),
        (("--context-policy", "sinks", "--window", 4), "leaves no room beside 4 sinks"),
        (("--context-policy", "window", "--window", 5, "--no-causal-mask"), "the causal mask"),
        (("--context-policy", "drop-turns"), "needs a conversation"),
        (("--context-policy", "refuse", "--window", 2), "the limit of this run is 2"),
        (
            ("--context-policy", "sinks", "--window", 9, "--padding", "left", "--pad", 2),
            "can't be combined with padding",
        ),
        (
            ("--context-policy", "window", "--window", 9, "--padding", "right", "--pad", 2),
            "can't be combined with right padding",
        ),
    ],
)
def test_bad_input_is_one_sentence(
    command: Command, tiny: Path, words: tuple[object, ...], said: str
) -> None:
    done = command("trace", tiny, "--prompt", "the cat sat", "--steps", 1, *words)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1
