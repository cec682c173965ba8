"""Every future that was tried: runs that share a beginning, kept as one tree.

A branch is a whole trace; steps that branches share are the same objects, so the tree costs what
its distinct steps cost.  Going back shows less of a branch and loses nothing of it; choosing
otherwise begins another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from explorer.session import capture_budget
from explorer.trace.fingerprint import same_weights
from explorer.trace.rounding import arithmetic, largest, logit_tolerance
from explorer.trace.step import Step
from explorer.trace.trace import Trace

LIMIT_BYTES = 1 << 30
LIMIT_BRANCHES = 200
STEP_BYTES, TOKEN_BYTES, LAYER_BYTES = 1500, 110, 700  # of Python's objects, about, as measured
Arrays = tuple[int, int]  # identities of what a step holds


@dataclass(frozen=True, slots=True)
class Branch:
    """One way the text went on."""

    number: int  # never used twice
    name: str  # a letter; `State.branch_names` holds what the user calls it
    trace: Trace  # as far as it was ever run
    own_bytes: int = 0  # of the steps that no older branch holds


@dataclass(frozen=True, slots=True)
class Branches:
    """All branches, in order of their beginning, and which one is on screen."""

    all: tuple[Branch, ...] = ()
    current: int | None = None  # number
    begun: int = 0  # branches ever begun
    let_go: int = 0  # branches given up to stay within the limits

    def get(self, number: int | None) -> Branch | None:
        """The branch of this number, if it is still kept."""
        return next((b for b in self.all if b.number == number), None)

    def beside(self, trace: Trace) -> tuple[Branch, ...]:
        """The branches of the same request and prompt: one tree.

        Those run again with other weights under the same name belong to it.
        """
        return tuple(b for b in self.all if same_root(b.trace, trace))

    def seen(
        self,
        trace: Trace | None,
        limit: int = LIMIT_BYTES,
        given_up: Collection[int] = (),
    ) -> Branches:
        """With `trace` on screen: it continues a branch, shows part of one, or begins one.

        Where there is no room for all, the branches in `given_up` go first.
        """
        if trace is None or not trace.steps:
            return self if self.current is None else replace(self, current=None)
        home = self._home(trace)
        if home is None:
            begun = self.begun + 1
            own, _ = bytes_beyond(trace, arrays_of(b.trace for b in self.beside(trace)))
            fresh = Branch(begun, _name(begun) + self._apart(trace), trace, own)
            grown = replace(self, all=(*self.all, fresh), current=begun, begun=begun)
            return grown.within(limit, given_up)
        if len(trace.steps) < len(home.trace.steps) or trace is home.trace:
            return self if self.current == home.number else replace(self, current=home.number)
        kept = replace(home, trace=trace, own_bytes=self._own_bytes(home, trace))
        everyone = tuple(kept if b is home else b for b in self.all)
        found = replace(self, all=everyone, current=home.number)
        return found.within(limit, given_up) if kept.own_bytes > home.own_bytes else found

    def _own_bytes(self, home: Branch, trace: Trace) -> int:
        """What `home` holds alone once `trace` is its trace."""
        if trace.request.uses_cache:
            more = trace.steps[len(home.trace.steps) :]
            return home.own_bytes + sum(map(step_bytes, more))
        # Without a cache, older passes give their queries and keys up as the run goes on.
        others = arrays_of(b.trace for b in self.all if b is not home)
        return bytes_beyond(trace, others)[0]

    def _home(self, trace: Trace) -> Branch | None:
        """The branch that `trace` is a beginning or a continuation of, the current one first."""
        for branch in sorted(self.all, key=lambda b: b.number != self.current):
            line = same_root(branch.trace, trace) and _one_line(branch.trace, trace)
            if line and _same_numbers(branch.trace, trace):
                return branch
        return None

    def _apart(self, trace: Trace) -> str:
        """What a name says of a run whose numbers are not those of the tree it joins."""
        others = [b.trace for b in self.beside(trace)]
        return " (other weights)" if others and not _same_numbers(others[0], trace) else ""

    def without(self, number: int) -> Branches:
        """Without one branch; the one on screen stays."""
        if number == self.current:
            return self
        known: set[Arrays] = set()
        rest = []
        for branch in self.all:
            if branch.number == number:
                continue
            own, known = bytes_beyond(branch.trace, known)
            rest.append(replace(branch, own_bytes=own))
        return replace(self, all=tuple(rest))

    def within(self, limit: int, given_up: Collection[int] = ()) -> Branches:
        """Delete the oldest branches until the rest fits; never the one on screen."""
        found = self
        while len(found.all) > LIMIT_BRANCHES or found.bytes > limit:
            others = [b for b in found.all if b.number != found.current]
            if not others:
                return found
            first = min(others, key=lambda b: b.number not in given_up)
            wanted = first.number not in given_up
            found = replace(found.without(first.number), let_go=found.let_go + wanted)
        return found

    def joined(self, others: Iterable[Trace]) -> tuple[Branches, tuple[int, ...]]:
        """With branches from elsewhere, and the number that each of them has here."""
        found, numbers = self, []
        for trace in others:
            found = found.seen(trace)
            numbers.append(found.current or 0)
        return found, tuple(numbers)

    @property
    def bytes(self) -> int:
        """What the distinct steps of all branches hold."""
        return sum(branch.own_bytes for branch in self.all)


def same_root(one: Trace, other: Trace) -> bool:
    """True if both runs began with the same request, the model's name in it, and prompt."""
    return (
        one.request == other.request
        and one.card.name == other.card.name
        and (one.prompt is other.prompt or one.prompt == other.prompt)
    )


def shared_steps(one: Trace, other: Trace) -> int:
    """How many tokens both runs chose alike from the beginning."""
    count = 0
    for mine, theirs in zip(one.chosen, other.chosen, strict=False):
        if mine is not theirs and mine.id != theirs.id:
            break
        count += 1
    return count


def _one_line(one: Trace, other: Trace) -> bool:
    return shared_steps(one, other) == min(len(one.chosen), len(other.chosen))


def _same_numbers(one: Trace, other: Trace) -> bool:
    """True if the same weights made both: of one opening, or alike where both can be compared."""
    if one.card is other.card or not one.steps or not other.steps:
        return True
    if not same_weights(one.card.fingerprint, other.card.fingerprint):
        return False
    last = min(shared_steps(one, other), len(one.steps) - 1, len(other.steps) - 1)
    mine, theirs = one.steps[last].logits, other.steps[last].logits
    if mine is theirs:
        return True
    alike = mine.shape == theirs.shape
    return alike and largest(mine - theirs) <= logit_tolerance(arithmetic(one.request), mine)


def arrays_of(traces: Iterable[Trace]) -> set[Arrays]:
    """What tells apart which steps hold arrays of their own: a forced one shares the other's."""
    return {_arrays(step) for trace in traces for step in trace.steps}


def bytes_beyond(trace: Trace, known: set[Arrays]) -> tuple[int, set[Arrays]]:
    """What the steps of `trace` hold that is not known yet, and all that is known then."""
    own = [step for step in trace.steps if _arrays(step) not in known]
    return sum(map(step_bytes, own)), known | set(map(_arrays, own)) if own else known


def _arrays(step: Step) -> Arrays:
    return id(step.logits), id(step.layers)


def step_bytes(step: Step) -> int:
    """What one step holds: logits, queries and keys, hidden states, and the objects around them.

    Of a small model the objects are most of it.
    """
    objects = STEP_BYTES + TOKEN_BYTES * len(step.top) + LAYER_BYTES * len(step.layers)
    return step.logits.nbytes + capture_budget.layer_bytes(step) + objects


def _name(number: int) -> str:
    """A, B, …, Z, AA, AB, …"""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
