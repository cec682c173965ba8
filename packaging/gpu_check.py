"""Tries the program on this machine's GPU, and prints a report that can be pasted into an issue.

    .venv/bin/python packaging/gpu_check.py [MODEL] [--device D] [--dtype T]... [--no-bench]

MODEL is smollm2 unless given.  The report says, for each dtype, whether the attention maps are
exact and whether the logits are those of the processor; whether the same tokens are generated;
what recording costs in time and memory; and whether the clocks wait for the GPU.
Exit code 0: all is well.  1: a check failed.  2: there is no GPU, or the model can't be opened.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DTYPES = ("float32", "bfloat16", "float16")
PROMPT = "The capital of France is"
STEPS = 32
WRONG = 1  # exit code of `check` where a check failed


class CannotRun(Exception):
    """Why there is no report, in one sentence."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", nargs="?", default="smollm2")
    parser.add_argument("--device", help="cuda, cuda:1, mps; the first GPU unless given")
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="again for more")
    parser.add_argument(
        "--no-bench", action="store_true", help="no ratios: a minute instead of ten"
    )
    asked = parser.parse_args()
    try:
        return report(
            asked.model, asked.device or found_gpu(), asked.dtype or DTYPES, asked.no_bench
        )
    except CannotRun as error:
        print(error, file=sys.stderr)
        return 2


def found_gpu() -> str:
    """The device that torch calls the first GPU; CannotRun if it sees none."""
    try:
        import torch
    except ImportError as error:
        raise CannotRun("Run this with the Python in .venv; packaging/run.py makes it.") from error
    if torch.cuda.is_available():
        return "cuda"
    if torch.backends.mps.is_available():
        return "mps"
    raise CannotRun(
        f"torch {torch.__version__} sees no GPU on this machine. With an NVIDIA card, look whether "
        "its driver is installed and torch is a build with CUDA."
    )


def report(model: str, device: str, dtypes: tuple[str, ...], no_bench: bool) -> int:
    """Prints it part by part; 1 if a check failed."""
    well = True
    for number, dtype in enumerate(dtypes):
        checked = ask("check", model, "--device", device, "--dtype", dtype)
        if number == 0:  # the device is there
            print_heads(model, device)
        well = well and checked["passed"]
        print_checks(dtype, checked)
    print_tokens(model, device)
    if not no_bench:
        for dtype in dtypes:
            measured = ask("bench", model, "--device", device, "--dtype", dtype, "--no-window")
            well = print_bench(dtype, measured) and well
    print("All checks passed." if well else "A CHECK FAILED.")
    return 0 if well else 1


def print_heads(model: str, device: str) -> None:
    """What the report is about."""
    import torch

    name = device
    if device.startswith("cuda"):
        name = f"{torch.cuda.get_device_name(device)} ({device}, CUDA {torch.version.cuda})"
    python = f"Python {platform.python_version()}, torch {torch.__version__}"
    print(f"# Decoder Explorer on {name}\n\n{model}, {platform.platform()}, {python}\n")


def print_checks(dtype: str, checked: dict[str, Any]) -> None:
    """The self-check of a run, `same_on_cpu` among it."""
    print(f"## Checks in {dtype}\n\n| | check | measured | at most |\n|---|---|---|---|")
    for check in checked["checks"]:
        verdict = "passed" if check["passed"] else "FAILED"
        # JSON has no word for what is not finite: null.
        shown = [
            "not finite" if (value := check[name]) is None else f"{value:.3g}"
            for name in ("measured", "tolerance")
        ]
        print(f"| {verdict} | {check['name']} | {' | '.join(shown)} |")
    print()


def print_tokens(model: str, device: str) -> None:
    """How far the greedy tokens are the processor's; rounding may part them at a near tie."""
    runs = [
        ask("trace", model, "--prompt", PROMPT, "--steps", str(STEPS), "--device", where)
        for where in (device, "cpu")
    ]
    mine, theirs = ([step["chosen_id"] for step in run["steps"]] for run in runs)
    pairs = zip(mine, theirs, strict=False)
    same = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(mine), len(theirs)))
    print(f"## Tokens in float32\n\n{same} of {len(theirs)} greedy tokens are the processor's.")
    if same < len(theirs):
        odds = [run["steps"][same]["raw_probability"] for run in runs]
        print(f"The first that differs has probability {odds[0]:.4f} here and {odds[1]:.4f} there.")
    decoded = sorted(step["forward_ms"] for step in runs[0]["steps"][1:])
    print(f"A decode step: median {decoded[len(decoded) // 2]:.2f} ms.\n")


def print_bench(dtype: str, measured: dict[str, Any]) -> bool:
    """The ratios; False if the clocks do not wait for the GPU."""
    figures, ratios = measured["figures"], measured["ratios"]
    print(f"## Ratios in {dtype}\n\n| ratio | tokens | median |\n|---|---|---|")
    for name, found in ratios.items():
        by_length = found if isinstance(found, dict) else {"": found}
        for length, value in by_length.items():
            if value is not None:
                print(f"| {name} | {length} | {value:.2f} |")
    for name in ("peak_bytes", "eager_peak_bytes"):
        for length, held in (figures.get(name) or {}).items():
            if held is not None:
                print(f"| {name}, MB | {length} | {held / 1e6:.0f} |")
    floor = ratios.get("decode_over_floor")
    waits = floor is None or floor >= 1
    if not waits:
        print(
            f"\nA step took {floor:.2f} of the time that reading its weights takes, which can't "
            "be: the clocks do not wait for the GPU."
        )
    print()
    return waits


def ask(*arguments: str) -> dict[str, Any]:
    """What a command of the program answers; CannotRun with its own sentence if it can't."""
    command = [sys.executable, "-m", "explorer", *arguments, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode not in (0, WRONG):
        words = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise CannotRun(f"`{' '.join(arguments[:2])}` failed: {words[-1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
