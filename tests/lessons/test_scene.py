"""Scenes: written by hand in three lines, by the program in full, and refused with the line."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.lessons.scene import (
    ExperimentWish,
    ForcedToken,
    Scene,
    SceneView,
    read_scene,
    write_scene,
)
from explorer.lessons.toml_lines import LessonFileError
from explorer.trace.batch import BatchRequest
from explorer.trace.interventions.context_policy import ContextPolicy
from explorer.trace.interventions.kinds import Silence
from explorer.trace.request import RunRequest, Sampling, Stops
from tests.lessons.example import SCENE

FULL = Scene(
    model="smollm2",
    prompt="a \"quoted\" 'text'\n\twith a tab and a \\ and é",
    chat=True,
    special_as_text=True,
    causal_mask=False,
    cache=False,
    interventions=("silence 1.0", "cut *.2:*<-q-1"),
    padding="left",
    pad=3,
    sampling=Sampling(greedy=False, temperature=1.5, top_k=3, seed=2**40),
    stops=Stops(end_tokens=False, strings=("a", "\n"), tokens=4),
    run=7,
    force=(ForcedToken(step=1, token=" x"), ForcedToken(step=2, token=77)),
    step=2,
    layer=1,
    head=3,
    query=4,
    key=0,
    compare=True,
    experiments=(ExperimentWish(name="search", length=3), ExperimentWish(name="prefix")),
    batch=BatchRequest(prompts=("a", "b c"), padding="right", wrong=("mask",), loss=True),
    view=SceneView(
        shown=("attention", "timings"),
        in_front=("attention",),
        enlarged="attention",
        theme="dark",
        zoom=1.25,
        choices={"attention": {"scale": "max", "x0": 1.0}},
    ),
)


def test_three_lines_are_a_scene() -> None:
    scene = read_scene(SCENE, "three.toml")
    assert scene == Scene(model="copycat", prompt="red fish blue bird red fish", run=2)


def test_a_scene_that_was_written_reads_the_same() -> None:
    assert read_scene(write_scene(FULL), "full.toml") == FULL
    assert write_scene(Scene()) == "version = 1\n"


@pytest.mark.parametrize("name", [n for n in Scene.__struct_fields__ if n != "version"])
def test_every_field_survives_by_itself(name: str) -> None:
    needs = {"force": {"run": 7}, "step": {"run": 7}, "pad": {"padding": "left"}}
    scene = msgspec.structs.replace(Scene(), **{name: getattr(FULL, name)}, **needs.get(name, {}))
    assert read_scene(write_scene(scene), "one.toml") == scene


def test_what_a_run_is_compared_with_is_named_if_it_is_not_the_mask() -> None:
    text = 'interventions = ["silence 0.1"]\ncompare = "interventions"'
    scene = read_scene(text, "one.toml")
    assert (scene.compare_of, scene.saved_view.compare_of) == ("interventions", "interventions")
    assert scene.saved_view.compare
    assert read_scene(write_scene(scene), "again.toml") == scene
    assert FULL.compare_of == "mask"


def test_its_request_keeps_the_open_model() -> None:
    base = RunRequest(model="/somewhere/model", dtype="float16", pad=9, padding="right")
    request = FULL.request(base)
    assert (request.model, request.dtype) == ("/somewhere/model", "float16")
    assert (request.padding, request.pad, request.causal_mask) == ("left", 3, False)
    assert Scene(prompt="x").request(base).padding is None


def test_a_setting_that_only_drawing_has_means_that_tokens_are_drawn() -> None:
    assert not read_scene("sampling = { temperature = 0.5 }", "x").sampling.greedy
    assert read_scene("sampling = { seed = 4 }", "x").sampling.greedy
    assert read_scene("sampling = { top_k = 4, greedy = true }", "x").sampling.greedy


BAD = [
    ('modl = "x"', 1, "Did you mean “model”?"),
    ('\nrun = "x"', 2, "“run” must be a whole number, not text."),
    ("\n\nrun = -1", 3, "of at least 0"),
    ('model = "a/b"', 1, "no path"),
    ('model = "..\\\\x"', 1, "no path"),
    ('model = "weights.gguf"', 1, "no path"),
    ("run = 3\n\n[sampling]\ntop_k = -1", 3, "Top-k"),
    ("[sampling]\n\ntopk = 3", 3, "Did you mean “top_k”?"),
    ("[stops]\nstring = []", 2, "Did you mean “strings”?"),
    ('padding = "up"', 1, "none, left, right"),
    ('run = 1\ncompare = "interventions"', 2, "no “interventions”"),
    ("pad = 3", 1, "padding"),
    ('prompt = """\na\nb"""\nchat = 1', 4, "true or false"),
    ("run = 1\nrun = 2", 2, "not valid TOML"),
    ("run = [", 1, "not valid TOML"),
    ('experiments = ["prefix",\n "seach"]', 2, "must be one of: prefix"),
    ("step = 5\nrun = 2", 1, "below “run”"),
    ("force = [{ step = 3, token = 1 }]", 1, "below “run”"),
    ("batch = { prompts = [] }", 1, "1 to 16"),
    ('[batch]\nprompts = ["a"]\nside = "left"', 3, "“side”"),
    ("[view]\nzoom = 9", 2, "from 0.75 to 2.5"),
    ("[view]\nzoom = 0.2", 2, "from 0.75 to 2.5"),
    ("[view]\nzoom = nan", 2, "from 0.75 to 2.5"),
    ('[view]\n\nshown = ["atention"]', 3, "Did you mean “attention”?"),
    ('[view]\nin_front = ["model",\n"next-tokens"]', 3, "Did you mean “next-token”?"),
    ('[view]\nin_front = "attention"', 2, 'write ["attention"]'),
    ('[view]\nenlarged = "xyz"', 2, "There are: attention,"),
    ('[view]\ntheme = "drak"', 2, "Did you mean “dark”?"),
    ("[view.choices]\nmodell = {}", 2, "Did you mean “model”?"),
    ("version = 2", 1, "must be one of: 1"),
    ('\n[context]\nname = "window"', 2, "the policy “window” needs “tokens”: 1 or more."),
    ('[context]\nname = "sinks"\ntokens = 2\nsinks = 4', 1, "“tokens”: more than its 4 sinks."),
    ("a = " + "[" * 50 + "]" * 50, 1, "deep"),
    ("a = " + "[" * 100_000, 1, "deep"),
    ("\n" + "a." * 60_000 + "b = 1", 2, "too long"),
    ("x = { " + "a . " * 40_000 + "b = 1 }", 1, "too long"),
    ("[" + "'a'." * 40_000 + "b]", 1, "too long"),
    ("#" * 200_001, 1, "more than 200,000"),
]


@pytest.mark.parametrize(("text", "line", "words"), BAD, ids=[b[0][:20] for b in BAD])
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(LessonFileError) as refused:
        read_scene(text, "bad.toml")
    assert str(refused.value).startswith(f"bad.toml, line {line}: ")
    assert words in str(refused.value)


@given(st.text(max_size=40), st.integers(0, 300), st.integers(0, 40))
def test_a_damaged_scene_is_read_or_refused(junk: str, at: int, cut: int) -> None:
    text = write_scene(FULL)
    line = 1
    with contextlib.suppress(LessonFileError):
        try:
            read_scene(text[:at] + junk + text[at + cut :], "damaged.toml")
        except LessonFileError as refused:
            line = refused.line
            raise
    assert 1 <= line <= text.count("\n") + junk.count("\n") + 2


def test_interventions_are_lines_and_a_wrong_one_is_named() -> None:
    scene = read_scene('interventions = ["silence 1.0"]', "one.toml")
    assert scene.request(RunRequest()).interventions == (Silence(layer=1, head=0),)
    assert (scene.needed_form, Scene().needed_form) == ("float32", "")
    moved = ContextPolicy(name="sinks", tokens=8, sinks=2, distances="cache")
    assert Scene(context=moved).needed_form == "float32", "llama.cpp can't count so"
    assert Scene(context=msgspec.structs.replace(moved, distances="text")).needed_form == ""
    assert Scene().request(scene.request(RunRequest())).interventions == ()
    with pytest.raises(LessonFileError, match="no intervention"):
        read_scene('interventions = ["stop 1.0"]', "one.toml")
