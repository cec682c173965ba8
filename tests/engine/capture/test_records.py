"""Which calls of a pass become maps, under which number, and which must not be drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from explorer.engine.capture import attention_sites, records
from explorer.engine.capture.probe import Call, Recorder
from explorer.engine.capture.records import Proven
from explorer.engine.passes.generate import generate
from explorer.engine.selftest import selftest
from explorer.trace.request import RunRequest, Sampling
from tests.engine.architectures import tiny
from tests.engine.tiny import runner_on

PROMPT = " ".join(str(5 + 7 * i % 83) for i in range(24))


def a_call(layer: int, keys: int, rows: int = 3, **options: Any) -> Call:
    key = torch.randn(1, 2, keys, 8)
    query = torch.randn(1, 4, rows, 8)
    return Call(layer, layer, query, key, None, rows > 1, 1.0, options)


def a_pass(calls: list[Call], layers: int, rows: int = 3, **changes: Any) -> Recorder:
    visited = changes.pop("visited", list(range(layers)))
    return Recorder(calls=calls, visited=visited, rows=rows, layers=layers, **changes)


def test_layers_without_attention_keep_their_number() -> None:
    found = records.records(a_pass([a_call(0, 3), a_call(2, 3)], 4, visited=[0, 1, 2]), 3)
    assert [(r.layer, r.kind) for r in found] == [
        (0, "qk"), (1, "absent"), (2, "qk"), (3, "absent"),
    ]  # fmt: skip
    assert found[1].reason == attention_sites.NO_ATTENTION
    assert found[3].reason == attention_sites.NOT_RUN


def test_layers_that_run_twice_are_numbered_as_they_ran() -> None:
    calls = [a_call(0, 3), a_call(1, 3), a_call(1, 3)]
    found = records.records(a_pass(calls, 2, visited=[0, 1, 1]), 3)
    assert [r.layer for r in found] == [0, 1, 2]
    np.testing.assert_array_equal(found[2].queries, calls[2].query[0].transpose(0, 1))


def test_two_calls_on_the_same_queries_and_keys_are_one_map() -> None:
    call = a_call(0, 3)
    again = Call(0, 0, call.query, call.key, call.mask, True, 1.0, {})
    assert len(records.records(a_pass([call, again], 1), 3)) == 1


def test_attention_over_anything_but_tokens_is_left_out() -> None:
    other = a_call(0, 2, rows=1)  # over a layer's own earlier outputs
    found = records.records(a_pass([a_call(0, 3), other], 1), 3)
    assert [r.kind for r in found] == ["qk"]


@pytest.mark.parametrize(("keys", "drawn"), [(9, True), (5, True), (6, False), (11, False)])
def test_keys_that_are_not_the_last_slots_are_not_drawn(keys: int, drawn: bool) -> None:
    recorder = a_pass([a_call(0, keys, rows=1)], 1, rows=1, spans=frozenset({(5, 4), (9, 0)}))
    record = records.records(recorder, 9)[0]
    assert record.kind == ("qk" if drawn else "absent")
    assert record.first_key == (9 - keys if drawn else 0)
    assert drawn or record.reason == records.NOT_TOKENS


def test_what_was_not_proven_is_not_drawn() -> None:
    cached = a_pass([a_call(0, 9, 1), a_call(1, 9, 1), a_call(2, 9, 1)], 3, rows=1)
    proven = Proven(frozenset({0, 1}), frozenset({0}))
    found = records.records(cached, 9, proven=proven)
    assert [r.reason for r in found] == ["", records.NOT_STEADY, records.NOT_EXACT]


def test_records_do_not_share_memory_with_the_cache() -> None:
    call = Call(0, 0, torch.randn(1, 4, 1, 8), torch.randn(1, 1, 9, 8), None, False, 1.0, {})
    record = records.records(a_pass([call], 1, rows=1), 9)[0]
    assert record.keys is not None
    before = record.keys.copy()
    call.key.zero_()
    np.testing.assert_array_equal(record.keys, before)


def test_the_models_own_maps_say_how_they_were_got_and_what_is_masked() -> None:
    runner = runner_on(tiny("gpt_neo"))
    selftest.run(runner)
    kept: list[Any] = []
    generate(
        runner,
        runner.prompt(RunRequest(prompt=PROMPT)),
        (),
        2,
        Sampling,
        lambda s, t: kept.append(s),
    )
    whole, row = kept[0].layers[1], kept[1].layers[1]
    assert whole.kind == row.kind == "map"
    assert whole.reason == records.OWN_MAP
    behind = np.subtract.outer(np.arange(24), np.arange(24))
    np.testing.assert_array_equal(whole.mask.allowed(), (behind >= 0) & (behind < 16))
    assert row.weights.shape == (4, 1, 25)
    np.testing.assert_array_equal(row.mask.allowed()[0], np.arange(25) > 8)


def test_sinks_that_differ_by_token_come_as_recorded_maps() -> None:
    runner = runner_on(tiny("inkling2_text"))
    selftest.run(runner)
    kept: list[Any] = []
    generate(
        runner,
        runner.prompt(RunRequest(prompt=PROMPT)),
        (),
        2,
        Sampling,
        lambda s, t: kept.append(s),
    )
    assert [r.reason for r in kept[1].layers] == [records.CALL_MAP] * 4
    assert (kept[0].layers[0].weights.sum(axis=2) < 1).all()


@pytest.mark.parametrize("bad", [[np.nan], [np.inf], [np.inf, -np.inf], [-np.inf]])
def test_one_number_that_is_none_is_found_and_large_ones_are_left(bad: list[float]) -> None:
    whole = a_call(0, 3)
    whole.query[:] = 3e38  # their sum is infinite in float32
    kept, lost = a_call(1, 3), a_call(2, 3)
    lost.key.view(-1)[: len(bad)] = torch.tensor(bad)
    found = records.records(a_pass([whole, kept, lost], 3), 3)
    assert [r.kind for r in found] == ["qk", "qk", "absent"]
    assert found[2].reason == records.NOT_NUMBERS


def test_recorded_weights_stand_at_the_slots_of_their_keys() -> None:
    call = a_call(0, 5, rows=1)
    call.weights = torch.rand(1, 4, 1, 5)
    slots = np.array([0, 1, 6, 7, 8])  # two sinks and the last three of nine
    recorder = a_pass([call], 1, rows=1, spans=frozenset({(5, 4)}), key_slots=slots)
    recorder.map_modules = frozenset({0})
    record = records.records(recorder, 9)[0]
    assert (record.kind, record.first_key, record.evicted) == ("map", 0, (2, 6))
    assert record.weights is not None
    np.testing.assert_array_equal(record.weights[..., slots], call.weights[0].numpy())
    assert not record.weights[..., 2:6].any()
