"""The stages inside an attention kernel, from the queries and keys that it received."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from explorer.engine.capture.probe import Call
from explorer.engine.inside.walk.projections import Before, Sizes, taken_apart
from explorer.engine.inside.walk.rotation import found_turn
from explorer.engine.inside.walk.stages import difference, stage
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.selftest import measured_gaps
from explorer.trace import attention
from explorer.trace.inside.walk import LayerStage


@dataclass(frozen=True, slots=True)
class Place:
    """Where a token stands, and what the model knows of turning by position."""

    row: int  # of the pass
    position: int
    frequencies: Sequence[np.ndarray]  # tables of radians a position
    dtype: str


def kernel_stages(
    done: ForwardPass, layer: int, place: Place, before: Sequence[LayerStage]
) -> Iterator[LayerStage]:
    """Queries after RoPE to the heads' outputs, at one row of the pass; weights alone without one.

    `before`: the stages that led here, to see what RoPE changed.  Scores and weights are computed
    from the recorded queries and keys; that they are the kernel's own is shown by its output.
    """
    done.recorder.calls = [call for call in done.recorder.calls if call.layer == layer]
    found = [one for one in measured_gaps.drawn(done) if one.record.layer == layer]
    if len(found) != 1:
        return
    call = found[0].call
    if call is None:  # the model gave its weights, and nothing else
        yield from _of_keys(found[0], place.row)
        return
    row, heads, key_heads = place.row, call.query.shape[1], call.key.shape[1]
    own = call.key.shape[2] - call.query.shape[2] + row  # the key of this very token
    value = None if call.value is None else _numbers(call.value[0, :, own])
    sizes = Sizes(heads, key_heads, call.query.shape[3], 0 if value is None else value.shape[1])
    was, more = taken_apart(before, sizes, value)
    yield from more
    for name, tensor in (("Q", call.query[0, :, row]), ("K", call.key[0, :, own])):
        yield _turned(name, _numbers(tensor), was.get(name), place)
    if value is not None:
        words = f"what other tokens get: {key_heads} heads of {value.shape[1]}"
        yield stage("V of the kernel", words, value)
    weights = None
    for one in _of_keys(found[0], row):
        weights = one.numbers if one.name == "softmax" else weights
        yield one
    if call.output is not None and weights is not None:
        yield _mixed(call, weights, row)


def _of_keys(found: measured_gaps.PassMap, row: int) -> Iterator[LayerStage]:
    """(heads, keys): from the scores to the attention weights."""
    record, keys = found.record, found.keys
    heads, rows = record.heads, slice(row, row + 1)

    def of_keys(name: str, words: str, numbers: np.ndarray) -> LayerStage:
        return stage(name, words, numbers, first_key=record.first_key)

    weights = _each(heads, lambda head: found.weights(head, rows))
    if record.kind != "qk":
        yield of_keys("softmax", "attention weights, as the model itself gave them", weights)
        return
    plain = replace(record, softcap=0.0, bias=None)
    scores = _each(heads, lambda head: attention.scores(plain, keys, head, rows))
    shared = heads // keys.shape[1]
    grouped = "" if shared == 1 else f", {shared} query heads per key head"
    words = f"q · k × {record.scaling:.6g}, {keys.shape[0]:,} keys{grouped}"
    yield of_keys("scores", words, scores)
    if record.softcap:
        scores = np.tanh(scores / record.softcap) * record.softcap
        words = f"{record.softcap:g} · tanh(score / {record.softcap:g})"
        yield of_keys("soft cap", words, scores)
    if record.bias is not None:
        scores = _each(heads, lambda head: attention.scores(record, keys, head, rows))
        moved = None if found.call is None else found.call.bias
        if moved is None:
            yield of_keys("position bias", "score + a bias by distance", scores)
        else:
            words = f"keys 0 to {moved.shape[3] - 1:,} scored again, the query rotated back"
            yield of_keys("moved sinks", words, scores)
    mask = record.mask
    if mask is not None:
        masked = scores + _each(heads, lambda head: mask.additive(rows, head))
        count = int(np.isfinite(masked[0]).sum())
        words = f"-∞ where hidden: {count:,} of {masked.shape[1]:,} keys left"
        yield of_keys("mask", words, masked)
    if record.sinks is not None:
        words = "one more score a head, which takes weight and gives nothing"
        yield stage("sinks", words, record.sinks)
    yield of_keys("softmax", "exp(score) / Σ exp(score), each head by itself", weights)


def _mixed(call: Call, weights: np.ndarray, row: int) -> LayerStage:
    """The heads' outputs as the kernel gave them, against weights · V."""
    assert call.output is not None
    output = call.output[0, row].float().cpu().numpy()  # (H, d_v)
    gap = None
    if call.value is not None:
        value = call.value[0].float().cpu().numpy()  # (H_kv, K, d_v)
        group = len(weights) // len(value)
        made = np.stack([weights[h] @ value[h // group] for h in range(len(weights))])
        gap = difference(made, output)
    words = f"Σ weight · v over {weights.shape[1]:,} keys, {len(weights)} heads"
    return stage("weights · V", words, output, gap=gap)


def _turned(name: str, after: np.ndarray, before: Before | None, place: Place) -> LayerStage:
    """A head's vectors as the kernel received them, and what RoPE did to them."""
    words = f"{after.shape[0]} heads of {after.shape[1]}"
    received = f"{name} of the kernel"
    if before is None:
        return stage(received, f"as the kernel receives it: {words}", after)
    old = before.numbers
    if np.allclose(old, after, rtol=1e-5, atol=1e-7):
        return stage(received, f"not turned by position here: {words}", after, source=before.source)
    turn = found_turn(old, after, place.position, place.frequencies, place.dtype)
    if turn is None:
        said = f"changed in a way that is not known: {words}"
        return stage(received, said, after, source=before.source)
    part = "pairs" if 2 * turn.pairs == after.shape[1] else f"{turn.pairs} pairs"
    lengths = "lengths kept" if abs(turn.factor - 1) < 1e-3 else f"lengths × {turn.factor:.4g}"
    said = f"{part} turned by position {turn.position:,}, {lengths}: {words}"
    return stage(f"{name} after RoPE", said, after, gap=turn.gap, source=before.source, turn=turn)


def _numbers(tensor: torch.Tensor) -> np.ndarray:
    found: np.ndarray = tensor.detach().float().cpu().numpy()
    return found


def _each(heads: int, one: Callable[[int], np.ndarray]) -> np.ndarray:
    """(H, K) of a function from a head to (1, K)."""
    return np.concatenate([one(head) for head in range(heads)])
