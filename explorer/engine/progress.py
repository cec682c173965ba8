"""Report of loading: what transformers would print as bars goes to whoever watches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import transformers.utils.logging as library_log

from explorer.engine.callbacks import Report, Stop
from explorer.engine.errors import Cancelled

_hooks = threading.Lock()  # transformers has one progress hook for the whole process


@contextmanager
def library_bars(progress: Report, cancelled: Stop) -> Iterator[None]:
    """Send transformers' progress bars to `progress`; nothing is printed.

    Between two tensors Cancelled is raised if `cancelled` turned true.
    """

    def bar(factory: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Bar:
        return _Bar(args[0] if args else kwargs.get("iterable"), kwargs, progress, cancelled)

    with _hooks:
        before = library_log.set_tqdm_hook(bar)
        verbosity = library_log.get_verbosity()
        library_log.set_verbosity_error()
        try:
            yield
        finally:
            library_log.set_tqdm_hook(before)
            library_log.set_verbosity(verbosity)


class _Bar:
    """What transformers needs of a tqdm bar."""

    def __init__(
        self, items: Any, kwargs: dict[str, Any], progress: Report, cancelled: Stop
    ) -> None:
        self._items = items
        self._total = kwargs.get("total") or (len(items) if hasattr(items, "__len__") else 0)
        self._done = 0
        self._progress = progress
        self._cancelled = cancelled

    def __iter__(self) -> Iterator[Any]:
        for item in self._items:
            self.update()
            yield item

    def update(self, count: int = 1) -> None:
        if self._cancelled():
            raise Cancelled
        self._done += count
        share = self._done / self._total if self._total else None
        self._progress("Reading the weights", share)

    def set_postfix(self, *args: Any, **kwargs: Any) -> None:
        """Shown by bars on a terminal only."""

    def close(self) -> None:
        """Nothing is held."""

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
