"""No bytes from outside can hurt: what does not fit is refused in one sentence."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer.trace.files import dxt
from explorer.trace.trace import Trace
from tests.trace.runs import edited


@pytest.mark.parametrize("name", ["missing.dxt", ".", "nul\0.dxt"])
def test_a_file_that_cannot_be_opened(tmp_path: Path, name: str) -> None:
    with pytest.raises(dxt.DxtError):
        dxt.load(tmp_path / name)


@pytest.mark.parametrize("tenth", range(10))
def test_a_truncated_file_is_refused_in_one_sentence(saved: Path, tenth: int) -> None:
    whole = saved.read_bytes()
    saved.write_bytes(whole[: len(whole) * tenth // 10])
    with pytest.raises(dxt.DxtError) as refused:
        dxt.load(saved)
    assert "\n" not in str(refused.value)
    assert str(saved) in str(refused.value)


def test_flipped_bytes_never_crash(saved: Path) -> None:
    whole = saved.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    dice = random.Random(0)
    refused = 0
    for _ in range(600):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 1, 2, 8))):
            damaged[dice.randrange(8 + length)] = dice.randrange(256)
        saved.write_bytes(damaged)
        try:
            trace = dxt.load(saved)
        except dxt.DxtError:
            refused += 1
        else:
            _use(trace)
    assert refused > 300


def _use(trace: Trace) -> None:
    """What a window would read of a file that was taken for sound."""
    with np.errstate(all="ignore"):  # damaged numbers are still numbers
        for step in trace.steps:
            for layer in step.layers:
                if layer.kind != "absent":
                    assert trace.weights(step.index, layer.layer, 0).ndim == 2


@pytest.mark.parametrize("length", [0, 7, 2**31, 2**63 - 1, 2**64 - 1])
def test_hostile_header_lengths(saved: Path, length: int) -> None:
    saved.write_bytes(struct.pack("<Q", length) + saved.read_bytes()[8:])
    with pytest.raises(dxt.DxtError):
        dxt.load(saved)


def _array(name: str, **more: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda head, body: head[name].update(more)


def _header(step: int, **more: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda head, body: body["steps"][step]["header"].update(more)


def _layer(field: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(head: dict[str, Any], body: dict[str, Any]) -> None:
        for row in body["layers"]:
            row[0][field] = value

    return change


DAMAGE: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "array outside the file": _array("0/logits", data_offsets=[2**40, 2**40 + 48]),
    "array that ends before it begins": _array("0/logits", data_offsets=[48, 0]),
    "negative shape": _array("0/logits", shape=[-1, -12]),
    "huge shape": _array("0/logits", shape=[2**62, 2**62]),
    "huge empty shape": _array("0/logits", shape=[0, 2**62], data_offsets=[0, 0]),
    "many axes": _array("0/logits", shape=[1] * 200),
    "odd type": _array("0/logits", dtype="F8_E4M3"),
    "type of another size": _array("0/logits", dtype="F64"),
    "integers for logits": _array("0/logits", dtype="I32"),
    "array missing": lambda head, body: head.pop("0/logits"),
    "times of other layers": _array("0/mlp_ms", shape=[1, 7]),
    "hidden of other length": _array("0/hidden", shape=[2, 32]),
    "name without a step": lambda head, body: head.update(logits=head.pop("0/logits")),
    "step number too long": lambda head, body: head.update(
        {"9" * 40 + "/logits": head.pop("0/logits")}
    ),
    "our JSON missing": lambda head, body: body.clear(),
    "metadata missing": lambda head, body: head.pop("__metadata__"),
    "step out of order": _header(1, index=5),
    "unknown phase": _header(0, phase="dream"),
    "slots that are not there": _header(1, first_slot=10**6),
    "readout outside": _header(1, readout=0),
    "keys from the future": _header(1, keys_from=2),
    "negative keys_from": _header(1, keys_from=-1),
    "picked outside the vocabulary": lambda head, body: body["steps"][0]["header"]["draw"].update(
        token_id=99
    ),
    "too few positions": _header(0, position_ids=[0]),
    "layers not there": lambda head, body: body["steps"][0].update(layers=77),
    "tokens not there": lambda head, body: body["steps"][0].update(top=[-1]),
    "fewer chosen than steps": lambda head, body: body["chosen"].pop(),
    "unknown kind of layer": _layer("kind", "magic"),
    "unknown type of layer": _layer("dtype", "float8"),
    "wrong type of layer": _layer("dtype", "bfloat16"),
    "layer number": _layer("layer", 3),
    "mask not there": _layer("mask", 55),
    "first key beyond the keys": _layer("first_key", 10**9),
    "negative first key": _layer("first_key", -1),
    "arrays of unknown name": _layer("arrays", {"__class__": ["queries.0", 0]}),
    "row of an array not there": _layer(
        "arrays", {"queries": ["queries.0", 9], "keys": ["keys.0", 0]}
    ),
    "queries missing": _layer("arrays", {"keys": ["keys.0", 0]}),
    "card without layers": lambda head, body: body["card"].pop("layers"),
    "card is a list": lambda head, body: body.update(card=[1]),
    "number that is a word": lambda head, body: body["card"].update(
        parameters={"not finite": "__import__('os')"}
    ),
    "padding beyond 32 bits": lambda head, body: body["request"].update(pad=2**31),
    "fewer layers than none": lambda head, body: body["card"].update(layers=-1),
    "layers beyond reason": lambda head, body: body["card"].update(layers=2**31 - 1),
    "a window beyond 32 bits": lambda head, body: body["card"].update(windows=[2**40]),
    "chosen outside the vocabulary": lambda head, body: body["chosen"][1].update(id=12),
    "steps is a number": lambda head, body: body.update(steps=3),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_parts_that_do_not_fit_are_refused(saved: Path, kind: str) -> None:
    edited(saved, DAMAGE[kind])
    with pytest.raises(dxt.DxtError) as refused:
        dxt.load(saved)
    assert "\n" not in str(refused.value)


def test_model_weights_are_told_apart(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"model.embed": np.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(dxt.DxtError, match="may be model weights"):
        dxt.load(tmp_path / "model.safetensors")


def test_nested_json_is_no_danger(saved: Path) -> None:
    raw = b'{"__metadata__":' + b"[" * 500_000
    saved.write_bytes(struct.pack("<Q", len(raw)) + raw)
    with pytest.raises(dxt.DxtError):
        dxt.load(saved)
