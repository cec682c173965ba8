"""Whole runs made by hand, with every kind of layer, and their files changed by hand."""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from explorer.trace.attention import LayerRecord, Mask
from explorer.trace.card import Capability, Check, ModelCard, SelfCheck
from explorer.trace.files import dxt
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Draw, Phase, Step, Token
from explorer.trace.trace import Trace

VOCABULARY = 12
HEADS, KV_HEADS, WIDTH = 4, 2, 8
PROMPT = (
    Token(0, b"", "padding"),
    Token(3, b"<|im_start|>", "prompt", special=True),
    Token(4, b"\xf0\x9f\x98"),
    Token(5, b"\x80 \x00"),
)
RNG = np.random.default_rng(0)


def record(layer: int, rows: int, mask: Mask | None, **more: Any) -> LayerRecord:
    fields: dict[str, Any] = {
        "queries": RNG.standard_normal((rows, HEADS, WIDTH)).astype(np.float32),
        "keys": RNG.standard_normal((rows, KV_HEADS, WIDTH)).astype(np.float32),
        "scaling": 0.35,
        "mask": mask,
    }
    return LayerRecord(layer=layer, kind="qk", **{**fields, **more})


def bfloat16_bits(rows: int, heads: int) -> np.ndarray:
    whole = RNG.standard_normal((rows, heads, WIDTH)).astype(np.float32)
    return (whole.view(np.uint32) >> 16).astype(np.uint16)


def every_kind_of_layer(rows: int, keys: int) -> tuple[LayerRecord, ...]:
    """One layer of each kind that a record can be, masks shared and not."""
    bits = Mask.of_bits(np.tri(rows, keys, keys - rows, dtype=bool))
    values = np.where(np.tri(rows, keys, keys - rows), 0, -np.inf).astype(np.float32)
    half = {
        "queries": bfloat16_bits(rows, HEADS),
        "keys": bfloat16_bits(rows, KV_HEADS),
        "dtype": "bfloat16",
    }
    return (
        record(0, rows, bits),
        record(1, rows, bits, window=5, softcap=30.0),
        record(2, rows, Mask("none", rows, keys), sinks=np.arange(HEADS, dtype=np.float32)),
        record(3, rows, Mask("values", rows, keys, values[None]), **half),
        LayerRecord(layer=4, kind="absent", reason="recurrent: keeps a state, no scores"),
        LayerRecord(
            layer=5,
            kind="map",
            reason="recorded by the model",
            weights=RNG.random((HEADS, rows, keys)).astype(np.float32),
        ),
        record(6, rows, None, bias=RNG.random((1, rows, keys)).astype(np.float32)),
    )


def made_step(index: int) -> Step:
    """Step 0 is a prefill of four slots, later ones read one slot each."""
    rows = len(PROMPT) if index == 0 else 1
    first = 0 if index == 0 else len(PROMPT) + index - 1
    phase: Phase = "prefill" if index == 0 else "decode"
    return Step(
        index=index,
        phase=phase,
        first_slot=first,
        token_ids=tuple(range(rows)),
        position_ids=tuple(range(rows)),
        readout=first + rows - 1,
        logits=RNG.standard_normal(VOCABULARY).astype(np.float32),
        draw=Draw(
            token_id=index,
            how="forced" if index == 1 else "drawn",
            probability=0.5,
            raw_probability=1e-30,
            rank=2,
            entropy_bits=1.25,
            u=None if index == 1 else 0.1 + 0.2,
        ),
        sampling=Sampling(greedy=False, temperature=0.7, top_k=3, top_p=0.9, seed=2**62 + index),
        forward_ms=12.345,
        layer_ms=RNG.random(7).astype(np.float32),
        attention_ms=np.array([0.5] * 6 + [np.nan], np.float32) if index != 1 else None,
        mlp_ms=RNG.random(7).astype(np.float32) if index != 1 else None,
        embedding_ms=0.25,
        head_ms=1.5 if index != 1 else None,
        capture_ms=0.5,
        pick_ms=0.75,
        engine_ms=15.5,
        warm_up=index == 0,
        cache_tokens=first + rows,
        cache_bytes_per_layer=(1, 2, 3, 4, 0, 0, 7),
        top=(Token(1, b"\xff"), Token(index, b"same")),
        layers=every_kind_of_layer(rows, first + rows),
        hidden=RNG.standard_normal((rows, 16)).astype(np.float32) if index != 2 else None,
        rebuilt_tokens=index,
        note=f"note {index}",
    )


def made_trace(steps: int = 3) -> Trace:
    return Trace(
        request=RunRequest(
            model="tiny", prompt="😀 \x00\u200b", chat=True, padding="left", pad=1, max_tokens=9
        ),
        card=ModelCard(
            name="tiny", path="", architecture="llama", layers=7, hidden_size=16,
            heads=HEADS, kv_heads=KV_HEADS, head_dim=WIDTH, vocab_size=VOCABULARY, context=64,
            parameters=10**12, dtype="float32", device="cpu", windows=(0, 5), eos_ids=(2,),
            generation_defaults={"temperature": 0.6, "eos_token_id": [1, 2]},
            capabilities=(
                Capability(name="undo", offered=True, words="Steps back.", measured=float("inf")),
            ),
            fingerprint={"config": "abc", "files": {"model.safetensors": 5}},
            versions={"torch": "2.13.0"}, warnings=("be careful",),
        ),
        prompt=PROMPT,
        steps=tuple(made_step(i) for i in range(steps)),
        chosen=tuple(
            Token(i, f"c{i}".encode(), "forced" if i == 1 else "generated") for i in range(steps)
        ),
        stop_reason="end token",
        self_check=SelfCheck(
            passed=False,
            checks=(
                Check(name="rows", passed=True, measured=1e-7, tolerance=1e-5),
                Check(name="mask", passed=False, measured=float("nan"), tolerance=0.0, note="x"),
            ),
        ),
    )  # fmt: skip


def same(a: Any, b: Any) -> bool:
    """Equal all the way down, arrays bit by bit, NaN equal to itself."""
    if isinstance(a, np.ndarray):
        return (
            isinstance(b, np.ndarray)
            and (a.dtype, a.shape) == (b.dtype, b.shape)
            and a.tobytes() == b.tobytes()
        )
    if isinstance(a, msgspec.Struct):
        names = type(a).__struct_fields__
        return type(a) is type(b) and all(same(getattr(a, n), getattr(b, n)) for n in names)
    if dataclasses.is_dataclass(a):
        names = tuple(field.name for field in dataclasses.fields(a))
        return type(a) is type(b) and all(same(getattr(a, n), getattr(b, n)) for n in names)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) or (a != a and b != b)


def edited(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Path:
    """The file with its header changed: `change` gets the safetensors header and our JSON."""
    whole = path.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    head = json.loads(whole[8 : 8 + length])
    body = json.loads(head["__metadata__"][dxt.KEY])
    change(head, body)
    if "__metadata__" in head:
        head["__metadata__"] = {dxt.KEY: json.dumps(body)} if body else {}
    raw = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + whole[8 + length :])
    return path
