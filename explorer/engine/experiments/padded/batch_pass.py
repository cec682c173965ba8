"""One forward pass over a padded batch, fed rightly or with a mistake made on purpose."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from explorer.engine.callbacks import Stop
from explorer.engine.errors import Cancelled
from explorer.engine.faults import MODEL_FAULTS, explained
from explorer.engine.passes.layout import BatchLayout
from explorer.engine.passes.runner import Runner
from explorer.trace.batch import Mistake

LOGIT_BYTES = 256 << 20  # logits taken from one pass; more slots are read in further passes
_ATTENTION = {"full", "sliding", "chunked"}


class BatchPass:
    """Feeds batches to the runner's model; its cache and recorder are left alone."""

    def __init__(self, runner: Runner, cancelled: Stop) -> None:
        self.model: Any = runner.model
        self._layers = runner.layers
        self._cancelled = cancelled
        self._accepted = runner.accepted
        self._width = runner.loaded.card.vocab_size
        # A recurrent state can't be told afterwards which slots were padding; and a cache that is
        # not fitted to the model by its config was found to work on single rows only.
        kinds = all(kind in _ATTENTION for kind in runner.loaded.card.layer_kinds)
        attends = kinds and runner.capture.attends
        self._caches = runner.cache_offered and attends and runner.cache.kind == "fitted"

    def cache(self) -> Any:
        """A fresh cache for decoding, or None if every step should be recomputed."""
        if not self._caches:
            return None
        try:
            return DynamicCache(config=self.model.config)
        except MODEL_FAULTS:
            return None

    def logits(
        self,
        layout: BatchLayout,
        slots: Sequence[int],
        wrong: Collection[Mistake] = (),
        cache: Any = None,
        first: int = 0,
    ) -> np.ndarray:
        """(B, len(slots), V) float32 of the slots named, reading from slot `first` on.

        `wrong` may hold positions and mask; where to read is the caller's to choose.
        EngineError if the model fails, Cancelled from within a layer.
        """
        wanted = [slot - first for slot in slots]
        arguments = self._arguments(layout, wrong, cache, first, wanted)
        with torch.inference_mode(), self._watched():
            with explained("batch", "Use fewer or shorter prompts, or a smaller dtype."):
                logits = self.model(**arguments).logits
            if logits.shape[1] != len(wanted):  # a model without logits_to_keep gives every slot
                logits = logits[:, wanted]
            numbers: np.ndarray = logits.float().cpu().numpy()
        return numbers

    def in_spans(
        self, layout: BatchLayout, slots: range, wrong: Collection[Mistake] = ()
    ) -> Iterator[tuple[range, np.ndarray]]:
        """The same for many slots, a bounded number of logits at a time."""
        most = max(1, LOGIT_BYTES // (4 * len(layout.rows) * max(1, self._width)))
        for start in range(slots.start, slots.stop, most):
            span = range(start, min(start + most, slots.stop))
            yield span, self.logits(layout, span, wrong)

    def _arguments(
        self,
        layout: BatchLayout,
        wrong: Collection[Mistake],
        cache: Any,
        first: int,
        wanted: Sequence[int],
    ) -> dict[str, Any]:
        device = self.model.device
        mask = torch.tensor([row.attention_mask for row in layout.rows], device=device)
        arguments: dict[str, Any] = {
            "input_ids": torch.tensor([row.ids[first:] for row in layout.rows], device=device),
            # No mask at all would let transformers take restarting positions for packed texts.
            "attention_mask": torch.ones_like(mask) if "mask" in wrong else mask,
            "position_ids": torch.tensor(
                [row.position_ids[first:] for row in layout.rows], device=device
            ),
            "use_cache": cache is not None,
            "cache": cache,
            "logits_to_keep": torch.tensor(wanted, device=device),
        }
        if "positions" in wrong:
            del arguments["position_ids"]
        return self._accepted(arguments)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """While inside, a cancelled request ends at the next layer."""

        def look(module: Any, args: Any) -> None:
            if self._cancelled():
                raise Cancelled

        handles = [layer.register_forward_pre_hook(look) for layer in self._layers]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
