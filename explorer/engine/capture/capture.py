"""How attention is recorded on one model: the route, and what the self-test proved of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from explorer.engine.callbacks import Stop
from explorer.engine.capture import probe
from explorer.engine.capture.records import Proven
from explorer.engine.errors import EngineError


@dataclass(slots=True)
class Capture:
    """The settings of every pass; the self-test fills them in.

    Routes: stock sdpa behind our function, the model's eager function behind ours, or no function
    of ours and the model's own weights.
    """

    route: str
    token_modules: frozenset[int] | None = None
    map_modules: frozenset[int] = frozenset()
    proven: Proven | None = None  # None = not tested
    causal: bool = True  # False for a model that reads later tokens by design
    windowed: bool = False  # True where masks have windows or chunks, however long
    attends: bool = True  # False for a model that only keeps recurrent states

    @property
    def implementation(self) -> str:
        """The attention implementation to set on the model."""
        return "eager" if self.route == probe.OWN else self.route

    @property
    def arguments(self) -> dict[str, Any]:
        """Forward arguments that the route needs."""
        return {"output_attentions": True} if self.route == probe.OWN else {}

    def recorder(
        self, rows: int, cache: Any, cancelled: Stop, keep_outputs: bool
    ) -> probe.Recorder:
        """A recorder for one pass over `rows` slots, before it runs."""
        return probe.Recorder(
            cancelled=cancelled,
            keep_outputs=keep_outputs,
            rows=rows,
            token_modules=self.token_modules,
            map_modules=self.map_modules,
            spans=_spans(cache, rows),
        )


def routes(model: Any) -> tuple[str, ...]:
    """The routes worth trying on this model, the fastest first."""
    sdpa = (probe.SDPA,) if getattr(model, "_supports_sdpa", False) else ()
    return (*sdpa, probe.EAGER, probe.OWN)


def set_attention(model: Any, name: str) -> None:
    """Make `model` use this attention implementation.  EngineError if it refuses."""
    if model.config._attn_implementation == name:  # setting walks every module: not each pass
        return
    try:
        model.set_attn_implementation(name)
    except (ValueError, KeyError, ImportError) as error:
        raise EngineError("This model takes no other attention function.", str(error)) from error
    if model.config._attn_implementation != name:
        # A model that can't be told may still look the name up in every pass.
        model.config._attn_implementation = name


def _spans(cache: Any, rows: int) -> frozenset[tuple[int, int]]:
    """(keys, first slot) that the cache's layers are going to give to the next `rows` slots."""
    found: set[tuple[int, int]] = set()
    for layer in getattr(cache, "layers", ()):
        try:
            keys, first = layer.get_mask_sizes(rows)
            found.add((int(keys), int(first)))
        except (AttributeError, TypeError, NotImplementedError):
            continue  # a recurrent state has no keys
    return frozenset(found)
