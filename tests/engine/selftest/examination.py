"""One architecture put to the test: what the program shows against transformers alone.

Nothing here takes the self-test's word.  Logits are compared with an uncached run of a second
copy of the model that nothing of ours ever touched, maps with the weights of a third copy built
with eager attention.  What is offered and differs is "wrong"; what is refused has its reason.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from explorer.engine.capture import attention_sites
from explorer.engine.errors import EngineError
from explorer.engine.model_files.find_layers import decoder_layers
from explorer.engine.passes import masks
from explorer.engine.passes.generate import forward, generate
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import measured_gaps, selfcheck, selftest
from explorer.trace.interventions.kinds import Intervention, OtherRun, Patch, Silence, brief
from explorer.trace.interventions.lines import read
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.rounding import largest
from explorer.trace.trace import Trace
from tests.engine.architectures import VOCABULARY, tiny
from tests.engine.tiny import runner_on

# Windows of 16: past the dozen tokens of the self-test, as in real models, and short of these.
PROMPT = tuple(5 + 7 * i % 83 for i in range(24))
OTHER = tuple(3 + 11 * i % 89 for i in range(24))  # what patches are taken from
INTO, FIRST = (10, 12), 8  # positions that patches write, and where they begin in the other text
STEPS = 3  # a prefill and two more
PADS = 3
WEIGHTS = 1e-4
Edit = Callable[[torch.Tensor], None]  # changes the rows (T, …) of an output in place
_FINDINGS = ("maps", "capture", "prefix", "causal_off", "cache", "undo", "left", "right",
             "changed", "patched")  # fmt: skip
NOTHING_TO_SHOW = (attention_sites.NO_ATTENTION, attention_sites.NOT_RUN)


@dataclass(slots=True)
class Row:
    """What was found of one type; `wrong` must stay empty."""

    kind: str
    maps: str = ""  # how many layers give what: 2 qk, 2 none
    proof: str = ""  # what the maps were compared with
    capture: str = ""
    prefix: str = ""
    causal_off: str = ""
    cache: str = ""
    undo: str = ""
    left: str = ""
    right: str = ""
    changed: str = ""  # interventions that were compared, or why there are none
    patched: str = ""  # the same of patches from another text
    wrong: list[str] = field(default_factory=list)

    @property
    def exact(self) -> bool:
        """True if every layer that attends to tokens has its exact map in every step."""
        return self.capture == "exact"


@dataclass(slots=True)
class Examination:
    """The copies of one type, and what is found of them."""

    runner: Runner
    plain: Any
    eager: Any
    row: Row
    limit: float = 0.0

    @classmethod
    def of(cls, kind: str) -> Examination:
        """Three equal models; the runner's has been self-tested, as when a user opens it."""
        runner = runner_on(tiny(kind))
        selftest.run(runner)
        made = cls(runner, tiny(kind), tiny(kind, attention="eager"), Row(kind))
        with torch.inference_mode():
            made.eager(**_inputs(PROMPT))  # some give no weights in their very first pass
        # Rounding grows with the logits, so the tolerance of 1e-4 is meant for logits up to 30.
        made.limit = 1e-4 * max(1.0, float(np.abs(made.logits(PROMPT)).max()) / 30)
        return made

    def logits(self, ids: tuple[int, ...]) -> np.ndarray:
        """(T, V) of the untouched copy, in one pass without a cache."""
        with torch.inference_mode():
            return self.plain(**_inputs(ids)).logits[0].float().numpy()

    def run(self, request: RunRequest, chosen: tuple[int, ...] = (), steps: int = STEPS) -> Trace:
        """A trace as the window gets it."""
        runner = self.runner
        trace = Trace(
            request=request, card=runner.loaded.card, prompt=runner.prompt(request).tokens
        )

        def emit(step: Any, token: Any) -> None:
            nonlocal trace
            trace = trace.appended(step, token)

        generate(runner, runner.prompt(request), chosen, steps, Sampling, emit)
        return trace

    def check(self, words: str, gap: float, limit: float) -> bool:
        """Writes down what differs."""
        if not gap <= limit:
            self.row.wrong.append(f"{words} by {gap:.1e}")
        return gap <= limit

    def offers(self, name: str) -> bool:
        return self.runner.loaded.card.offers(name)

    def words(self, name: str) -> str:
        return self.runner.loaded.card.words(name)


def examine(kind: str) -> Row:
    """Everything about one type.  Raises what building or loading raises."""
    this = Examination.of(kind)
    try:
        trace = this.run(_request())
    except EngineError as error:  # one sentence instead of a run: the whole type is refused
        return Row(kind, **dict.fromkeys(_FINDINGS, error.sentence))
    _logits_are_the_models(this, trace)
    _maps_are_the_models(this, trace)
    _prefix_property(this)
    _causal_off(this)
    _step_back(this, trace)
    _padding(this)
    _own_check(this, trace)
    _interventions(this)
    _patches(this)
    return this.row


def _request(**changes: Any) -> RunRequest:
    return RunRequest(prompt=" ".join(map(str, PROMPT)), **changes)


def _inputs(ids: tuple[int, ...]) -> dict[str, Any]:
    tensor = torch.tensor([ids])
    return {"input_ids": tensor, "attention_mask": torch.ones_like(tensor), "use_cache": False}


def _read(trace: Trace, step: int) -> tuple[int, ...]:
    return tuple(token.id for token in trace.tokens[: trace.read_slots(step)])


def _logits_are_the_models(this: Examination, trace: Trace) -> None:
    """Every step, cached or not, against one uncached pass of the untouched copy."""
    for step in trace.steps:
        gap = largest(step.logits - this.logits(_read(trace, step.index))[-1])
        this.check(f"logits of step {step.index} ({step.phase})", gap, this.limit)
    cached = [step.phase for step in trace.steps[1:]] == ["decode"] * (STEPS - 1)
    this.row.cache = "exact" if cached else this.words("cache")
    if cached != this.offers("cache"):
        this.row.wrong.append("the cache is offered and not used, or used and not offered")


def _maps_are_the_models(this: Examination, trace: Trace) -> None:
    first = trace.steps[0].layers
    kinds = [record.kind if record.kind != "absent" else "none" for record in first]
    this.row.maps = ", ".join(f"{kinds.count(k)} {k}" for k in dict.fromkeys(kinds))
    absent = {r.reason for step in trace.steps for r in step.layers if r.kind == "absent"}
    refused = absent - set(NOTHING_TO_SHOW)
    this.row.capture = "; ".join(sorted(refused)) or "exact"
    if all(kind == "none" for kind in kinds):
        this.row.capture = this.words("capture")
        return
    proofs = {_maps_of_step(this, trace, step.index) for step in trace.steps}
    this.row.proof = " and ".join(sorted(proofs))


def _maps_of_step(this: Examination, trace: Trace, step: int) -> str:
    """Compares every map of one step; returns with what."""
    records = trace.steps[step].layers
    attending = [r for r in records if r.kind != "absent" or r.reason not in NOTHING_TO_SHOW]
    own = _eager_maps(this, _read(trace, step))
    if len(own) != len(attending):
        _kernel_outputs(this, trace, step)
        return "kernel output"
    this_step = trace.steps[step]
    rows = slice(this_step.first_slot, trace.read_slots(step))
    for record, theirs in zip(attending, own, strict=True):
        if record.kind == "absent":
            continue
        width = trace.weights(step, record.layer, 0).shape[1]
        span = slice(record.first_key, record.first_key + width)
        outside = np.delete(theirs[:, rows], np.r_[span], axis=2)
        gap = largest(outside)
        for head in range(record.heads):
            a, b = trace.weights(step, record.layer, head), theirs[head, rows, span]
            if record.sinks is not None:  # some give their weights without the sink's share
                a, b = measured_gaps.shares(a), measured_gaps.shares(b)
            gap = max(gap, largest(a - b))
        this.check(f"map of step {step} layer {record.layer}", gap, WEIGHTS)
    if any(record.sinks is not None for record in records):
        _kernel_outputs(this, trace, step)
        return "eager weights, kernel output"
    return "eager weights"


def _eager_maps(this: Examination, ids: tuple[int, ...]) -> list[np.ndarray]:
    """The (H, T, T) weights of the eager copy, one per call of attention that gives any."""
    with torch.inference_mode():
        output = this.eager(**_inputs(ids), output_attentions=True)
    given = getattr(output, "attentions", None) or ()
    return [a[0].float().numpy() for a in given if a is not None and a.ndim == 4]


def _kernel_outputs(this: Examination, trace: Trace, step: int) -> None:
    """Where the eager copy gives no weights: weights · V against what the kernel gave."""
    ids = _read(trace, step)
    layout = measured_gaps.Layout(ids, (1,) * len(ids), tuple(range(len(ids))))
    done = forward(this.runner, _request(), layout, 0, None, keep_outputs=True)
    gaps = measured_gaps.kernel_output(done, layout)
    rows = slice(trace.steps[step].first_slot, len(ids))
    for one in measured_gaps.drawn(done):
        layer = one.record.layer
        if trace.record(step, layer).kind == "absent":
            continue
        gap = gaps.get(layer, np.inf)
        first = trace.record(step, layer).first_key
        for head in range(one.record.heads):
            ours = trace.weights(step, layer, head)
            whole = one.weights(head, rows)
            gap = max(gap, largest(whole[:, :first]))
            gap = max(gap, largest(ours - whole[:, first:]))
        this.check(f"map of step {step} layer {layer}", gap, WEIGHTS)


def _prefix_property(this: Examination) -> None:
    """Changing the last token leaves earlier logits alone, or the program says it does not."""
    other = (*PROMPT[:-1], (PROMPT[-1] + 1) % VOCABULARY)
    moved = largest((this.logits(PROMPT) - this.logits(other))[:-1])
    this.row.prefix = "causal" if moved <= this.limit else "reads later tokens"
    if moved > this.limit and "attends to later tokens" not in this.words("causal_off"):
        this.row.wrong.append("a model that is not causal is taken for one")


def _causal_off(this: Examination) -> None:
    """Later tokens are seen, windows and chunks stay, and all is put back afterwards."""
    if not this.offers("causal_off"):
        this.row.causal_off = this.words("causal_off")
        return
    this.row.causal_off = "exact"
    masked = this.run(_request(cache=False), steps=1)
    opened = this.run(_request(causal_mask=False), steps=1)
    _future_is_seen(this, masked, opened)
    _opened_maps_are_the_models(this, opened)
    before = _every_logit(this, _request(causal_mask=False), PROMPT)
    other = (*PROMPT[:-1], (PROMPT[-1] + 1) % VOCABULARY)
    moved = largest((before - _every_logit(this, _request(causal_mask=False), other))[:-1])
    if moved <= this.limit:
        this.row.wrong.append("without the mask, no earlier logits move")
    again = this.run(_request(cache=False), steps=1)
    if not np.array_equal(again.steps[0].logits, masked.steps[0].logits):
        this.row.wrong.append("the mask was not put back as it was")


def _future_is_seen(this: Examination, masked: Trace, opened: Trace) -> None:
    for record in opened.steps[0].layers:
        if record.kind == "absent":
            continue
        layer = record.layer
        on = np.array([masked.weights(0, layer, h) > 0 for h in range(record.heads)]).any(axis=0)
        off = np.array([opened.weights(0, layer, h) > 0 for h in range(record.heads)]).any(axis=0)
        if np.triu(on, 1).any():
            this.row.wrong.append(f"the masked map of layer {layer} sees later tokens")
        right = (off == (on | on.T)).all() if _is_regular(on) else np.triu(off, 1).any()
        if not right:
            this.row.wrong.append(f"without the mask, layer {layer} sees other keys than it should")


def _is_regular(on: np.ndarray) -> bool:
    """True for a plain, windowed or chunked causal map; False where keys are chosen by content."""
    behind = np.subtract.outer(np.arange(len(on)), np.arange(len(on)))
    causal = behind >= 0
    bands = [causal & (behind < width) for width in range(1, len(on) + 1)]
    place = np.arange(len(on))
    chunks = [causal & np.equal.outer(place // size, place // size) for size in range(2, len(on))]
    return any((on == pattern).all() for pattern in bands + chunks)


def _opened_maps_are_the_models(this: Examination, opened: Trace) -> None:
    attending = [r for r in opened.steps[0].layers if r.kind != "absent"]
    with masks.causal_off(this.eager):
        own = _eager_maps(this, PROMPT)
    if len(own) != len(attending):
        return  # the kernel's output was compared when the model was tested
    for record, theirs in zip(attending, own, strict=True):
        gaps = [
            largest(
                measured_gaps.shares(opened.weights(0, record.layer, head))
                - measured_gaps.shares(theirs[head])
            )
            for head in range(record.heads)
        ]
        this.check(f"map without the mask of layer {record.layer}", max(gaps), WEIGHTS)


def _every_logit(this: Examination, request: RunRequest, ids: tuple[int, ...]) -> np.ndarray:
    layout = measured_gaps.Layout(ids, (1,) * len(ids), tuple(range(len(ids))))
    return forward(this.runner, request, layout, 0, None, at=range(len(ids))).logits


def _step_back(this: Examination, trace: Trace) -> None:
    """Two steps back, another token instead, and on: as if it had never gone elsewhere."""
    this.run(_request())  # the cache holds this run again
    other = (trace.chosen_ids[0] + 1) % VOCABULARY
    branch = this.run(_request(), (other,), 2)
    ids = (*PROMPT, other)
    for step in branch.steps:
        gap = largest(step.logits - this.logits(ids)[-1])
        this.check(f"logits after stepping back, pass over {len(ids)}", gap, this.limit)
        ids = (*ids, step.draw.token_id)
    first, offered = branch.steps[0], this.offers("undo")
    if first.phase != "decode":
        this.row.undo = "computed anew"
    elif not first.rebuilt_tokens:
        this.row.undo = "crop"
    else:
        this.row.undo = "crop, prefill once a window is full" if offered else "prefill"
    if this.row.undo == "crop" and not offered:
        this.row.wrong.append("the cache is cut although that is not offered")


def _padding(this: Examination) -> None:
    for side in ("left", "right"):
        offered = this.offers(f"{side}_padding")
        setattr(this.row, side, "exact" if offered else this.words(f"{side}_padding"))
        if not offered:
            continue
        padded = this.run(_request(padding=side, pad=PADS))
        ids = PROMPT
        for step in padded.steps:
            gap = largest(step.logits - this.logits(ids)[-1])
            this.check(f"logits of step {step.index}, padded {side}", gap, this.limit)
            ids = (*ids, step.draw.token_id)


def _own_check(this: Examination, trace: Trace) -> None:
    """The self-check that the window makes of every run: it runs on this type, and passes."""
    failed = [
        check.name
        for check in selfcheck.check(this.runner, trace.request, trace.chosen_ids)
        if not check.passed
    ]
    if failed:
        this.row.wrong.append(f"self-check: {', '.join(failed)}")


def _interventions(this: Examination) -> None:
    """What is offered holds with and without the cache, and its proof does."""
    layer = next((one for one, writes in enumerate(this.runner.mlp_writes) if writes), 0)
    lines = {
        "silence_heads": ("silence {0}.1",),
        "cut_cells": ("cut {0}.2:20<-19", "cut *.*:22<-22", "cut {0}.0:*<-q-3+"),
        "scale_scores": ("scale {0}.3:2", "scale *.0:0.5"),
        "silence_mlp": (f"silence {layer}.mlp",),
        "silence_layers": ("silence 1",),
    }
    at = _attending(this)
    offered = {name: some for name, some in lines.items() if this.offers(name)}
    for name, some in offered.items():
        _holds(this, name, tuple(read(line.format(at)) for line in some))
    by_hand = {
        "silence_heads": lambda: _head_by_hand(this, at),
        "cut_cells": lambda: _cell_by_hand(this),
        "silence_mlp": lambda: _mlp_by_hand(this, layer),
        "silence_layers": lambda: _layer_by_hand(this, 1),
    }
    this.row.changed = _found(this, list(lines), by_hand)


def _patches(this: Examination) -> None:
    """The same of what is taken from another text."""
    layer = next((one for one, writes in enumerate(this.runner.mlp_writes) if writes), 0)
    at = _attending(this)
    asked = {
        "patch_heads": _patch(layer=at, head=1),
        "patch_mlp": _patch(layer=layer, part="mlp"),
        "patch_stream": _patch(layer=1, part="stream"),
    }
    offered = tuple(one for name, one in asked.items() if this.offers(name))
    if offered:
        _holds(this, "patches", offered)
    by_hand = {
        "patch_heads": lambda: _head_by_hand(this, at, asked["patch_heads"]),
        "patch_mlp": lambda: _mlp_by_hand(this, layer, asked["patch_mlp"]),
        "patch_stream": lambda: _layer_by_hand(this, 1, asked["patch_stream"]),
    }
    this.row.patched = _found(this, list(asked), by_hand)


def _patch(**part: Any) -> Patch:
    return Patch(positions=INTO, first=FIRST, source=OtherRun(tokens=OTHER), **part)


def _attending(this: Examination) -> int:
    """The last layer with a map."""
    proven = this.runner.capture.proven
    return (*(sorted(proven.layers)[-1:] if proven else []), 0)[0]


def _holds(this: Examination, name: str, changed: tuple[Intervention, ...]) -> None:
    cached = this.run(_request(interventions=changed))
    bare = this.run(_request(interventions=changed, cache=False))
    for one, other in zip(cached.steps, bare.steps, strict=True):
        this.check(f"{name} with the cache", largest(one.logits - other.logits), this.limit)
    failed = [
        check.name
        for check in selfcheck.check(this.runner, cached.request, cached.chosen_ids)
        if not check.passed
    ]
    if failed:
        this.row.wrong.append(f"{name}: {', '.join(failed)}")


def _found(this: Examination, names: list[str], by_hand: dict[str, Callable[[], bool]]) -> str:
    """What is offered, and whether it was made by hand, too; then why the others are not."""
    offered = [name for name in names if this.offers(name)]
    found = [f"{name} by hand" if name in by_hand and by_hand[name]() else name for name in offered]
    left = dict.fromkeys(this.words(name) for name in names if name not in offered)
    return "; ".join([", ".join(found), *left] if found else left)


def _cell_by_hand(this: Examination) -> bool:
    """A cell cut in every head, in the untouched copy by a mask with that score at -inf.

    False where the copy gives other logits under a causal mask of four axes (windows, own masks),
    or an indexer reads the mask, too: there the mask changes which keys are looked at.
    """
    if any("indexer" in type(module).__name__.lower() for module in this.eager.modules()):
        return False
    mask = torch.triu(torch.full((len(PROMPT),) * 2, torch.finfo(torch.float32).min), 1)
    ids = torch.tensor([PROMPT])

    def logits() -> np.ndarray:
        with torch.inference_mode():
            found = this.eager(input_ids=ids, attention_mask=mask[None, None], use_cache=False)
        return np.asarray(found.logits[0].float().numpy())

    query, key = 22, 19
    try:
        if largest(logits() - this.logits(PROMPT)) > this.limit / 10:
            return False
        mask[query, key] = torch.finfo(torch.float32).min
        expected = logits()
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    request = _request(interventions=(read(f"cut *.*:{query}<-{key}"),))
    ours = _every_logit(this, request, PROMPT)
    this.check("a cut cell by hand", largest(ours - expected), this.limit)
    moved = largest(expected[query] - this.logits(PROMPT)[query])
    if moved <= this.limit:
        this.row.wrong.append("a cut cell changes nothing in the copy")
    return True


def _head_by_hand(this: Examination, at: int, patch: Patch | None = None) -> bool:
    """Head 1 of layer `at`, silenced or patched in the untouched copy at what reads its output.

    False where no projection reads just that.
    """
    layout = measured_gaps.Layout(PROMPT, (1,) * len(PROMPT), tuple(range(len(PROMPT))))
    done = forward(this.runner, _request(), layout, 0, None, keep_outputs=True)
    call = next(one.call for one in measured_gaps.drawn(done) if one.record.layer == at)
    assert call is not None
    assert call.output is not None
    heads, output = call.query.shape[1], call.output.flatten(2)
    reading: list[Any] = []

    def look(module: Any, args: Any) -> None:
        given = args[0] if args else None
        if not isinstance(given, torch.Tensor) or given.numel() != output.numel():
            return
        if largest((given.reshape(output.shape) - output).numpy()) <= 1e-5:
            reading.append(module)

    layer = decoder_layers(this.plain)[at]
    hooks = [module.register_forward_pre_hook(look) for module in layer.modules()]
    this.logits(PROMPT)
    for hook in hooks:
        hook.remove()
    if not reading:
        return False

    def change(edit: Edit) -> Any:
        def changed(module: Any, args: Any) -> Any:
            apart = args[0].clone().reshape(*output.shape[:2], heads, -1)
            edit(apart[0, :, 1])
            return (apart.reshape(args[0].shape), *args[1:])

        return reading[0].register_forward_pre_hook(changed)

    return _by_hand(this, patch or Silence(layer=at, head=1), [change])


def _mlp_by_hand(this: Examination, at: int, patch: Patch | None = None) -> bool:
    """The MLP of layer `at` at the modules that write it, in the untouched copy."""
    names = {id(module): name for name, module in this.runner.model.named_modules()}
    written = [this.plain.get_submodule(names[id(one)]) for one in this.runner.mlp_writes[at]]
    places = [functools.partial(_at_output, module) for module in written]
    return _by_hand(this, patch or Silence(layer=at, part="mlp"), places)


def _layer_by_hand(this: Examination, at: int, patch: Patch | None = None) -> bool:
    """What layer `at` of the untouched copy gives."""
    layer = decoder_layers(this.plain)[at]
    if patch is not None:
        return _by_hand(this, patch, [functools.partial(_at_output, layer)])

    def change(_: Edit) -> Any:
        def input_of(module: Any, args: Any, kwargs: Any, output: Any) -> Any:
            given = args[0] if args else kwargs["hidden_states"]
            if isinstance(output, torch.Tensor):
                return given
            return type(output)((given, *output[1:]))

        return layer.register_forward_hook(input_of, with_kwargs=True)

    return _by_hand(this, Silence(layer=at, part="layer"), [change])


def _at_output(module: Any, edit: Edit) -> Any:
    """A hook that edits the rows (T, …) of what the module gives first."""

    def changed(_: Any, args: Any, output: Any) -> Any:
        tensor = (output if isinstance(output, torch.Tensor) else output[0]).clone()
        edit(tensor[0] if len(tensor) == 1 else tensor)
        if isinstance(output, torch.Tensor):
            return tensor
        return type(output)((tensor, *output[1:]))

    return module.register_forward_hook(changed)


def _by_hand(this: Examination, one: Silence | Patch, places: list[Callable[[Edit], Any]]) -> bool:
    """The intervention, made by hooks at these places of the untouched copy, against ours."""
    taken: list[torch.Tensor] = []

    def take(rows: torch.Tensor) -> None:
        taken.append(rows[FIRST : FIRST + INTO[1] - INTO[0] + 1].clone())

    def silence(rows: torch.Tensor) -> None:
        rows[:] = 0

    def put(rows: torch.Tensor) -> None:
        rows[INTO[0] : INTO[1] + 1] = taken.pop(0)

    def hooked(edit: Edit, ids: tuple[int, ...]) -> np.ndarray:
        hooks = [place(edit) for place in places]
        try:
            return this.logits(ids)
        finally:
            for hook in hooks:
                hook.remove()

    if isinstance(one, Patch):
        hooked(take, OTHER)
    expected = hooked(put if isinstance(one, Patch) else silence, PROMPT)
    ours = _every_logit(this, _request(interventions=(one,)), PROMPT)
    this.check(f"'{brief(one)}' by hand", largest(ours - expected), this.limit)
    if largest(expected - this.logits(PROMPT)) <= this.limit:
        this.row.wrong.append(f"'{brief(one)}' changes nothing in the copy")
    return True
