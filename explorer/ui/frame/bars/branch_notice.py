"""Says that a branch began, where it left the run, and where the earlier continuation is."""

from __future__ import annotations

from explorer.figures.text import sentences
from explorer.session.branches import same_root, shared_steps
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.frame.bars.notice import Notice


class BranchNotice(Notice):
    """It stays while the new branch is on screen, until it is dismissed."""

    def __init__(self, session: Session) -> None:
        super().__init__("warning-card", closable=True)
        self._earlier = 0  # numbers of branches: the one that was left, the new one
        self._fresh = 0
        self.add_button(self.tr("Undo"), session.undo)
        self.add_button(
            self.tr("Show the earlier branch"), lambda: session.show_branch(self._earlier)
        )
        self.dismissed.connect(self.close_by_hand)

    def show_state(self, old: State | None, new: State) -> None:
        if self.text and new.branches.current != self._fresh:
            self.say("")
        if old is None or new.branches.begun <= old.branches.begun:
            return
        before, after = old.trace, new.trace
        if before is None or after is None or not same_root(before, after):
            return
        if new.scene is not None and new.scene.going:  # a scene's own branch: nobody's act
            return
        left, fresh = old.branches.current, new.branches.current
        shared = shared_steps(before, after)
        if left is None or fresh is None or shared >= min(len(before.steps), len(after.steps)):
            return
        self._earlier, self._fresh = left, fresh
        names = {branch.number: sentences.name(branch.name) for branch in new.tree}
        if shared:
            words = self.tr(
                "Branch {0} begins after token {1}. Branch {2} keeps the earlier continuation."
            )
        else:
            words = self.tr("Branch {0} begins at token 1. Branch {2} keeps the earlier tokens.")
        self.say(words.format(names.get(fresh, ""), shared, names.get(left, "")))
