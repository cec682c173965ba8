"""Sessions to and from files: what of a state goes into one, and what one brings into the state."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from explorer.session import transitions
from explorer.session.connection.engine_link import Post
from explorer.session.driver import Driver
from explorer.session.edits import Edits
from explorer.session.saving import recovery
from explorer.session.saving.autosave import Autosave
from explorer.session.saving.recovery import Found
from explorer.session.saving.trace_files import FileThread
from explorer.session.state import Saved, State
from explorer.session.store import Store
from explorer.trace.comparison import KEPT
from explorer.trace.files.saved_extras import SavedExtras, Sibling
from explorer.trace.files.saved_view import SavedView
from explorer.trace.fingerprint import same_weights
from explorer.trace.trace import Trace

Then = Callable[[], None]
NOTHING_TO_SAVE = "There is nothing to save yet. Press Step first."
_log = logging.getLogger(__name__)


class Saving:
    """Files and the autosave work away from the owner's thread, and answer through `post`."""

    def __init__(self, store: Store, edits: Edits, driver: Driver, post: Post) -> None:
        self._store = store
        self._edits = edits
        self._driver = driver
        self.files = FileThread(post)
        self.look: Callable[[], SavedView] = (
            SavedView  # what the window shows, its selection left out
        )
        self._autosave = Autosave(lambda problem: post(lambda: store.set(error=problem)))
        store.subscribe(self._keep)

    def close(self) -> None:
        """Waits for a save that is being written."""
        self.files.close()
        self._autosave.close()

    def leave(self) -> None:
        """The program has to end: what is in no file yet is kept for the next start."""
        whole = contents(self._store.state, self.look())
        if whole is not None and self._store.state.unsaved:
            self._autosave.leave(*whole)

    def open(
        self,
        path: str | os.PathLike[str],
        own: bool = False,
        then: Then | None = None,
        failed: Then | None = None,
    ) -> None:
        """Show a saved session; its model is opened when it is stepped on.

        `own`: a copy that the program kept, which is no file of the user's.  `then` is called
        once it is on screen, `failed` once it is known that it can't be read.
        """

        def opened(trace: Trace, beside: SavedExtras) -> None:
            self._opened(trace, beside, "" if own else os.path.abspath(path))
            if own:
                self._autosave.adopt(Path(path))
            if then is not None:
                then()

        def refused(sentence: str) -> None:
            self._fail(sentence)
            if failed is not None:
                failed()

        self.files.open(path, opened, refused)

    def _opened(self, trace: Trace, beside: SavedExtras, path: str) -> None:
        self._driver.stop()
        self._driver.keep_request()
        trace, beside = named_here(trace, beside, self._store.state)
        self._store.set(**joined(beside, self._store.state))
        # First: what is in a file already is not to be autosaved.
        self._store.set(saved=Saved(trace, path, beside) if path else None)
        self._edits.make("open", shown(trace, self._store.state, beside.seen))
        seen = beside.seen
        compare = seen is not None and seen.compare
        of = next((one for one in KEPT if seen is not None and one == seen.compare_of), KEPT[0])
        self._store.set(error="", seen=seen, comparing=compare, compare_of=of)
        self._driver.prompt.refresh()

    def take_over(self, trace: Trace, beside: SavedExtras) -> None:
        """Show a run of another session as if it had been opened from a file."""
        self._opened(trace, beside, "")

    def save(self, path: str | os.PathLike[str], then: Then | None = None) -> None:
        """Write the trace on screen, its branches and the last batch to a .dxt file.

        `then` is called once it is written.
        """
        whole = contents(self._store.state, self.look())
        if whole is None:
            self._store.set(error=NOTHING_TO_SAVE)
            return

        def saved(what: Saved) -> None:
            self._store.set(saved=what)
            if then is not None:
                then()

        self.files.save(*whole, path, saved, self._fail)

    def keep(self, path: Path) -> str:
        """Where the run on screen can be opened again: its file, or `path`, written for it."""
        whole = contents(self._store.state, self.look())
        if whole is None:
            path.unlink(missing_ok=True)
            return ""
        if not self._store.state.unsaved:
            return self._store.state.file
        self.files.save(*whole, path, lambda _: None, _log.warning)
        return os.fspath(path)

    def find_kept(self, then: Callable[[Found], None]) -> None:
        """Tell `then` of the sessions that a crash left."""

        def work() -> Then:
            found = recovery.found()
            return lambda: then(found)

        self.files.do(work, self._fail, "Sessions of earlier crashes could not be looked for")

    def _fail(self, sentence: str) -> None:
        self._store.set(error=sentence)

    def _keep(self, old: State, new: State) -> None:
        told = news(old, new, self.look)
        if told is None and new.saved is old.saved and new.scene_made is old.scene_made:
            return
        if not new.unsaved:
            self._autosave.saved()
        elif told is not None:
            self._autosave.note(*told)


def contents(state: State, look: SavedView) -> tuple[Trace, SavedExtras] | None:
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
    return trace, SavedExtras(siblings, current, state.batch, transitions.seen(state, look))


def news(old: State, new: State, look: Callable[[], SavedView]) -> tuple[Trace, SavedExtras] | None:
    """What the autosave is to be told of a change; None if there is nothing new."""
    moved = new.trace is not old.trace and new.trace is not None and bool(new.trace.steps)
    batch = new.batch is not None and new.batch is not old.batch
    return contents(new, look()) if moved or batch else None


def named_here(trace: Trace, beside: SavedExtras, state: State) -> tuple[Trace, SavedExtras]:
    """A file's runs under the name by which their model goes on this machine.

    The open model may be the one; a path from another machine, in files of earlier versions, gives
    way to the model's own name.
    """
    asked, card = trace.request.model, state.card
    if card is not None and state.opened and card.name == trace.card.name:
        if same_weights(card.fingerprint, trace.card.fingerprint):
            names = [key.model for key in state.opened]
            asked = asked if asked in names else names[0]
    elif os.path.isabs(asked) and not os.path.exists(asked):
        asked = trace.card.name
    if asked == trace.request.model:
        return trace, beside
    request = msgspec.structs.replace(trace.request, model=asked)
    siblings = tuple(
        Sibling(one.name, replace(one.trace, request=request)) for one in beside.branches
    )
    return replace(trace, request=request), replace(beside, branches=siblings)


def shown(trace: Trace, state: State, seen: SavedView | None) -> dict[str, Any]:
    """The changes that put the trace of a file on screen."""
    changes: dict[str, Any] = {"request": trace.request}
    if trace.prompt:
        changes |= transitions.view(trace, state)
        if seen is not None:
            changes["selection"] = transitions.selected(seen)
    if trace.steps:
        changes["sampling"] = trace.steps[-1].sampling
    return changes


def joined(beside: SavedExtras, state: State) -> dict[str, Any]:
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
