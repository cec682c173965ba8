"""`bench`: how much slower a watched model is than an unwatched one, measured here and now."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from explorer import disk
from explorer.cli import line_bench
from explorer.cli.client import Client
from explorer.cli.commands.engine import engine_command
from explorer.cli.commands.trace import form_of, writable
from explorer.cli.document import print_json, print_table
from explorer.cli.errors import DONE, CommandError
from explorer.figures.text import warnings
from explorer.trace.wire import messages as m

WINDOW_SECONDS = 240
_MEANING = {
    "decode_capture_over_plain": "decoding, all captured ÷ plain loop",
    "prefill_capture_over_plain": "prefill, all captured ÷ plain",
    "eager_over_ours": "eager with output_attentions ÷ ours, time",
    "eager_bytes_over_ours": "the same, bytes kept",
    "eager_peak_over_ours": "the same, most memory while it runs",
    "decode_over_floor": "decoding ÷ reading every weight once",
    "start_to_window_ms": "process start → window painted, ms",
    "start_to_first_token_ms": "process start → first token, ms",
    "step_to_painted_ms": "step arrives → painted, median, ms",
    "step_to_painted_p95_ms": "step arrives → painted, 95 %, ms",
    "longest_gap_ms": "longest gap of the event loop, ms",
}


def run(arguments: argparse.Namespace) -> int:
    out = None if arguments.out is None else writable(arguments.out)
    earlier = None if arguments.against is None else _earlier(arguments.against)
    document = {"model": arguments.model, **_measured(arguments)}
    document["figures"]["window"] = (
        {"not_measured": "left out by --no-window"} if arguments.no_window else _window(arguments)
    )
    if earlier is not None:
        document["against"] = _compared(document, earlier)
    if out is not None:
        _save(document, out)
    if arguments.json:
        print_json(document)
    else:
        _print(document)
    return DONE


def _measured(arguments: argparse.Namespace) -> dict[str, Any]:
    with Client(engine_command(arguments.engine)) as client:
        card = client.load(
            arguments.model,
            arguments.dtype or "float32",
            arguments.device or "cpu",
            form_of(arguments),
            cache_type_k=arguments.cache_type_k,
            gpu_layers=arguments.gpu_layers,
        )
        line = (
            line_bench.measure(client, arguments.model, card.context) if arguments.engine else None
        )
        found = {**client.facts(m.Bench()), "warnings": warnings.of_card(card)}
        return found if line is None else {**found, "line": line}


def _window(arguments: argparse.Namespace) -> dict[str, Any]:
    """The window's own figures from a child process; {not_measured: why} where there is none."""
    if arguments.engine:
        return {"not_measured": "with --engine the window is not measured"}
    root = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "explorer.app", "--pace", arguments.model, str(time.time())]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=WINDOW_SECONDS,
            check=False,
        )
        found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
    except subprocess.TimeoutExpired:
        return {"not_measured": f"the window was not done within {WINDOW_SECONDS} s"}
    except (OSError, ValueError, IndexError) as error:
        return {"not_measured": f"the window's figures could not be read: {error}"}
    if not isinstance(found, dict):
        words = done.stderr.strip().splitlines()
        return {"not_measured": words[-1] if words else f"exit code {done.returncode}"}
    return found


def flat(document: dict[str, Any]) -> dict[str, float]:
    """Every ratio, and every figure of the window, by name and length."""
    rows: dict[str, float] = {}
    for part in (document.get("ratios"), document.get("figures", {}).get("window")):
        for name, value in (part or {}).items():
            if isinstance(value, dict):
                rows |= {f"{name} {key}": float(x) for key, x in value.items()}
            elif isinstance(value, (int, float)) and name in _MEANING:
                rows[name] = float(value)
    return rows


def _spread(document: dict[str, Any], name: str, length: str) -> str:
    """The lowest and highest pair behind a ratio and how many there were; empty if unknown."""
    found = document.get("spread", {}).get(name)
    if isinstance(found, dict):
        found = found.get(length)
    if not found:
        return ""
    repeats = document["figures"].get("repeats", {}).get(length or "decode", "")
    return f"{found[0]:.2f}-{found[1]:.2f} ({repeats})"


def _compared(document: dict[str, Any], earlier: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Per figure that both have: then, now, and now ÷ then."""
    now, then = flat(document), flat(earlier)
    return {
        name: {"then": then[name], "now": now[name], "now_over_then": now[name] / then[name]}
        for name in now
        if then.get(name)
    }


def _earlier(name: str) -> dict[str, Any]:
    try:
        found = json.loads(disk.read_text(name))
        if not isinstance(found, dict) or not isinstance(found.get("ratios"), dict):
            raise ValueError("it has no ratios")
        flat(found)
    except (OSError, ValueError, TypeError) as error:
        raise CommandError(
            f"{name} is not a saved bench ({disk.why(error)}). Write one with `bench "
            "MODEL --out FILE`."
        ) from error
    return found


def _save(document: dict[str, Any], path: Path) -> None:
    try:
        disk.write(path, (json.dumps(document, indent=1) + "\n").encode())
    except OSError as error:
        raise CommandError(f"{path} could not be written: {disk.why(error)}.") from error


def _print(document: dict[str, Any]) -> None:
    against = document.get("against", {})
    rows: list[tuple[str, ...]] = []
    for full, value in flat(document).items():
        name, _, length = full.partition(" ")
        shown = f"{value:,.0f}" if name.endswith("_ms") else f"{value:.2f}"
        before = against.get(full)
        then = f"{before['then']:.2f} (× {before['now_over_then']:.2f})" if before else ""
        pairs = _spread(document, name, length)
        rows.append((_MEANING.get(name, name), length, shown, pairs, then))
    heads: tuple[str, ...] = ("figure", "tokens", "median", "lowest-highest (pairs)", "before")
    shown_columns = len(heads) if against else len(heads) - 1
    print_table(heads[:shown_columns], [row[:shown_columns] for row in rows], left={0})
    window = document["figures"]["window"]
    if "not_measured" in window:
        print(f"\nThe window was not measured: {window['not_measured']}")
    if "line" in document:
        _print_line(document["line"])
    machine = document["machine"]
    print(f"\n{machine['processor']}, {machine['cores']} cores, {document['threads']} thread(s)")


def _print_line(found: dict[str, Any]) -> None:
    """What the line to the engine costs."""
    print(f"\nThe line to the engine: a round trip takes {found['round_trip_ms']:,.1f} ms.")
    for name, part in (
        ("queries and keys sent with each step", found["all_sent"]),
        ("queries and keys kept there", found["kept"]),
    ):
        if part is not None and "bytes_per_step" in part:
            print(
                f"{name}: {part['bytes_per_step']:,.0f} bytes a step, {part['ms_per_step']:,.1f} "
                f"ms, of which the line takes {part['lost_ms_per_step']:,.1f} ms"
            )
    tokens = found["prompt_tokens"]
    if found["map_bytes"] is not None:
        print(
            f"one map of {tokens} tokens fetched: {found['map_bytes']:,} bytes, "
            f"{found['map_ms']:,.1f} ms"
        )
