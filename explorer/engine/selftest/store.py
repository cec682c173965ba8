"""What the look at the weights and the self-test found, kept for the same model's next opening.

An entry counts only for exactly the same thing: config, weight files (names, sizes, headers,
blocks of their data, times of change), dtype, device, kind of processor, versions of the
libraries, and the very source of the engine and of the code that rebuilds maps.  Whatever else is
found in its place is ignored, and the test runs again.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import torch

from explorer import places
from explorer.engine import kept_json, ranks
from explorer.engine.callbacks import Report, Stop, nobody
from explorer.engine.capture.capture import Capture, routes
from explorer.engine.capture.records import Proven
from explorer.engine.library.catalog import REFERENCE
from explorer.engine.model_files import remote_code
from explorer.engine.model_files.nonfinite_weights import NotFinite, not_finite
from explorer.engine.passes.cache import Kind
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import rotary_test, selftest
from explorer.trace.card import Capability, ModelCard

_KEPT = 64  # entries, the newest
_DECIDING = ("engine", "trace", "sampling")  # rooms whose code decides what is found


class StoredSelfTest(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a tested runner; modules by their names in the model."""

    of: str  # everything that it depends on, as a hash
    tested: str  # day
    route: str
    first_position: int | None
    token_modules: tuple[str, ...] | None
    map_modules: tuple[str, ...]
    exact: tuple[int, ...]
    decoded: tuple[int, ...]
    causal: bool
    windowed: bool
    attends: bool
    cache_kind: Kind
    can_crop: bool
    cache_offered: bool
    in_chunks: bool
    mlp_writes: tuple[tuple[str, ...], ...]  # per layer
    rotary: str  # how pairs of a rotary embedding lie, where it is proven
    capabilities: tuple[Capability, ...]
    weights: NotFinite


def find(runner: Runner, stop: Stop, again: bool = False, progress: Report = nobody) -> None:
    """Find what works on this model, or take what was found before, unless it is to be `again`.

    Its weights are looked at first, for NaN and infinity: all of them are read for that.
    """
    what = "Testing which features work on this model"
    if remote_code.class_of(runner.loaded.config) is not None:
        # Code may do something else each time.
        _look_at_weights(runner, stop, progress)
        selftest.run(
            runner, stop, lambda share: progress(f"{what}, which runs its own code", share)
        )
        return
    if ranks.count() > 1:  # what is found holds for as many processes
        _look_at_weights(runner, stop, progress)
        selftest.run(runner, stop, lambda share: progress(what, share))
        return
    name = identity(runner)
    known = None if again else _read(name)
    if known is not None and apply(known, runner):
        return
    _look_at_weights(runner, stop, progress)
    once = what if again else f"{what} (only when it is first opened)"
    selftest.run(runner, stop, lambda share: progress(once, share))
    _write(taken(name, runner))


def _look_at_weights(runner: Runner, stop: Stop, progress: Report) -> None:
    progress("Checking the weights", None)
    _tell_of_weights(runner, not_finite(runner.model, stop))


def _tell_of_weights(runner: Runner, odd: NotFinite) -> None:
    """Write what was found to the runner and its card."""
    before = runner.loaded.card
    warnings = (*before.warnings, *filter(None, [odd.warning]))
    card = msgspec.structs.replace(before, not_finite=odd.count, warnings=warnings)
    runner.loaded = replace(runner.loaded, card=card, not_finite=odd)


def identity(runner: Runner) -> str:
    """A hash of all that the findings depend on."""
    card = runner.loaded.card
    parts = {
        "code": kept_json.code_of(_DECIDING),
        "model": card.fingerprint,
        "versions": {**card.versions, "python": platform.python_version()},
        "machine": (platform.system(), platform.machine(), _processor(card)),
        "as": (card.dtype, card.device, card.pad_id, card.eos_ids, card.vocab_size),
    }
    if card.name.startswith(REFERENCE):  # its source is there to be edited
        parts["build"] = type(runner.model.model).__name__, kept_json.code_now(("reference",))
    return kept_json.hashed(parts)


def _processor(card: ModelCard) -> str:
    if card.device.startswith("cuda"):
        return torch.cuda.get_device_name(card.device)
    return torch.backends.cpu.get_cpu_capability()


def taken(name: str, runner: Runner) -> StoredSelfTest:
    """What a self-test has written to the runner."""
    capture, card = runner.capture, runner.loaded.card
    proven = capture.proven or Proven(frozenset(), frozenset())
    names = {id(module): path for path, module in runner.model.named_modules()}
    tokens = capture.token_modules
    return StoredSelfTest(
        of=name,
        tested=datetime.now(UTC).date().isoformat(),
        route=capture.route,
        first_position=runner.first_position,
        token_modules=None if tokens is None else _named(names, tokens),
        map_modules=_named(names, capture.map_modules),
        exact=tuple(sorted(proven.layers)),
        decoded=tuple(sorted(proven.decoded)),
        causal=capture.causal,
        windowed=capture.windowed,
        attends=capture.attends,
        cache_kind=runner.cache.kind,
        can_crop=runner.cache.can_crop,
        cache_offered=runner.cache_offered,
        in_chunks=runner.in_chunks,
        mlp_writes=tuple(_named(names, map(id, writes)) for writes in runner.mlp_writes),
        rotary=rotary_test.name_of(runner.rotation),
        capabilities=card.capabilities,
        weights=runner.loaded.not_finite,
    )


def _named(names: dict[int, str], modules: Iterable[int]) -> tuple[str, ...]:
    return tuple(sorted(names[module] for module in modules))


def apply(known: StoredSelfTest, runner: Runner) -> bool:
    """Write it to a runner; False, and nothing done, if they do not fit its model."""
    modules = dict(runner.model.named_modules())
    ids = {path: id(module) for path, module in modules.items()}
    named = {*(known.token_modules or ()), *known.map_modules, *chain(*known.mlp_writes)}
    layers = {*known.exact, *known.decoded}
    if not named <= ids.keys() or not layers <= set(range(len(runner.layers))):
        return False
    if len(known.mlp_writes) != len(runner.layers):
        return False
    if known.route not in (*routes(runner.model), runner.loaded_attention):
        return False
    tokens = known.token_modules
    runner.capture = Capture(
        route=known.route,
        token_modules=None if tokens is None else frozenset(ids[path] for path in tokens),
        map_modules=frozenset(ids[path] for path in known.map_modules),
        proven=Proven(frozenset(known.exact), frozenset(known.decoded)),
        causal=known.causal,
        windowed=known.windowed,
        attends=known.attends,
    )
    runner.first_position = known.first_position
    runner.cache.kind = known.cache_kind
    runner.cache.can_crop = known.can_crop
    runner.cache_offered = known.cache_offered
    runner.in_chunks = known.in_chunks
    runner.rotation = rotary_test.named(runner.model, known.rotary)
    runner.evicts = any(one.name == "evict" and one.offered for one in known.capabilities)
    runner.mlp_writes = tuple(tuple(map(modules.get, paths)) for paths in known.mlp_writes)
    _tell_of_weights(runner, known.weights)
    told: dict[str, Any] = {"capabilities": known.capabilities, "tested": known.tested}
    runner.loaded = replace(runner.loaded, card=msgspec.structs.replace(runner.loaded.card, **told))
    return True


def _folder() -> Path:
    return places.data_folder() / "self-tests"


def _read(name: str) -> StoredSelfTest | None:
    found = kept_json.read(_folder() / f"{name}.json", StoredSelfTest)
    return found if found is not None and found.of == name else None


def _write(found: StoredSelfTest) -> None:
    """A disk that is full or read-only costs nothing but the next test."""
    kept_json.write_newest(_folder() / f"{found.of}.json", found, _KEPT)
