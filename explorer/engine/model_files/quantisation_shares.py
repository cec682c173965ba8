"""How weights are stored, named by their parts: `Q8_0 63 %, Q5_0 24 %, Q4_K 9 %, Q6_K 4 %`."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.wording import whole_percent

_LEAST = 0.005  # of all numbers; what is less would read 0 %


def by_share(counts: Mapping[str, int]) -> str:
    """Forms of storage with their shares of all numbers, largest first; alone: just its name.

    Whole per cents: a name is read at a glance.  Empty if nothing is counted.
    """
    total = sum(counts.values())
    large = (item for item in counts.items() if item[1] > _LEAST * total)
    found = sorted(large, key=lambda item: (-item[1], item[0]))
    if len(found) < 2:
        return "".join(name for name, _ in found)
    return ", ".join(f"{name} {whole_percent(count / total)}" for name, count in found)
