"""How much main memory can be had now."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil


def available_bytes() -> int | None:
    """Memory that can be had now, without pushing others out; None where nobody says."""
    with suppress(OSError, psutil.Error):
        return min([psutil.virtual_memory().available, *_control_group()])
    return None


def _control_group() -> list[int]:
    """What a container may still take; nothing if it has no limit."""
    root = Path("/sys/fs/cgroup")
    versions = (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    )
    for limit, used in versions:
        with suppress(OSError, ValueError):
            most = int((root / limit).read_text())
            held = int((root / used).read_text()) - _cached(root / limit)
            if most < 2**60:
                return [max(0, most - held)]
    return []


def _cached(limit: Path) -> int:
    """File pages counted as used, which the kernel gives back when asked."""
    with suppress(OSError):
        for line in (limit.parent / "memory.stat").read_text().splitlines():
            if line.startswith(("inactive_file ", "total_inactive_file ")):
                return int(line.split()[1])
    return 0
