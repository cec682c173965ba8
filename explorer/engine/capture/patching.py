"""Activation patching: what a part gives is taken in one run and put into another.

A head that is set to its mean is such a part: what it gives at each token of its prompt is taken in
a run of the model as it is, and the mean put in its place at every position.

The other run's tokens are read once, in a pass of their own, in which the parts that are asked for
are taken down (`Take`).  In the run itself each `Put` writes what was taken at its positions, in
place of what the part gives there.  Both stand where the part gives its output: a head's inside the
attention function, before W_O; an MLP's at the modules by which it writes to the residual stream;
the stream's at the layer's output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from explorer.engine.errors import BadInput, EngineError
from explorer.trace.interventions.kinds import Intervention, OtherRun, Patch, Silence, brief

# (S, d) by the number of the call that gave it: an MLP may have two modules, a layer two kernels,
# and some layers run more than once.
Taken = dict[int, torch.Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class Take:
    """Takes down what a part gives, and changes nothing."""

    layer: int
    part: str
    head: int
    taken: Taken = field(default_factory=dict)

    def apply(self, rows: torch.Tensor, first: int, place: int = 0) -> None:
        """Of the (Q, d) output for the slots from `first` on."""
        self.taken[place] = rows.clone()


@dataclass(frozen=True, slots=True, eq=False)
class Put:
    """Writes what was taken."""

    patch: Patch
    taken: Taken

    @property
    def layer(self) -> int:
        return self.patch.layer

    @property
    def part(self) -> str:
        return self.patch.part

    @property
    def head(self) -> int:
        return self.patch.head

    def apply(self, rows: torch.Tensor, first: int, place: int = 0) -> None:
        """Into the (Q, d) output for the slots from `first` on."""
        begin, end = self.patch.into
        begin, end = max(begin, first), min(end + 1, first + len(rows))
        if begin < end:
            shift = self.patch.first - self.patch.into[0]
            rows[begin - first : end - first] = self.taken[place][begin + shift : end + shift]


@dataclass(frozen=True, slots=True, eq=False)
class PutMean:
    """Writes the mean of what was taken, everywhere."""

    layer: int
    head: int
    taken: Taken
    part: str = "head"

    def apply(self, rows: torch.Tensor, first: int, place: int = 0) -> None:
        """Into the (Q, d) output."""
        rows[:] = self.taken[place].double().mean(0).to(rows.dtype)


Change = Intervention | Take | Put | PutMean
ReadSource = Callable[[OtherRun, Sequence[Take]], None]


class Sources:
    """What the patches of the last run took: every pass of a run needs the same."""

    def __init__(self) -> None:
        self._taken: dict[Patch, Taken] = {}

    def changes(
        self, asked: Sequence[Intervention], read: ReadSource, prompt: Callable[[], OtherRun]
    ) -> list[Change]:
        """The interventions, each patch with what it writes; `read` runs what is not known yet.

        `prompt` is what means are taken over.
        """
        needed = [_needed(one, prompt) for one in asked]
        patches = list(dict.fromkeys(one for one in needed if one is not None))
        if not patches:
            return list(asked)
        known = {patch: self._taken[patch] for patch in patches if patch in self._taken}
        self._taken = {}  # what is not needed any more makes room first
        missing: dict[OtherRun, list[Patch]] = {}
        for patch in patches:
            if patch not in known:
                missing.setdefault(patch.source, []).append(patch)
        for source, of_source in missing.items():
            parts = {(one.layer, one.part, one.head): Take(one.layer, one.part, one.head)
                     for one in of_source}  # fmt: skip
            read(source, list(parts.values()))
            for one in of_source:
                known[one] = parts[one.layer, one.part, one.head].taken
                if not known[one]:
                    raise BadInput(f"'{brief(one)}' is not possible here: nothing was given there.")
        self._taken = known
        return [
            one if patch is None else _put(one, patch, known[patch])
            for one, patch in zip(asked, needed, strict=True)
        ]


def _needed(one: Intervention, prompt: Callable[[], OtherRun]) -> Patch | None:
    """What has to be taken in another run for this."""
    if isinstance(one, Silence) and one.by == "mean":
        return Patch(layer=one.layer, head=one.head, source=prompt())
    return one if isinstance(one, Patch) else None


def _put(one: Intervention, patch: Patch, taken: Taken) -> Put | PutMean:
    return Put(patch, taken) if isinstance(one, Patch) else PutMean(patch.layer, patch.head, taken)


def rows_of(output: torch.Tensor, count: int) -> torch.Tensor:
    """(Q, …) view of an output for one sequence; EngineError if it has no row for each slot."""
    if output.ndim > 2 and output.shape[:2] == (1, count):
        return output[0]
    if output.ndim > 1 and len(output) == count:
        return output
    raise EngineError("This part does not give one row for each token, so it can't be patched.")
