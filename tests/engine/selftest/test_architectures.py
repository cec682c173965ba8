"""Every causal-LM type of transformers, as a tiny random model: exact, or refused with a reason.

A few types run always; with --run-slow all of them, and architectures.tsv is written anew.
"""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest

from explorer.engine.errors import EngineError
from tests.engine.architectures import NOT_BUILT, causal_types
from tests.engine.selftest.examination import Row, examine

TABLE = Path(__file__).with_name("architectures.tsv")
COLUMNS = ("capture", "maps", "proof", "prefix", "causal_off", "cache", "undo", "left", "right",
           "changed", "patched")  # fmt: skip
NO_ATTENTION = "this model has no attention to draw: it keeps recurrent states"
# One of each kind of difficulty: own maps, positions past the padding id, keys chosen by content,
# repeated calls, stuck attention, soft caps, banded buffers, sinks, chunks, recurrence, no cache.
REPRESENTATIVES = (
    "bloom", "camembert", "deepseek_v32", "diffllama", "falcon", "gemma2", "gpt_neo", "gpt_oss",
    "jamba", "llama4_text", "longcat_flash", "mamba", "openai-gpt", "xlnet",
)  # fmt: skip
LEAST = {  # types on which an intervention works, and on which it was made by hand, too
    "changed": {
        "silence_heads": (160, 140), "cut_cells": (160, 110), "scale_scores": (160, 0),
        "silence_mlp": (140, 140), "silence_layers": (185, 185),
    },
    "patched": {
        "patch_heads": (160, 140), "patch_mlp": (140, 140), "patch_stream": (170, 170),
    },
}  # fmt: skip
BUILT = [kind for kind in causal_types() if kind not in NOT_BUILT]

# The modelling code of 190 types is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")
found: dict[str, Row] = {}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=() if k in REPRESENTATIVES else pytest.mark.slow) for k in BUILT],
)
def test_what_is_offered_is_exact_and_what_is_not_has_a_reason(kind: str) -> None:
    row = found[kind] = examine(kind)
    gc.collect()
    assert row.wrong == []
    assert all(getattr(row, column) for column in COLUMNS if column != "proof")
    if kind in REPRESENTATIVES:
        assert row.capture == (NO_ATTENTION if kind == "mamba" else "exact")
    if row.exact:
        assert row.proof


@pytest.mark.parametrize("kind", NOT_BUILT)
def test_types_that_cannot_be_fed_say_why(kind: str) -> None:
    assert NOT_BUILT[kind][1] in fault_of(kind)


def fault_of(kind: str) -> str:
    """What transformers says when the type is built and fed; empty if all goes well."""
    try:
        examine(kind)
    except EngineError as error:
        return error.details
    except Exception as error:  # whatever a config class or a missing package raises
        return str(error)
    return ""


@pytest.mark.slow
def test_the_table_of_all_types(request: pytest.FixtureRequest) -> None:
    """Runs last in this file, and needs a whole run: `pytest --run-slow <this file>`."""
    missing = set(BUILT) - set(found)
    assert not missing, f"run the whole file; not examined: {sorted(missing)}"
    rows = [found[kind] for kind in BUILT]
    exact = sum(row.exact for row in rows)
    wrong = sum(bool(row.wrong) for row in rows)
    refused = Counter(row.capture for row in rows if not row.exact)
    TABLE.write_text(_table(rows, exact, wrong, refused), encoding="utf-8")
    assert wrong == 0
    for column, least in LEAST.items():
        found_here = [getattr(row, column).split(";")[0].split(", ") for row in rows]
        for name, (working, by_hand) in least.items():
            made = sum(f"{name} by hand" in one for one in found_here)
            assert made >= by_hand, name
            assert made + sum(name in one for one in found_here) >= working, name
    assert exact >= 170


def _table(rows: list[Row], exact: int, wrong: int, refused: Counter[str]) -> str:
    lines = [
        f"# {len(rows)} built, {exact} exact, {len(rows) - exact} refused, {wrong} silently wrong",
        *(f"# refused, {count}: {reason}" for reason, count in refused.most_common()),
        *(f"# not built, {kind}: {why}" for kind, (why, _) in NOT_BUILT.items()),
        "\t".join(("type", *COLUMNS, "wrong")),
    ]
    for row in rows:
        cells = [row.kind, *(getattr(row, column) for column in COLUMNS), "; ".join(row.wrong)]
        lines.append("\t".join(cells))
    return "\n".join(lines) + "\n"
