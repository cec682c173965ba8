"""Live figures: the numbers of the panels, and never a made-up one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import explorer.lessons
from explorer.figures.cost import cache, timing
from explorer.figures.prediction import next_token
from explorer.lessons.expressions import parse
from explorer.lessons.figure_text import NOT_KNOWN, filled, in_words, joined, parse_text
from explorer.lessons.live_figures import NAMES
from explorer.lessons.quantities import NotKnown, Quantity, Value
from explorer.lessons.run_facts import RunFacts
from explorer.lessons.scene import ExperimentWish, Scene
from explorer.session.lesson_facts import PanelFunctions, facts_of
from explorer.trace.batch import BatchRequest
from explorer.trace.request import Sampling
from tests.engine.local_engine import LocalEngine
from tests.session.playing import Playing

SCENE = Scene(
    model="copycat",
    prompt=" red fish blue bird red fish",
    run=3,
    layer=1,
    sampling=Sampling(greedy=False, temperature=1.5, top_k=9),
    compare=True,
    experiments=(
        ExperimentWish(name="prefix"),
        ExperimentWish(name="search", length=2),
        ExperimentWish(name="samples", count=5, length=1),
        ExperimentWish(name="surprisal"),
        ExperimentWish(name="cache", tokens=3),
        ExperimentWish(name="recipe"),
    ),
    batch=BatchRequest(prompts=("red fish", "a b c d"), padding="right", wrong=("readout",)),
)
EMPTY = RunFacts(panels=PanelFunctions())


@pytest.fixture(scope="module")
def playing() -> Iterator[Playing]:
    playing = Playing(LocalEngine)
    assert playing.play(SCENE).problem == ""
    yield playing
    playing.session.close()


@pytest.fixture(scope="module")
def facts(playing: Playing) -> RunFacts:
    return facts_of(playing.state)


def value(source: str, facts: RunFacts) -> Value:
    return parse(source, NAMES).value(facts)


def number(source: str, facts: RunFacts) -> float:
    found = value(source, facts)
    assert isinstance(found, Quantity), found
    return float(found.value)


def test_probabilities_are_those_of_the_next_token_panel(facts: RunFacts) -> None:
    assert facts.trace is not None
    shown = next_token.chart(facts.trace, 2, facts.sampling, rows=5)
    for place, bar in enumerate(shown.bars[:3], 1):
        assert number(f"top_share({place})", facts) == pytest.approx(bar.raw, rel=1e-12)
        assert number(f"p({bar.token_id})", facts) == pytest.approx(bar.raw, rel=1e-12)
        assert number(f"p_after({bar.token_id})", facts) == pytest.approx(bar.final, rel=1e-12)
        assert number(f"rank({bar.token_id})", facts) == place
    assert number("kept", facts) == shown.kept == 9


def test_costs_are_those_of_their_panels(facts: RunFacts) -> None:
    assert facts.trace is not None
    shown, timed = cache.chart(facts.trace, 2), timing.chart(facts.trace, 2)
    assert number("kv_bytes", facts) == shown.measured_bytes == shown.formula_bytes
    assert number("kv_bytes_per_token * kv_tokens", facts) == shown.measured_bytes
    assert number("prefill_ms", facts) == timed.prefill_ms
    assert number("positions", facts) == timed.positions == 8
    assert number("positions_without_cache", facts) == timed.positions_without_cache == 21


def test_attention_is_the_recorded_map(facts: RunFacts) -> None:
    assert facts.trace is not None
    whole = facts.trace.weights(0, 1, 0)
    assert number("attention(5, 2)", facts) == pytest.approx(float(whole[5, 2]), abs=1e-6)
    other = facts.trace.weights(0, 0, 3)
    assert number("attention(4, 1, 0, 3)", facts) == pytest.approx(float(other[4, 1]), abs=1e-6)
    rows = [number(f"attention(6, {key})", facts) for key in range(7)]  # of a decode pass
    assert np.sum(rows) == pytest.approx(1, abs=1e-5)
    assert number("best_layer('induction')", facts) == 1


def test_a_text_is_the_token_with_or_without_its_space(facts: RunFacts) -> None:
    assert value("p('blue')", facts) == value("p(' blue')", facts)
    assert isinstance(value("p('nosuchtoken')", facts), NotKnown)


def arguments(name: str) -> str:
    count = NAMES[name].least
    return f"{name}({', '.join(['1'] * count)})" if count else name


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_made_up_where_nothing_was_measured(name: str) -> None:
    if name in ("when", "round", "abs", "max", "min"):
        return
    found = value(arguments(name), EMPTY)
    assert isinstance(found, NotKnown)
    assert found.reason.endswith(".")


def test_the_reason_for_a_missing_experiment_names_it() -> None:
    with_run = Scene(model="copycat", prompt="red fish", run=1)
    playing = Playing(LocalEngine)
    try:
        assert playing.play(with_run).finished
        found = value("greedy_p", facts_of(playing.state))
    finally:
        playing.session.close()
    assert found == NotKnown("The experiment “search” has not been run on this text.")


ODD = st.sampled_from(
    ["0", "1", "-1", "2.5", "999999999", "0 / 1", "''", "'red'", "'induction'", "'a' == 'b'",
     "surprisal(1)", "1 - 1", "999999999999999 * 999999999999999", "generated", "'\\n'"]
)  # fmt: skip


@given(st.sampled_from(sorted(NAMES)), st.lists(ODD, min_size=6, max_size=6))
def test_odd_values_give_a_value_or_a_reason(facts: RunFacts, name: str, values: list[str]) -> None:
    figure = NAMES[name]
    for count in {figure.least, figure.most}:
        source = f"{name}({', '.join(values[:count])})" if count else name
        found = value(source, facts)
        assert isinstance(found, Quantity | NotKnown)
        for form in ("", "%", ".2", "bytes", "ms", "count", "short", "nats", "exact"):
            assert isinstance(in_words(found, form, facts.panels.visible), str)


WORDS = [
    ("{p(' blue') * 0 + 0.123}", "12.3 %"),
    ("{0.5:%} and {{}}", "50.0 % and {}"),
    ("{1234.5:.1} {2048:bytes} {2:ms}", "1,234.5 2,048 bytes (2 KiB) 2 ms"),
    ("{1 < 2} {3 / 4} {10000000}", "yes 0.75 10,000,000"),
    ("{token(1)}", "␣fish"),
    ("{1 / 0}", NOT_KNOWN),
]


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_how_a_figure_is_worded(facts: RunFacts, text: str, words: str) -> None:
    assert joined(filled(parse_text(text, NAMES), facts, facts.panels.visible)) == words


def test_nothing_in_the_room_runs_text_as_code() -> None:
    folder = Path(explorer.lessons.__file__).parent
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name):
                assert node.id not in ("eval", "exec", "compile", "__import__", "getattr_static")
