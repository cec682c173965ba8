"""Downloads from the Hub, and of SmolLM2: what would come, and how far it is.

They go on beside whatever else runs.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from explorer import smollm2
from explorer.session.engine_lease import EngineLease
from explorer.session.state import DownloadState
from explorer.trace.found_models import Offer
from explorer.trace.wire import messages as m


class Downloads:
    """One at a time; the state's `download` tells of it."""

    def __init__(self, lease: EngineLease) -> None:
        self._store, self._link = lease.store, lease.link
        self._run = 0  # of the open question; 0 = none

    @property
    def _now(self) -> DownloadState:
        return self._store.state.download

    def search(self, words: str) -> None:
        """Ask which models on the Hub have these words in their name."""
        self.cancel()
        self._ask(m.SearchHub(repo=words), DownloadState(repo=words, stage="searching"))

    def look(self, repo: str, form: str = "") -> None:
        """Ask what a download would fetch; `form` is one of those that an earlier look offered."""
        self.cancel()
        same = self._now if self._now.repo == repo else DownloadState()
        looking = DownloadState(repo=repo, stage="looking", found=self._now.found, offer=same.offer)
        self._ask(m.LookOnHub(repo=repo, form=form), looking)

    def fetch(self) -> None:
        """Download what was offered, or go on with it, beside whatever runs."""
        now = self._now
        if now.offer is not None and not now.busy:
            fetching = replace(now, stage="fetching", text="", fraction=None, problem="")
            self._ask(m.Download(repo=now.repo, form=now.offer.form), fetching)

    def fetch_smollm2(self) -> None:
        """Download SmolLM2, or go on with it, beside whatever runs."""
        now = self._now
        if now.busy:
            return
        held = now.fraction if now.repo == smollm2.NAME else None
        beginning = DownloadState(repo=smollm2.NAME, stage="fetching", fraction=held)
        self._ask(m.Download(repo=smollm2.NAME), beginning)

    def cancel(self) -> None:
        """Stop; what has arrived is kept."""
        if self._run:
            self._link.send(m.Cancel(run=self._run))
            self._run = 0
            self._put(replace(self._now, stage="offered" if self._now.offer else ""))

    def forget(self) -> None:
        """The engine is gone, and with it a download under way."""
        if self._run:
            self._run = 0
            words = (
                "The engine stopped, and the download with it. The part already downloaded is kept."
            )
            stage = "offered" if self._now.offer else ""
            self._put(replace(self._now, stage=stage, problem=words))

    def _ask(
        self, request: m.SearchHub | m.LookOnHub | m.Download, beginning: DownloadState
    ) -> None:
        if not self._link.alive:
            words = "The engine is not running. Start it to download a model."
            self._put(replace(beginning, stage="", problem=words))
            return
        self._run = self._link.ask(request)
        self._put(beginning)

    def answered(self, event: m.Event) -> bool:
        """True if the event was of this download."""
        if not self._run or event.run != self._run:
            return False
        now = self._now
        match event:
            case m.Progress():
                self._put(replace(now, text=event.text, fraction=event.fraction))
            case m.Failed():
                self._run = 0
                stage = "offered" if now.offer else ""
                self._put(replace(now, stage=stage, problem=event.sentence))
            case m.Facts() if now.stage == "searching":
                self._run = 0
                self._put(replace(now, stage="", found=_found(event)))
            case m.Facts() if now.stage == "looking":
                self._run = 0
                self._put(replace(now, stage="offered", offer=_offer(event)))
            case m.Facts():
                self._run = 0
                target = str(event.facts.get("open", now.repo))
                self._put(replace(now, stage="done", fraction=1.0, target=target))
        return True

    def _put(self, download: DownloadState) -> None:
        self._store.set(download=download)


def _found(event: m.Facts) -> tuple[str, ...]:
    repos = event.facts.get("repos")
    return tuple(map(str, repos)) if isinstance(repos, (list, tuple)) else ()


def _offer(event: m.Facts) -> Offer | None:
    try:
        return msgspec.convert(event.facts, Offer)
    except msgspec.ValidationError:
        return None
