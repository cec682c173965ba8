"""Sessions to and from files: what of a state goes into one, and what one brings into the state."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from explorer.session import views
from explorer.session.autosave import Autosave
from explorer.session.driver import Driver
from explorer.session.edits import Edits
from explorer.session.files import Files
from explorer.session.link import Post
from explorer.session.state import State
from explorer.session.store import Store
from explorer.trace.beside import Beside, Sibling
from explorer.trace.trace import Trace


class Saving:
    """Files and the autosave work away from the owner's thread, and answer through `post`."""

    def __init__(self, store: Store, edits: Edits, driver: Driver, post: Post) -> None:
        self._store = store
        self._edits = edits
        self._driver = driver
        self.files = Files(post)
        self._autosave = Autosave(lambda problem: post(lambda: store.set(error=problem)))
        store.subscribe(self._keep)

    def close(self) -> None:
        """Waits for a save that is being written."""
        self.files.close()
        self._autosave.close()

    def open(self, path: str | os.PathLike[str]) -> None:
        """Read a file and show what is in it."""
        self.files.open(path, self._opened, self._fail)

    def _opened(self, trace: Trace, beside: Beside) -> None:
        self._driver.stop()
        self._store.set(**joined(beside, self._store.state))
        self._edits.make("open", shown(trace, self._store.state))
        self._store.set(error="", error_details="")
        self._driver.prompt.refresh()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what is on screen."""
        whole = contents(self._store.state)
        if whole is None:
            self._store.set(error="There is nothing to save yet: press step first.")
            return
        self.files.save(*whole, path, lambda saved: self._store.set(saved=saved), self._fail)

    def _fail(self, sentence: str) -> None:
        self._store.set(error=sentence, error_details="")

    def _keep(self, old: State, new: State) -> None:
        told = news(old, new)
        if told is not None:
            self._autosave.note(*told)


def contents(state: State) -> tuple[Trace, Beside] | None:
    """The trace on screen and what is beside it; None if there is nothing.

    A batch that was run without any step is saved with a trace of no tokens.
    """
    trace = state.trace
    if trace is None:
        if state.batch is None or state.card is None:
            return None
        trace = Trace(request=state.request, card=state.card, prompt=())
    tree, shown_one = state.tree, state.branches.current
    siblings = tuple(Sibling(branch.name, branch.trace) for branch in tree)
    current = next((i for i, branch in enumerate(tree) if branch.number == shown_one), None)
    return trace, Beside(siblings, current, state.batch)


def news(old: State, new: State) -> tuple[Trace, Beside] | None:
    """What the autosave is to be told of a change; None if there is nothing new."""
    moved = new.trace is not old.trace and new.trace is not None and bool(new.trace.steps)
    batch = new.batch is not None and new.batch is not old.batch
    return contents(new) if moved or batch else None


def shown(trace: Trace, state: State) -> dict[str, Any]:
    """The changes that put the trace of a file on screen."""
    changes: dict[str, Any] = {"request": trace.request}
    if trace.prompt:
        changes |= views.view(trace, state)
    if trace.steps:
        changes["sampling"] = trace.steps[-1].sampling
    return changes


def joined(beside: Beside, state: State) -> dict[str, Any]:
    """The changes by which the branches of a file join those of now, under their names."""
    before = {branch.number for branch in state.branches.all}
    branches, numbers = state.branches.joined(one.trace for one in beside.branches)
    if beside.current is not None:
        branches = replace(branches, current=numbers[beside.current])
    given = {
        number: one.name
        for number, one in zip(numbers, beside.branches, strict=True)
        if number not in before
    }
    return {
        "branches": branches,
        "branch_names": {**state.branch_names, **given},
        "forgotten": state.forgotten - set(numbers),
        "batch": beside.batch or state.batch,
    }
