"""Which function works on which experiment: (runner, what is asked, report, stop) -> its result."""

from __future__ import annotations

from collections.abc import Callable

from explorer.trace import experiments as asked

WORKERS: dict[type[asked.Experiment], Callable[..., asked.Result]] = {}
