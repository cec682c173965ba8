"""The script of a run does the same again, in a process that has never heard of this program."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Q

from explorer import sampling as chain
from explorer.notebooks import script
from explorer.notebooks.notebook_file import notebook
from explorer.notebooks.script import OnScreen, ScriptError
from explorer.trace.interventions.lines import read
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.trace import Trace
from tests.engine.folders import model, write_folder, write_gguf
from tests.notebooks import cells
from tests.notebooks.recorded import run

TOLERANCE = 1e-4
PROMPT = "one two three four five one two"
GREEDY = [Sampling()] * 3
SHARP = Sampling(
    greedy=False, temperature=1.7, top_k=40, top_p=0.97, min_p=0.001, repetition_penalty=1.3, seed=5
)
_LAYERS = {
    "gemma3_text": {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
}
WINDOWED = ("mistral", "gemma3_text")
OTHER_ORDER = ("top_p", "min_p", "temperature", "penalty", "top_k")


Told = dict[str, dict[str, Any]]  # what was printed, by the name of the run
Files = dict[str, tuple[Trace, OnScreen]]

_ALL_IN_TURN = """
import runpy, sys
import transformers
for file in sys.argv[1:]:
    runpy.run_path(file)
    transformers.AttentionInterface._global_mapping.pop("eager", None)  # as in a new process
    print("==")
"""


def repeated(sources: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """What each script prints last; one process runs all, for torch takes long to import."""
    files = [folder / f"{number}.py" for number in range(len(sources))]
    for file, source in zip(files, sources, strict=True):
        file.write_text(source, encoding="utf-8")
    command = [sys.executable, "-I", "-W", "error", "-c", _ALL_IN_TURN, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    told = done.stdout.split("\n==\n")[:-1]
    return [json.loads(one.splitlines()[-1]) for one in told]


def require_same(told: dict[str, Any], trace: Trace, seen: OnScreen) -> None:
    """Every token, every number on screen and the row of the map are the run's."""
    assert told["prompt_ids"] == [token.id for token in trace.prompt]
    assert told["chosen_ids"] == list(trace.chosen_ids)
    for index, (step, again) in enumerate(zip(trace.steps, told["steps"], strict=True)):
        known = chain.distribution(step.logits, step.sampling, trace.context_ids(index))
        ids = [row["id"] for row in again["top"]]
        assert len(ids) >= 10
        np.testing.assert_allclose(
            [row["before"] for row in again["top"]], known.raw[ids], atol=TOLERANCE
        )
        np.testing.assert_allclose(
            [row["after"] for row in again["top"]], known.final[ids], atol=TOLERANCE
        )
        assert again["u"] == step.draw.u
    query = told["attention"]["query"]
    np.testing.assert_allclose(told["attention"]["row"], row_of(trace, seen, query), atol=TOLERANCE)


def row_of(trace: Trace, seen: OnScreen, query: int) -> np.ndarray:
    """(K,) weights of one query in the pass that read it, zeros for keys that came later."""
    passes = trace.steps[: seen.step + 1]
    if trace.request.causal_mask:
        step = next(i for i, s in enumerate(passes) if query < trace.read_slots(i))
    else:
        step = seen.step
    row = query - trace.steps[step].first_slot
    found = trace.weights(step, seen.layer, seen.head, slice(row, row + 1))[0]
    return np.pad(found, (0, trace.read_slots(seen.step) - len(found)))


CASES: dict[str, tuple[RunRequest, list[Sampling], dict[int, int]]] = {
    "plain": (RunRequest(), GREEDY, {}),
    "mask off": (RunRequest(causal_mask=False), GREEDY, {}),
    "padded left": (RunRequest(padding="left", pad=4), GREEDY, {}),
    "padded right": (RunRequest(padding="right", pad=4), GREEDY, {}),
    "mask off, padded": (RunRequest(causal_mask=False, padding="left", pad=3), GREEDY, {}),
    "sampled": (RunRequest(), [SHARP] * 6, {}),
    "other settings on the way": (
        RunRequest(),
        [
            Sampling(),
            SHARP,
            Sampling(greedy=False, top_p=0.5, seed=9),
            Sampling(
                greedy=False, temperature=2, top_p=0.99, top_k=30, min_p=0.0005,
                repetition_penalty=0.8, order=OTHER_ORDER, seed=2**62,
            ),
        ],
        {},
    ),
    "greedy with a penalty": (RunRequest(), [Sampling(repetition_penalty=1.4)] * 3, {}),
    "forced": (RunRequest(), [SHARP] * 4, {1: 77}),
    "changed inside": (
        RunRequest(
            interventions=tuple(
                map(read, ["silence 1.1", "cut 1.*:4<-2", "cut *.0:*<-q-3+", "allow 1.0:6<-1",
                           "scale 0.*:0.5", "scale 1.2:3", "cut 1.3:5<-*"])
            )
        ),
        GREEDY,
        {},
    ),
    "a layer silenced, padded": (
        RunRequest(interventions=(read("silence 0"),), padding="left", pad=2), GREEDY, {}
    ),
    "a later token allowed": (RunRequest(interventions=(read("allow 1.*:2<-5"),)), GREEDY, {}),
}  # fmt: skip


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    found = {}
    for name, (request, samplings, forced) in CASES.items():
        asked = msgspec.structs.replace(request, model="copycat", prompt=PROMPT)
        found[name] = run(asked, samplings, forced)
    return found


def seen_of(trace: Trace) -> OnScreen:
    return OnScreen(step=len(trace.steps) - 1, layer=1, head=0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Runs of models in files of their own."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DECODER_EXPLORER_HOME", str(folder / "home"))
        file = write_gguf(folder / "tiny.gguf", model("llama", intermediate_size=256), Q.Q8_0)
        trace = run(RunRequest(model=str(file), prompt="the cat sat on"), [SHARP] * 2, {})
    found = {"gguf": (trace, OnScreen(step=1, layer=1, head=3))}
    for kind in WINDOWED:
        made = model(kind, sliding_window=4, **_LAYERS.get(kind, {}))
        request = RunRequest(
            model=str(write_folder(folder / kind, made)),
            prompt="the cat sat on the mat",
            chat=True,
            causal_mask=False,
        )
        found[kind] = run(request, GREEDY, {}), OnScreen(step=2, layer=1, head=1)
    return found


@pytest.fixture(scope="module")
def told(traces: dict[str, Trace], files: Files, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What the script of each run prints."""
    runs = {**{name: (t, seen_of(t)) for name, t in traces.items()}, **files}
    sources = [script.python(script.cells(t, t.card, seen)) for t, seen in runs.values()]
    assert not any("explorer" in one.replace("Decoder Explorer", "") for one in sources)
    answers = repeated(sources, tmp_path_factory.mktemp("scripts"))
    return dict(zip(runs, answers, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_the_script_repeats_the_run(name: str, traces: dict[str, Trace], told: Told) -> None:
    require_same(told[name], traces[name], seen_of(traces[name]))


def test_the_notebook_has_the_same_cells_and_runs(
    traces: dict[str, Trace], told: Told, tmp_path: Path
) -> None:
    trace = traces["sampled"]
    made = notebook(script.cells(trace, trace.card, seen_of(trace)))
    again = json.loads(cells.printed(made, tmp_path).splitlines()[-1])
    assert again == told["sampled"]


def test_a_gguf_file_is_repeated_by_its_file(files: Files, told: Told) -> None:
    trace, seen = files["gguf"]
    source = script.python(script.cells(trace, trace.card, seen))
    assert "GGUF_FILE = 'tiny.gguf'" in source
    assert "llama.cpp" not in source
    as_it_is = replace(trace, request=msgspec.structs.replace(trace.request, form="as-is"))
    said = script.python(script.cells(as_it_is, trace.card, seen))
    assert said.replace(script.AS_IT_IS, "") == source
    assert said != source
    require_same(told["gguf"], trace, seen)


@pytest.mark.parametrize("kind", WINDOWED)
def test_windows_look_both_ways_where_the_mask_is_off(kind: str, files: Files, told: Told) -> None:
    require_same(told[kind], *files[kind])


@pytest.mark.slow
@pytest.mark.smollm2
@pytest.mark.timeout(600)  # transformers takes minutes to dequantise it
def test_smollm2_and_a_chat_are_repeated(tmp_path: Path) -> None:
    request = RunRequest(model="smollm2", prompt="Name a colour.", chat=True)
    trace = run(request, [SHARP] * 2, {})
    seen = OnScreen(step=1, layer=17, head=3)
    source = script.python(script.cells(trace, trace.card, seen))
    (answer,) = repeated([source], tmp_path)
    require_same(answer, trace, seen)


def test_no_name_of_a_user_and_no_unknown_path_is_written(
    traces: dict[str, Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = traces["plain"]
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))

    def first_line(path: str) -> str:
        card = msgspec.structs.replace(trace.card, path=path)
        source = script.python(script.cells(trace, card, OnScreen()))
        return next(line for line in source.splitlines() if line.startswith("MODEL"))

    assert first_line("/home/ada/m/x") == "MODEL = os.path.expanduser('~/m/x')"
    hub = "/c/hub/models--HuggingFaceTB--SmolLM2-135M/snapshots/12ab"
    assert first_line(hub).startswith('MODEL = "HuggingFaceTB/SmolLM2-135M"')
    assert first_line("").startswith("MODEL = 'copycat'  # fill in")


def test_the_script_is_python_whatever_the_prompt(traces: dict[str, Trace]) -> None:
    for prompt in ('"""\nimport os', "a\\b'\"" * 60, "漢字\u2028\x00", "x " * 3000):
        trace = traces["plain"]
        asked = replace(trace, request=msgspec.structs.replace(trace.request, prompt=prompt))
        source = script.python(script.cells(asked, trace.card, OnScreen()))
        (value,) = (
            node.value
            for node in ast.parse(source).body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PROMPT"
        )
        assert ast.literal_eval(value) == prompt


def test_what_plain_transformers_cannot_do_is_refused(traces: dict[str, Trace]) -> None:
    trace = traces["mask off"]
    card = msgspec.structs.replace(trace.card, layer_kinds=("chunked", "full"), windows=(8, 0))
    with pytest.raises(ScriptError, match="Turn the causal mask on"):
        script.cells(replace(trace, card=card), card, OnScreen())
    for line in (
        "silence 0.mlp", "silence 0.1=mean", "restore *.*:1<-*", "patch 1.0:1<-1 of 1,2"
    ):  # fmt: skip
        changed = msgspec.structs.replace(trace.request, interventions=(read(line),))
        named = re.escape(line.partition(" of ")[0])
        with pytest.raises(ScriptError, match=f"can't be given '{named}'"):
            script.cells(replace(trace, request=changed), trace.card, OnScreen())
    with pytest.raises(ScriptError, match="Press Step"):
        script.cells(trace.truncated(0), card, OnScreen())
