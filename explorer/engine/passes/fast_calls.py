"""Shorter ways through a model's Python while a pass runs: the same objects, the same operations.

A quarter of a decode step of a small model is Python between arithmetic.  nn.Module keeps its
parts out of the instance's own dictionary, so that each mention of one is a failed look-up and a
call; here they lie in that dictionary for the time of the pass.  A plain linear layer without
hooks is called as the one function it consists of.  A config computes each of its attributes
again; for the time of the pass it is asked once for each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from transformers import PreTrainedConfig


class Direct(torch.nn.Linear):
    """Another face of a linear layer: the same weight and bias, called as the function itself.

    It is a module, for a model may move its parts about while it runs.
    """

    def __init__(self, linear: torch.nn.Linear) -> None:
        self.__dict__.update(linear.__dict__)  # the very same dictionaries of parameters and hooks

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        held = self.__dict__["_parameters"]
        return torch.nn.functional.linear(tensor, held["weight"], held["bias"])


class _Config:
    """A config that is asked once a pass for each attribute; writing goes through."""

    def __init__(self, config: Any) -> None:
        self.__dict__["_behind"] = config

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = getattr(self.__dict__["_behind"], name)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_behind"], name, value)
        self.__dict__.pop(name, None)

    def forget(self) -> None:
        """Ask again."""
        behind = self.__dict__["_behind"]
        self.__dict__.clear()
        self.__dict__["_behind"] = behind


class FastCalls:
    """Those of the decoder layers, found once; laid only while `laid`."""

    def __init__(self, layers: list[Any]) -> None:
        # Per name: where to put it, where the module keeps it, what it was when this was made.
        self._names: list[tuple[dict[str, Any], dict[str, Any], str, Any, Any]] = []
        self._configs: dict[int, _Config] = {}
        self._configured: list[tuple[dict[str, Any], Any, _Config]] = []
        seen: set[int] = set()
        for layer in layers:
            for module in layer.modules():
                if id(module) not in seen:
                    seen.add(id(module))
                    self._find(module)

    @contextlib.contextmanager
    def laid(self) -> Iterator[None]:
        """While inside, the shortcuts are there; nothing stays behind."""
        try:
            for own, kept, name, value, linear in self._names:
                if kept.get(name) is value:  # not what somebody has put in its place since
                    own[name] = value if linear is None or _is_heard(value) else linear
            for config in self._configs.values():
                config.forget()
            for own, _, config in self._configured:
                own["config"] = config
            yield
        finally:
            for own, original, _ in self._configured:
                own["config"] = original
            for own, _, name, _, _ in self._names:
                own.pop(name, None)

    def _find(self, module: torch.nn.Module) -> None:
        own = module.__dict__
        if type(module) is torch.nn.Linear:
            return  # its own forward is not run
        if isinstance(config := own.get("config"), PreTrainedConfig):
            quick = self._configs.setdefault(id(config), _Config(config))
            self._configured.append((own, config, quick))
        for kept in (module._modules, module._parameters, module._buffers):
            for name, value in kept.items():
                if name not in own and not hasattr(type(module), name):
                    linear = Direct(value) if type(value) is torch.nn.Linear else None
                    self._names.append((own, kept, name, value, linear))


def _is_heard(module: Any) -> bool:
    """True if somebody listens to this module, or has given it another forward."""
    own = module.__dict__
    return bool(own["_forward_hooks"] or own["_forward_pre_hooks"] or "forward" in own)
