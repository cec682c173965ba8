"""The stages inside an attention kernel, from the queries and keys that it received."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from explorer.engine.capture.probe import Call
from explorer.engine.inside.walk.stages import difference, stage
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.selftest import measured_gaps
from explorer.trace import attention
from explorer.trace.inside.walk import LayerStage


def kernel_stages(
    done: ForwardPass, layer: int, row: int, before: Sequence[LayerStage]
) -> Iterator[LayerStage]:
    """Queries after RoPE to the heads' outputs, at one row of the pass; nothing without a kernel.

    `before`: the stages that led here, to see what RoPE changed.  Scores and weights are computed
    from the recorded queries and keys; that they are the kernel's own is shown by its output.
    """
    done.recorder.calls = [call for call in done.recorder.calls if call.layer == layer]
    found = [one for one in measured_gaps.drawn(done) if one.record.layer == layer]
    if len(found) != 1 or found[0].call is None:
        return
    record, call, keys = found[0].record, found[0].call, found[0].keys
    heads, width = call.query.shape[1], call.query.shape[3]
    key_heads = call.key.shape[1]
    yield from _turned("Q", call.query[0, :, row], before, f"{heads} heads of {width}")
    own = call.key.shape[2] - call.query.shape[2] + row  # the key of this very token
    yield from _turned("K", call.key[0, :, own], before, f"{key_heads} heads of {width}")
    if call.value is not None:
        words = f"what other tokens get: {key_heads} heads of {call.value.shape[3]}"
        yield stage("V of the kernel", words, call.value[0, :, own])
    if record.kind != "qk":
        weights = np.stack(
            [found[0].weights(head, slice(row, row + 1))[0] for head in range(heads)]
        )
        yield stage("softmax", "attention weights, as the model itself gave them", weights)
    else:
        rows = slice(row, row + 1)
        plain = replace(record, softcap=0.0, bias=None)
        scores = _each(heads, lambda head: attention.scores(plain, keys, head, rows))
        shared = "" if heads == key_heads else f", {heads // key_heads} query heads per key head"
        yield stage(
            "scores", f"q · k × {record.scaling:.6g}, {keys.shape[0]:,} keys{shared}", scores
        )
        if record.softcap:
            scores = np.tanh(scores / record.softcap) * record.softcap
            words = f"{record.softcap:g} · tanh(score / {record.softcap:g})"
            yield stage("soft cap", words, scores)
        if record.bias is not None:
            scores = _each(heads, lambda head: attention.scores(record, keys, head, rows))
            yield stage("position bias", "score + a bias by distance", scores)
        mask = record.mask
        if mask is not None:
            hidden = np.concatenate([mask.additive(rows, head) for head in range(heads)])
            masked = scores + hidden
            count = int(np.isfinite(masked[0]).sum())
            yield stage("mask", f"-∞ where hidden: {count:,} of {masked.shape[1]:,} keys left",
                        masked)  # fmt: skip
        if record.sinks is not None:
            yield stage("sinks", "one more score a head, which takes weight and gives nothing",
                        record.sinks)  # fmt: skip
        weights = _each(heads, lambda head: found[0].weights(head, rows))
        yield stage("softmax", "exp(score) / Σ exp(score), each head by itself", weights)
    if call.output is not None:
        yield _mixed(call, weights, row)


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


def _turned(
    name: str, after: torch.Tensor, before: Sequence[LayerStage], words: str
) -> Iterator[LayerStage]:
    """A head's vectors as the kernel received them; RoPE changes no length."""
    flat = after.float().cpu().numpy()
    last = next((one for one in reversed(before) if one.name in (name, f"{name} norm")), None)
    numbers = None if last is None else last.numbers
    if numbers is None or numbers.size != flat.size:
        yield stage(f"{name} of the kernel", f"as the kernel receives it: {words}", flat)
        return
    old = numbers.reshape(flat.shape)
    if np.allclose(old, flat, rtol=1e-5, atol=1e-7):
        yield stage(f"{name} of the kernel", f"not turned by position here: {words}", flat)
        return
    new, was = (np.linalg.norm(one, axis=-1) for one in (flat, old))
    factor = float(new.sum() / max(1e-30, float(was.sum())))
    off = difference(was * factor, new)
    said = "pairs turned by position"
    said += ", lengths kept" if abs(factor - 1) < 1e-3 else f", lengths × {factor:.4g}"
    kept = off < 1e-3
    said = said if kept else "changed by position"
    yield stage(f"{name} after RoPE", f"{said}: {words}", flat, gap=off if kept else None)


def _each(heads: int, one: object) -> np.ndarray:
    """(H, K) of a function from a head to (1, K)."""
    assert callable(one)
    return np.concatenate([np.asarray(one(head)) for head in range(heads)])
