"""What the self-test found, kept for the same file's next opening.

An entry counts only for exactly the same thing: the file (name, size, header, blocks of its data,
time of change), threads, processor, build of llama.cpp, and the very source of this engine and of
the code that rebuilds maps.  Whatever else is found in its place is ignored.
"""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from explorer import places
from explorer.engine import kept_json
from explorer.engine.callbacks import Report, Stop, nobody
from explorer.engine.machine.kept_bandwidth import processor
from explorer.llama_engine.passes.records import Exactness
from explorer.llama_engine.passes.runner import KeptBytes, LlamaRunner
from explorer.llama_engine.selftest import selftest
from explorer.trace.card import Capability

_KEPT = 64  # entries, the newest
_DECIDING = ("llama_engine", "trace", "sampling")  # rooms whose code decides what is found


class StoredOpeningTest(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a tested runner."""

    of: str  # everything that it depends on, as a hash
    tested: str  # day
    rebuilt: tuple[int, ...]
    recorded: tuple[int, ...]
    attending: tuple[int, ...]
    kept: tuple[tuple[int, int], ...]  # bytes of a slot and of a state, by layer
    kv_heads: dict[int, int]
    query_heads: dict[int, int]
    cache_offered: bool
    causal: bool
    layer_kinds: tuple[str, ...]
    windows: tuple[int, ...]
    kv_bytes_per_token: int
    capabilities: tuple[Capability, ...]


def find(runner: LlamaRunner, stop: Stop, again: bool = False, progress: Report = nobody) -> None:
    """Find what works on this file, or take what was found before, unless it is to be `again`."""
    name = identity(runner)
    path = places.data_folder() / "self-tests" / f"{name}.json"
    known = None if again else _read(path, name)
    if known is not None and _apply(known, runner):
        return
    what = "Testing which features work on this model"
    once = what if again else f"{what} (only when it is first opened)"
    selftest.run(runner, stop, lambda share: progress(once, share))
    kept_json.write_newest(path, _taken(name, runner), _KEPT)


def identity(runner: LlamaRunner) -> str:
    """A hash of all that the findings depend on."""
    return kept_json.hashed(
        {
            "code": kept_json.code_of(_DECIDING),
            "model": runner.card.fingerprint,
            "versions": {**runner.card.versions, "python": platform.python_version()},
            "machine": (platform.system(), platform.machine(), processor()),
            "threads": runner.threads,
            "keys": runner.cache_type_k,
            "gpu_layers": runner.model.gpu_layers,
        }
    )


def _read(path: Path, name: str) -> StoredOpeningTest | None:
    found = kept_json.read(path, StoredOpeningTest)
    return found if found is not None and found.of == name else None


def _taken(name: str, runner: LlamaRunner) -> StoredOpeningTest:
    proven, card = runner.proven or Exactness(frozenset()), runner.card
    return StoredOpeningTest(
        of=name,
        tested=datetime.now(UTC).date().isoformat(),
        rebuilt=tuple(sorted(proven.rebuilt)),
        recorded=tuple(sorted(proven.recorded)),
        attending=tuple(sorted(proven.attending)),
        kept=tuple((kept.slot, kept.state) for kept in runner.kept),
        kv_heads=runner.kv_heads,
        query_heads=runner.query_heads,
        cache_offered=runner.cache_offered,
        causal=runner.causal,
        layer_kinds=card.layer_kinds,
        windows=card.windows,
        kv_bytes_per_token=card.kv_bytes_per_token,
        capabilities=card.capabilities,
    )


def _apply(known: StoredOpeningTest, runner: LlamaRunner) -> bool:
    """Write it to a runner; False, and nothing done, if it does not fit its model."""
    layers = runner.card.layers
    named = {*known.rebuilt, *known.recorded, *known.attending, *known.kv_heads}
    named |= known.query_heads.keys()
    lists = (known.kept, known.layer_kinds, known.windows)
    if any(len(one) != layers for one in lists) or not named <= set(range(layers)):
        return False
    runner.proven = Exactness(
        frozenset(known.rebuilt),
        frozenset(known.recorded),
        frozenset(known.attending),
        known.windows,
    )
    runner.kept = tuple(KeptBytes(*pair) for pair in known.kept)
    runner.kv_heads, runner.query_heads = dict(known.kv_heads), dict(known.query_heads)
    runner.cache_offered, runner.causal = known.cache_offered, known.causal
    runner.card = msgspec.structs.replace(
        runner.card,
        layer_kinds=known.layer_kinds,
        windows=known.windows,
        kv_bytes_per_token=known.kv_bytes_per_token,
        capabilities=known.capabilities,
        tested=known.tested,
    )
    return True
