"""Imports torch and transformers without the parts that an engine of one process never runs.

transformers asks for torch's compiler (to mark functions that must not be compiled) and for its
distributed tensors as it is imported, and lists its model folders twice: together half of the time
to the first token.  Nothing here compiles or spreads a model over machines, so for the time of the
import the compiler's marks do nothing and torch says that it has no distributed part, as builds
without one do.  torch itself is left as it was; the compiler can still be imported.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from explorer.engine import ranks

_COMPILER = "torch._dynamo"
_TRACER = f"{_COMPILER}._trace_wrapped_higher_order_op"
_MARKS = ("disable", "allow_in_graph", "assume_constant_result")
_WANTED = (
    "transformers.generation.utils",
    "transformers.masking_utils",
    "transformers.cache_utils",
    "transformers.modeling_utils",
    "transformers.models.auto.modeling_auto",
)
_lock = threading.Lock()
_log = logging.getLogger(__name__)


def load() -> None:
    """Import them; nothing if they are there already."""
    with _lock:
        if all(name in sys.modules for name in _WANTED):
            return
        fresh = _COMPILER not in sys.modules and "transformers" not in sys.modules
        if fresh and not _load_lightly():
            for name in [n for n in sys.modules if n.partition(".")[0] == "transformers"]:
                del sys.modules[name]
        for name in _WANTED:
            importlib.import_module(name)


def _load_lightly() -> bool:
    """False where this version of transformers wants more than we take for granted."""
    try:
        alone = _no_distribution() if ranks.count() == 1 else contextlib.nullcontext()
        with alone, no_compiler(), _one_listing():
            for name in _WANTED:
                importlib.import_module(name)
    except Exception:
        _log.exception("transformers could not be imported lightly")
        return False
    return True


@contextlib.contextmanager
def _no_distribution() -> Iterator[None]:
    import torch

    stock = torch.distributed.is_available
    torch.distributed.is_available = lambda: False
    try:
        yield  # transformers asks once and remembers the answer
    finally:
        torch.distributed.is_available = stock


@contextlib.contextmanager
def no_compiler() -> Iterator[None]:
    """While inside, torch's compiler is not imported to mark what it must leave alone.

    torch does that even to work out the shape of a tensor without memory.  If more is wanted of it,
    it is imported after all.
    """
    names = () if _COMPILER in sys.modules else (_COMPILER, _TRACER)
    finder = _Finder()
    for name in names:
        sys.modules[name] = _StandIn(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _put_away()


class _StandIn(ModuleType):
    """In place of the compiler: marks nothing, and gives way to it when more is asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    @staticmethod
    def TransformGetItemToIndex() -> Any:
        """The real one, which is imported when a mask first needs it."""
        return _real(_TRACER).TransformGetItemToIndex()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _unmarked if name in _MARKS else getattr(_real(self.__name__), name)


class _Finder:
    """Somebody imports a part of the compiler: the whole of it, then."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        parent = name.rpartition(".")[0]
        if not isinstance(sys.modules.get(parent), _StandIn):
            return None
        return PathFinder.find_spec(name, _real(parent).__path__)


def _put_away() -> None:
    for name in (_COMPILER, _TRACER):
        if isinstance(sys.modules.get(name), _StandIn):
            del sys.modules[name]


def _real(module: str) -> Any:
    _put_away()
    return importlib.import_module(module)


def _unmarked(function: Callable[..., Any] | None = None, *_: Any, **__: Any) -> Callable[..., Any]:
    """A decorator, with or without arguments, that changes nothing."""
    return _unmarked if function is None else function


@contextlib.contextmanager
def _one_listing() -> Iterator[None]:
    """What transformers knows of its models' modules serves for the package of models, too."""
    library = importlib.import_module("transformers")
    tools: Any = importlib.import_module("transformers.utils.import_utils")
    listed: dict[str, str] = getattr(library, "_class_to_module", {})
    stock = tools.define_import_structure

    def known(path: Any, prefix: str | None = None) -> Any:
        if not listed or not str(path).replace("\\", "/").endswith(
            "transformers/models/__init__.py"
        ):
            return stock(path, prefix)
        modules: dict[str, set[str]] = {}
        for name, module in listed.items():
            if module.startswith("models."):
                modules.setdefault(module.removeprefix("models."), set()).add(name)
        return {frozenset(): modules}

    tools.define_import_structure = known
    try:
        yield
    finally:
        tools.define_import_structure = stock
