"""How the layers of a model write to the residual stream, found by trying on a dozen tokens.

For each layer: which modules' outputs add up to what the layer changed of its stream.  Nothing is
known of the architecture beforehand; a layer without such a sum is refused in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from explorer.engine.callbacks import Stop
from explorer.engine.capture.attention_sites import sites
from explorer.engine.capture.probe import Call
from explorer.engine.capture.timed_parts import parts_of
from explorer.engine.errors import BadInput
from explorer.engine.inside.calls import CallWatch, ModuleCall, together
from explorer.engine.inside.streams import StreamWatch, Visit
from explorer.engine.inside.sums import find_sum
from explorer.engine.passes.generate import forward
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest.selftest import LENGTH, sample_ids
from explorer.trace.inside.stream import WriteKind
from explorer.trace.request import RunRequest

# Largest difference that counts as equal, relative to the largest entry of what a layer changed.
TOLERANCE = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 2e-2}
MOST_CANDIDATES = 40
REPEATED = "This model runs its layers more than once, so what one layer writes can't be told apart"


@dataclass(frozen=True, slots=True)
class Write:
    """A module of a layer whose output, times `factor`, is added to the stream."""

    name: str  # inside its layer, such as "self_attn.o_proj"
    kind: WriteKind
    factor: float = 1.0
    call: int = 0  # which of the module's calls in a pass
    # Where the write is a norm: the module whose output it takes, and which call of it.
    source: str = ""
    projection: str = ""  # the module that joins the heads' outputs to this write
    heads: int = 0  # that it joins; 0 = not known


@dataclass(frozen=True, slots=True)
class LayerRoute:
    """What one layer writes; no writes and a reason where no sum was found."""

    layer: int
    writes: tuple[Write, ...]
    gap: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """Every layer's."""

    layers: tuple[LayerRoute, ...]

    @property
    def reason(self) -> str:
        """Why there is no sum, of the first layer without one; empty if all have one."""
        return next((layer.reason for layer in self.layers if layer.reason), "")


_FOUND: WeakKeyDictionary[Runner, Route] = WeakKeyDictionary()


def route_of(runner: Runner, stop: Stop) -> Route:
    """The route of this model, tried once; BadInput where no sum exists."""
    found = known_route(runner, stop)
    if found.reason:
        raise BadInput(found.reason)
    return found


def known_route(runner: Runner, stop: Stop) -> Route:
    """The same, layers without a sum included."""
    if runner not in _FOUND:
        _FOUND[runner] = find_route(runner, stop)
    return _FOUND[runner]


def find_route(runner: Runner, stop: Stop) -> Route:
    """Try it: one uncached pass over a dozen tokens, with every module of every layer watched."""
    vocabulary = runner.model.get_input_embeddings().num_embeddings
    ids = sample_ids(vocabulary, set(runner.loaded.card.eos_ids))
    layout = Layout(ids, (1,) * LENGTH, tuple(range(LENGTH)))
    streams = StreamWatch(runner.layers)
    calls = CallWatch(modules_in(runner, range(len(runner.layers))))
    rows = range(LENGTH)
    with together(streams.watching, calls.watching)(LENGTH, rows):
        done = forward(runner, RunRequest(), layout, 0, None, stop, keep_outputs=True)
    if len({visit.layer for visit in streams.visits}) < len(streams.visits):
        return Route((LayerRoute(0, (), 0.0, f"{REPEATED}."),))
    trial = _Trial(runner, done, calls.calls)
    return Route(tuple(trial.layer(visit) for visit in streams.visits))


def modules_in(runner: Runner, layers: Iterable[int], names: Sequence[str] = ()) -> dict[str, Any]:
    """Modules inside these layers by "layer/name"; all of them, or those named."""
    return {
        f"{layer}/{name}": module
        for layer in layers
        for name, module in runner.layers[layer].named_modules()
        if name and (not names or name in names)
    }


@dataclass(frozen=True, slots=True)
class _Output:
    """One call's output that has the stream's shape: (T, d) float64."""

    name: str
    call: int
    vector: np.ndarray
    also: tuple[str, ...]  # modules around it that gave the very same
    given: torch.Tensor | None


class _Trial:
    """The pass that was watched."""

    def __init__(self, runner: Runner, done: ForwardPass, calls: Sequence[ModuleCall]) -> None:
        self._runner = runner
        self._parts = parts_of(runner.model)
        self._tolerance = TOLERANCE.get(runner.loaded.card.dtype, 2e-5)
        self._calls: dict[int, list[ModuleCall]] = {}
        for call in calls:
            layer, _, name = call.name.partition("/")
            self._calls.setdefault(int(layer), []).append(replace(call, name=name))
        self._attention: dict[int, list[Call]] = {}
        for site in sites(done.recorder):
            if site.call is not None:
                self._attention.setdefault(site.call.layer, []).append(site.call)
        self._own = {site.layer for site in sites(done.recorder) if site.own is not None}
        self._last: tuple[str, ...] = ()  # the names that made up the layer before

    def layer(self, visit: Visit) -> LayerRoute:
        before, after = _flat(visit.entered), _flat(visit.left)
        if before is None or after is None or before.shape != after.shape:
            return LayerRoute(visit.layer, (), 0.0, f"{_nowhere(visit.layer)}.")
        outputs = self._outputs(visit.layer, before, after)
        change, rounding = after - before, rounding_of(before, after, visit.left.dtype)
        expected = [one for one in outputs if one.name in self._last]
        found = None
        often = Counter(call.name for call in self._calls.get(visit.layer, []))
        once = [one for one in outputs if often[one.name] == 1]
        for some in (expected, once, outputs):
            vectors = [one.vector for one in some]
            found = find_sum(vectors, change, rounding, self._tolerance)
            if found is not None:
                places, factors, gap = found
                self._last = tuple(some[place].name for place in places)
                writes = [
                    self._write(visit.layer, some[place], float(factor))
                    for place, factor in zip(places, factors, strict=True)
                ]
                return LayerRoute(visit.layer, tuple(writes), gap)
        return LayerRoute(visit.layer, (), 0.0, f"{_nowhere(visit.layer)}.")

    def _outputs(self, layer: int, before: np.ndarray, after: np.ndarray) -> list[_Output]:
        """Outputs of the stream's shape, each once; not the stream itself, before or after."""
        found: list[_Output] = []
        counts: dict[str, int] = {}
        for call in self._calls.get(layer, []):
            counts[call.name] = counts.get(call.name, -1) + 1
            vector = None if call.gave is None else _flat(call.gave)
            if vector is None or vector.shape != before.shape or not vector.any():
                continue
            if np.array_equal(vector, before) or np.array_equal(vector, after):
                continue
            same = next(
                (i for i, one in enumerate(found) if np.array_equal(one.vector, vector)), None
            )
            if same is None:
                one = _Output(call.name, counts[call.name], vector, (), call.given)
                found.append(one)
            elif found[same].name.startswith(f"{call.name}.") and "expert" in call.name:
                # One expert took every token of this trial: on others it will not.
                old = found[same]
                found[same] = _Output(call.name, 0, vector, (*old.also, old.name), call.given)
            else:
                found[same] = replace(found[same], also=(*found[same].also, call.name))
        return found[:MOST_CANDIDATES]

    def _write(self, layer: int, output: _Output, factor: float) -> Write:
        names = (output.name, *output.also)
        source = self._source(layer, output)
        kind = self._kind(layer, (*names, source))
        write = Write(output.name, kind, factor, output.call, source)
        return self._with_heads(layer, write) if kind == "attention" else write

    def _source(self, layer: int, output: _Output) -> str:
        """The module whose output this one took, where it is a norm on a part's output."""
        module = self._runner.layers[layer].get_submodule(output.name)
        if "norm" not in type(module).__name__.lower() or output.given is None:
            return ""
        gave = ((call.name, call.gave) for call in self._calls[layer] if call.gave is not None)
        return next((name for name, one in gave if torch.equal(one, output.given)), "")

    def _kind(self, layer: int, names: Sequence[str]) -> WriteKind:
        """By where the write, or what a norm took, stands: beside attention, or by its name."""
        parts, module = self._parts, self._runner.layers[layer]
        paths = [set(_path(module, name)) for name in names if name]
        attending = {call.module for call in self._attention.get(layer, [])}
        for child in module.children():
            own = {id(one) for one in child.modules()}
            if attending & own and any(id(child) in path for path in paths):
                return "attention"
        if any(id(part) in path for part in parts.mlp[layer] for path in paths):
            return "mlp"
        if any(id(part) in path for part in parts.attention[layer] for path in paths):
            return "attention" if layer in self._own else "mixer"
        classes = " ".join(type(one).__name__.lower() for one in _modules(module, names))
        if any(word in classes for word in ("mlp", "moe", "feedforward", "ffn")):
            return "mlp"
        words = ("mamba", "mixer", "conv", "rwkv", "lstm", "recurrent", "ssm")
        return "mixer" if any(word in classes for word in words) else "other"

    def _with_heads(self, layer: int, write: Write) -> Write:
        """With the projection that joins the heads, if it is one that does just that."""
        name = write.source or write.name
        calls = [call for call in self._calls[layer] if call.name == name]
        kernels = self._attention.get(layer, [])
        if len(calls) != 1 or len(kernels) != 1 or write.call or calls[0].given is None:
            return write
        module, output = self._runner.layers[layer].get_submodule(name), kernels[0].output
        if output is None or output.ndim != 4 or not is_affine(module, calls[0]):
            return write
        heads, width = output.shape[2], output.shape[3]
        if calls[0].given.shape[-1] != heads * width:
            return write
        return replace(write, projection=name, heads=heads)


@torch.inference_mode()
def is_affine(module: Any, call: ModuleCall) -> bool:
    """True if the module's halves add up: f(a) + f(b) - f(0) = f(a + b), on what it was given."""
    given = call.given
    if given is None or call.gave is None or next(module.children(), None) is not None:
        return False
    half = given.clone()
    half[..., : half.shape[-1] // 2] = 0
    try:
        nothing = module(torch.zeros_like(given))
        joined = module(half) + module(given - half) - nothing
    except (RuntimeError, TypeError, ValueError):
        return False
    if not isinstance(joined, torch.Tensor) or joined.shape != call.gave.shape:
        return False
    size = max(1e-30, float(call.gave.abs().max()))
    limit = 1e-4 if given.dtype == torch.float32 else 5e-2
    return float((joined - call.gave).abs().max()) <= limit * size


def _flat(tensor: torch.Tensor) -> np.ndarray | None:
    """(T, d) float64 of a stream or an output; None if it has other axes than these."""
    shape = [size for size in tensor.shape if size != 1]
    if len(shape) != 2:
        return None
    return tensor.reshape(shape).double().cpu().numpy()


def rounding_of(before: np.ndarray, after: np.ndarray, dtype: torch.dtype) -> np.ndarray:
    """How much of each entry adding to the stream itself may lose: its entries can be huge."""
    return 2 * torch.finfo(dtype).eps * (np.abs(before) + np.abs(after))


def _modules(layer: Any, names: Sequence[str]) -> list[Any]:
    """The modules named and those around them, the layer left out."""
    whole = [name.split(".")[: i + 1] for name in names if name for i in range(name.count(".") + 1)]
    return [layer.get_submodule(".".join(part)) for part in whole]


def _path(layer: Any, name: str) -> list[int]:
    """Ids of a module and of those around it inside its layer."""
    return [id(module) for module in _modules(layer, [name])]


def _nowhere(layer: int) -> str:
    return (
        f"In layer {layer} of this model no outputs of its parts add up to the change of the "
        "residual stream, so what each part wrote can't be shown"
    )
