"""Saved runs: everything comes back, and no bytes from outside can hurt."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load_file

from explorer.trace import dxt
from explorer.trace.attention import LayerRecord, Mask
from explorer.trace.card import Capability, Check, ModelCard, SelfCheck
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
            name="tiny", path="/models/tiny", architecture="llama", layers=7, hidden_size=16,
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


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.dxt"
    dxt.save(made_trace(), path)
    return path


def test_everything_comes_back_equal(tmp_path: Path) -> None:
    trace = made_trace()
    path = tmp_path / "ünï ⌘.dxt"
    dxt.save(trace, path)
    back = dxt.load(path)
    for field in dataclasses.fields(Trace):
        assert same(getattr(back, field.name), getattr(trace, field.name)), field.name


def test_maps_are_the_same_from_the_file(saved: Path) -> None:
    back = dxt.load(saved)
    for step in range(3):
        for layer in (0, 1, 2, 3, 5, 6):
            weights = back.weights(step, layer, 1)
            assert weights.shape == (4 if step == 0 else 1, 4 + step)
    with pytest.raises(ValueError, match="recurrent"):
        back.weights(0, 4, 0)


def test_arrays_of_a_file_are_read_only(saved: Path) -> None:
    step = dxt.load(saved).steps[0]
    for array in (step.logits, step.layer_ms, step.hidden, step.layers[0].queries):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_trace_without_steps(tmp_path: Path) -> None:
    trace = dataclasses.replace(made_trace(0), stop_reason="")
    dxt.save(trace, tmp_path / "empty.dxt")
    assert same(dxt.load(tmp_path / "empty.dxt"), trace)


def test_any_safetensors_reader_opens_it(saved: Path) -> None:
    arrays = load_file(saved)
    trace = dxt.load(saved)
    np.testing.assert_array_equal(arrays["0/logits"], trace.steps[0].logits)
    assert arrays["0/queries.0"].shape[1:] == (4, HEADS, WIDTH)


def test_what_repeats_is_written_once(tmp_path: Path) -> None:
    sizes = []
    for steps in (10, 20):
        path = tmp_path / f"{steps}.dxt"
        trace = made_trace(2)
        bare = [dataclasses.replace(made_step(i), hidden=None) for i in range(steps)]
        dxt.save(
            dataclasses.replace(trace, steps=tuple(bare), chosen=trace.chosen[:1] * steps), path
        )
        sizes.append(struct.unpack("<Q", path.read_bytes()[:8])[0])
    assert (sizes[1] - sizes[0]) / 10 < 4000  # header bytes a step, seven layers with masks


def test_it_opens_without_torch(saved: Path) -> None:
    code = (
        "import sys; from explorer.trace import dxt; dxt.load(sys.argv[1]);"
        "bad = {'torch', 'transformers', 'PySide6', 'explorer.engine'} & set(sys.modules);"
        "sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(saved)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_saving_replaces_whole_or_not_at_all(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(dxt.DxtError, match="No space left on device"):
        dxt.save(made_trace(1), saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_an_interrupted_save_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        dxt.save(made_trace(1), tmp_path / "x.dxt")
    assert os.listdir(tmp_path) == []


def test_two_saves_at_once_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "x.dxt"
    threads = [threading.Thread(target=dxt.save, args=(made_trace(n), path)) for n in (1, 2, 3) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(dxt.load(path).steps) in (1, 2, 3)
    assert os.listdir(tmp_path) == ["x.dxt"]


@pytest.mark.parametrize("name", ["missing/x.dxt", ".", "nul\0.dxt"])
def test_a_place_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(dxt.DxtError, match="could not be written"):
        dxt.save(made_trace(1), tmp_path / name)


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
    "steps is a number": lambda head, body: body.update(steps=3),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_parts_that_do_not_fit_are_refused(saved: Path, kind: str) -> None:
    edited(saved, DAMAGE[kind])
    with pytest.raises(dxt.DxtError) as refused:
        dxt.load(saved)
    assert "\n" not in str(refused.value)


def test_a_newer_format_says_so(saved: Path) -> None:
    edited(saved, lambda head, body: body.update(format=2))
    with pytest.raises(dxt.DxtError, match=r"format 2.*newer Decoder Explorer"):
        dxt.load(saved)


def test_fields_that_are_not_known_yet_are_no_trouble(saved: Path) -> None:
    edited(saved, lambda head, body: (body.update(later=1), body["request"].update(later=1)))
    assert len(dxt.load(saved).steps) == 3


def test_files_of_earlier_versions_still_open() -> None:
    """Written when format 1 was new.  If this fails, a field was added without a default."""
    trace = dxt.load(Path(__file__).with_name("data") / "format-1.dxt")
    assert [step.phase for step in trace.steps] == ["prefill", "decode", "decode"]
    assert [token.origin for token in trace.chosen] == ["generated", "forced", "generated"]
    assert trace.request.prompt == "😀 \x00\u200b"
    assert trace.weights(2, 3, 0).shape == (1, 6)
    assert trace.steps[0].attention_ms is None
    assert trace.steps[0].engine_ms is None


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
