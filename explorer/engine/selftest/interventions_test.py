"""What can be changed inside this model: heads, cells and scores of attention, MLPs, layers.

Each finding is one uncached pass under an intervention; all of them together are tried through the
cache.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import torch

from explorer.engine.callbacks import Stop
from explorer.engine.capture import probe
from explorer.engine.capture.attention_sites import sites
from explorer.engine.capture.timed_parts import parts_of
from explorer.engine.errors import Cancelled
from explorer.engine.passes.generate import inputs
from explorer.engine.passes.interventions import Forward, first_of, forward_of, writing_nothing
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import measured_gaps
from explorer.engine.selftest.capture_route import Trial
from explorer.trace.interventions.kinds import Cells, Intervention, OtherRun, Patch, Scale, Silence
from explorer.trace.request import RunRequest
from explorer.trace.rounding import largest

CACHED_STEPS = 2
# How far a layer's change may be from its MLP's output times a constant, relative to the stream.
_ROUNDING = {"float32": 1e-4, "float16": 5e-3, "bfloat16": 4e-2}
NO_ATTENTION = "this model has no attention"
OWN_CODE = "attention runs in this model's own code, which can't be changed from outside"
NOT_EXACT = "not every map can be shown here, so changes of attention can't be verified"

Found = tuple[bool, str, float | None]  # offered, in words, measured


@dataclass(slots=True)
class InterventionTest:
    """The findings on one runner; `reference` is the pass without any intervention."""

    runner: Runner
    layout: Layout
    trial: Trial
    limit: float  # on logits
    stop: Stop
    _worked: list[Intervention] = field(default_factory=list)

    def heads(self) -> Found:
        """Silencing every head of every layer changes the logits."""
        why = self._closed()
        if why:
            return False, why, None
        calls = [site.call for site in sites(self.trial.reference.recorder) if site.call]
        every = [
            Silence(layer=call.layer, head=head)
            for call in calls
            for head in range(call.query.shape[1])
        ]
        found = self._finding(every, self._pass(every), "heads can be silenced one by one")
        self._worked = self._worked[::2]  # tried with the cache, too: some must be left
        return found

    def cells(self) -> Found:
        """A cut cell's weight is exactly 0, and the kernel's output is that of the drawn map."""
        why = self._closed()
        if why:
            return False, why, None
        last = len(self.layout.ids) - 1
        everywhere = Cells(queries=(last, last), keys=(last - 1, last - 1))
        early = Cells(queries=(3, 4), back=(1, 1))
        in_one_head = Cells(head=0, queries=(last - 2, last - 2), keys=(last - 2, last - 2))
        asked = [everywhere, early, in_one_head]
        done = self._pass(asked)
        gap = self._drawn_gap(done)
        left = 0.0
        for one in measured_gaps.drawn(done):
            for head in range(one.record.heads):
                weights = one.weights(head)
                cut = [weights[last, -2], weights[3, 2], weights[4, 3]]
                cut += [weights[last - 2, last - 2]] if head == 0 else []
                left = max(left, *map(float, cut))
        if left or gap > self.trial.limit:
            return False, "cutting cells of attention does not have the same effect here", gap
        words = "cells of attention can be cut and allowed"
        return self._finding(asked, done, words)

    def scores(self) -> Found:
        """With scaled scores, the kernel's output is that of the drawn map."""
        why = self._closed()
        if why:
            return False, why, None
        asked = [Scale(factor=2.0), Scale(head=0, factor=0.25)]
        done = self._pass(asked)
        gap = self._drawn_gap(done)
        if gap > self.trial.limit:
            return False, "scaling attention scores does not have the same effect here", gap
        return self._finding(asked, done, "attention scores can be scaled")

    def mlps(self) -> Found:
        """The modules by which MLPs write to the residual stream, found by leaving them out."""
        runner = self.runner
        runner.mlp_writes = mlp_writes(runner, self.layout, self.stop)
        known = [layer for layer, writes in enumerate(runner.mlp_writes) if writes]
        if not known:
            words = "no layer has an MLP that writes to the residual stream by itself"
            return False, words, None
        words = "the MLP of each layer can be silenced"
        if len(known) < len(runner.layers):
            words = f"the MLP of {len(known)} of {len(runner.layers)} layers can be silenced"
        asked = [Silence(layer=layer, part="mlp") for layer in known]
        return self._finding(asked, self._pass(asked), words)

    def layers(self) -> Found:
        """A silenced layer passes on what it was given."""
        asked = [Silence(layer=len(self.runner.layers) // 2, part="layer")]
        return self._finding(asked, self._pass(asked), "whole layers can be silenced")

    def patched_heads(self) -> Found:
        """Heads give what they gave in another text."""
        why = self._closed()
        if why:
            return False, why, None
        calls = [site.call for site in sites(self.trial.reference.recorder) if site.call]
        every = [(call.layer, head) for call in calls for head in range(call.query.shape[1])]

        def patches(source: OtherRun) -> list[Patch]:
            return [Patch(layer=layer, head=head, source=source) for layer, head in every]

        return self._patched(patches, "the output of heads can be taken from another run")

    def patched_mlps(self) -> Found:
        """The same of what MLPs write."""
        known = [layer for layer, writes in enumerate(self.runner.mlp_writes) if writes]
        if not known:
            words = "no layer has an MLP that writes to the residual stream by itself"
            return False, words, None

        def patches(source: OtherRun) -> list[Patch]:
            return [Patch(layer=layer, part="mlp", source=source) for layer in known]

        return self._patched(patches, "the output of MLPs can be taken from another run")

    def patched_stream(self) -> Found:
        """The whole stream after a layer of another text gives that text's logits."""
        other = self._other()
        asked = [Patch(layer=len(self.runner.layers) // 2, part="stream", source=other)]
        layout = Layout(other.tokens, self.layout.attention_mask, self.layout.position_ids)
        expected = measured_gaps.every_slot(self.runner, RunRequest(), layout, self.stop).logits
        found = self._pass(asked)
        gap = largest(found.logits - expected)
        if gap > self.limit:
            words = "more than the residual stream passes from layer to layer here"
            return False, words, gap
        return self._moved(asked, found, "the residual stream can be taken from another run")

    def _other(self) -> OtherRun:
        """Another text of the same length."""
        return OtherRun(tokens=self.layout.ids[::-1])

    def _patched(self, patches: Callable[[OtherRun], list[Patch]], words: str) -> Found:
        """Offered if what the text itself gives changes nothing, and another text does."""
        own = self._pass(patches(OtherRun(tokens=self.layout.ids)))
        gap = largest(own.logits - self.trial.reference.logits)
        if gap > self.limit:
            return False, "putting back what a part gave changes the results here", gap
        asked = patches(self._other())
        return self._moved(asked, self._pass(asked), words)

    def _moved(self, asked: list[Patch], done: ForwardPass, words: str) -> Found:
        moved = largest(done.logits - self.trial.reference.logits)
        if not moved > self.limit:
            return False, "it changes nothing here", moved
        # With the cache only a few positions are patched: the rest is to be tried, too.
        last = len(self.layout.ids) - 1
        for first in (2, last - 1):
            span = (first, first + 1)
            self._worked += [
                msgspec.structs.replace(one, positions=span, first=first) for one in asked[1::4]
            ] or [msgspec.structs.replace(asked[0], positions=span, first=first)]
        return True, words, moved

    def same_with_cache(self) -> bool:
        """True if everything that works gives the same results with the cache."""
        runner, request = self.runner, RunRequest(interventions=tuple(self._worked))
        if not runner.cache_offered or not self._worked:
            return True
        expected = self._pass(self._worked).logits[-CACHED_STEPS - 1 :]
        with runner.own_cache_aside():
            gap = measured_gaps.cached_gap(runner, request, self.layout, expected, self.stop)
        return gap <= self.limit

    def _closed(self) -> str:
        """Why attention can't be changed here; empty if it can."""
        trial = self.trial
        if not trial.attending:
            return NO_ATTENTION
        if self.runner.capture.route == probe.OWN:
            return OWN_CODE
        found = sites(trial.reference.recorder)
        numbered = all(site.call is None or site.call.layer == site.layer for site in found)
        return "" if trial.exact and not trial.failed and numbered else NOT_EXACT

    def _pass(self, asked: Sequence[Intervention]) -> ForwardPass:
        request = RunRequest(interventions=tuple(asked))
        return measured_gaps.every_slot(self.runner, request, self.layout, self.stop)

    def _drawn_gap(self, done: ForwardPass) -> float:
        """Kernel output against rebuilt maps; infinite where a layer's map is missing."""
        gaps = measured_gaps.kernel_output(done, self.layout)
        if not self.trial.exact <= gaps.keys():
            return float("inf")
        return max(gaps.values())

    def _finding(self, asked: Sequence[Intervention], done: ForwardPass, words: str) -> Found:
        """Offered if it moves the logits."""
        moved = largest(done.logits - self.trial.reference.logits)
        if not moved > self.limit:
            return False, "it changes nothing here", moved
        self._worked += asked
        return True, words, moved


def mlp_writes(runner: Runner, layout: Layout, stop: Stop) -> tuple[tuple[Any, ...], ...]:
    """Per layer: the modules by which its MLP writes to the stream; empty where none is known.

    A module writes to the stream if leaving its output out changes the layer's output by just that,
    times a constant, and something is left.  Where the MLP itself does not, because a norm follows,
    the next module of the layer that does is taken.
    """
    parts = parts_of(runner.model)
    found: list[tuple[Any, ...]] = [()] * len(parts.layers)
    rounding = _ROUNDING.get(runner.loaded.card.dtype, 1e-4)

    def trying(layer: int) -> Callable[[Forward], Forward]:
        def wrap(forward: Forward) -> Forward:
            def tried(*args: Any, **kwargs: Any) -> Any:
                if stop():
                    raise Cancelled
                again = _LayerCall(forward, args, kwargs, rounding)
                found[layer] = again.writes(parts.layers[layer], parts.mlp[layer])
                return again.whole

            return tried

        return wrap

    arguments = inputs(runner, layout, 0, None, [layout.readout])
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        for layer, module in enumerate(parts.layers):
            if parts.mlp[layer]:
                stack.enter_context(forward_of(module, trying(layer)))
        runner.model(**arguments)
    return tuple(found)


class _LayerCall:
    """One call of a layer, to be made again with some module's output left out."""

    def __init__(
        self, forward: Forward, args: tuple[Any, ...], kwargs: dict[str, Any], rounding: float
    ) -> None:
        self._forward, self._args, self._kwargs = forward, args, kwargs
        self._rounding = rounding
        self.whole: Any = None

    def writes(self, layer: Any, mlp: tuple[Any, ...]) -> tuple[Any, ...]:
        """The modules by which `mlp` writes; the layer's own output is in `whole` then."""
        children = list(layer.children())
        outputs: dict[int, torch.Tensor] = {}  # in the order in which they ended
        with contextlib.ExitStack() as stack:
            for child in children:
                stack.enter_context(forward_of(child, _keeping(outputs, id(child))))
            self.whole = self._call()
        direct = tuple(one for one in mlp if id(one) in outputs and self._writes(one, outputs))
        if direct:
            return direct
        ran = [key for key in outputs if any(key == id(child) for child in children)]
        last = max((ran.index(id(one)) for one in mlp if id(one) in ran), default=len(ran))
        by_id = {id(child): child for child in children}
        later = (by_id[key] for key in ran[last + 1 :])
        return next(((one,) for one in later if self._writes(one, outputs)), ())

    def _writes(self, module: Any, outputs: dict[int, torch.Tensor]) -> bool:
        whole = first_of(self.whole).float()
        with forward_of(module, writing_nothing):
            left = first_of(self._call()).float()
        change, output = whole - left, outputs[id(module)].float()
        if output.numel() != change.numel():
            return False
        output = output.reshape(change.shape)
        square = float((output * output).sum())
        if not square > 0:
            return False
        factor = float((change * output).sum()) / square
        gap = float((change - factor * output).abs().max())
        near = self._rounding * float(whole.abs().max())
        return factor > 0 and gap <= near < float(left.abs().max())

    def _call(self) -> Any:
        args = tuple(one.clone() if isinstance(one, torch.Tensor) else one for one in self._args)
        return self._forward(*args, **self._kwargs)


def _keeping(outputs: dict[int, torch.Tensor], key: int) -> Callable[[Forward], Forward]:
    def wrap(forward: Forward) -> Forward:
        def keeping(*args: Any, **kwargs: Any) -> Any:
            output = forward(*args, **kwargs)
            with contextlib.suppress(TypeError, IndexError, KeyError):
                if isinstance(first_of(output), torch.Tensor):
                    outputs[key] = first_of(output)
            return output

        return keeping

    return wrap
