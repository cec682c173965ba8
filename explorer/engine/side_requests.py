"""Questions about models that are not loaded: answered beside whatever the engine runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from explorer.engine import light_imports
from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.library import hub_process
from explorer.trace.wire import messages
from explorer.trace.wire.messages import AnyRequest

Errand = messages.SearchHub | messages.LookOnHub | messages.Download
Question = messages.Inspect | messages.PlanModel | messages.FindModels | Errand
_LOOK_SECONDS = 0.1
LEAVE_SECONDS = 10.0  # at most; a tokenizer may never return
_ERRANDS = {messages.SearchHub: "search", messages.LookOnHub: "look", messages.Download: "get"}


class SideRequests:
    """A thread for each question, so that a list of models never waits for a load or a run."""

    def __init__(self, answer: Callable[[AnyRequest], None]) -> None:
        """`answer` is called from any thread and reports what goes wrong by itself."""
        self._answer = answer
        self._threads: list[threading.Thread] = []
        self._one_at_a_time = threading.Lock()
        self._importing = threading.Lock()
        self._imported = False
        # Held while a model is loaded or built: transformers sets torch's dtype for both.
        self.building = threading.Lock()

    def takes(self, request: AnyRequest) -> bool:
        """True if the question is answered here; then its thread has been started."""
        if not isinstance(request, Question):
            return False
        self.start(self._work, request)
        return True

    def start(self, work: Callable[[AnyRequest], None], request: AnyRequest) -> None:
        """Do `work` about a request in a thread of its own."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=work, args=(request,), name="aside", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, request: AnyRequest) -> None:
        if type(request) in _ERRANDS:  # in a process of its own, and it may take hours
            self._answer(request)
            return
        with self._one_at_a_time:
            self.libraries()
            self._answer(request)

    def libraries(self, stop: Stop = never) -> None:
        """Import torch and what stands on it; Cancelled while that goes on, if `stop` says so."""
        if self._imported:
            return
        thread = threading.Thread(target=self._import, name="imports", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK_SECONDS)
            if stop():
                raise Cancelled

    def _import(self) -> None:
        """Once: two threads may not race there."""
        with self._importing, contextlib.suppress(ImportError):
            light_imports.load()
            from explorer.engine.library import recipe  # noqa: F401
            from explorer.engine.passes import runner  # noqa: F401
            from explorer.engine.planning import planner  # noqa: F401

            self._imported = True

    def join(self) -> None:
        """Wait until nothing is answered any more."""
        for thread in self._threads:
            thread.join(LEAVE_SECONDS)

    def facts(self, request: Question, progress: Report, cancelled: Stop) -> dict[str, Any]:
        """What was asked for; BadInput with a next step if it can't be had."""
        if isinstance(request, Errand):
            kind, form = _ERRANDS[type(request)], getattr(request, "form", "")
            return hub_process.run(kind, request.repo, progress, cancelled, form)
        if isinstance(request, messages.Inspect):
            from explorer.engine.library import recipe

            with self.building:
                return recipe.inspect(request.model)
        if isinstance(request, messages.PlanModel):
            from explorer.engine.planning import planner

            with self.building:
                return dict(msgspec.to_builtins(planner.plan(request)))
        return _library(request)


def _library(request: messages.FindModels) -> dict[str, Any]:
    """The models of this disk, after what is wished of the places they lie in is done."""
    from explorer.engine.gguf import cache
    from explorer.engine.library import catalog, stores
    from explorer.engine.machine import free_memory, this_machine
    from explorer.engine.relay import gpu

    if request.add_folder:
        folder = Path(request.add_folder).expanduser()
        if not folder.is_dir():
            raise BadInput(f"There is no folder {folder}; choose another.")
        stores.add_folder(folder)
    if request.remove_folder:
        stores.remove_folder(Path(request.remove_folder))
    if request.clear_conversions:
        cache.clear()
    return {
        "models": catalog.find(),
        "folders": [str(folder) for folder in stores.added_folders()],
        "available_bytes": free_memory.available_bytes(),
        "conversions_bytes": cache.size_bytes(),
        "offline": hub_process.offline_reason(),
        "gpu": gpu.can_use_gpu(),
        "machine": this_machine.facts(),
    }
