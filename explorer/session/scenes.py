"""Puts a scene in place: opens its model, runs what it needs, and selects what it shows.

Each part of the work waits for the state that ends it, so a scene takes as many changes of state
as it needs, and can be cancelled at each of them.  `state.scene` says how far it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from explorer.lessons.scene import EXPERIMENTS, ExperimentWish, ForcedToken, Scene, SceneTraining
from explorer.session.engine_lease import with_key
from explorer.session.session import Session
from explorer.session.state import Measured, ModelKey, SceneProgress, State
from explorer.trace.experiments import Experiment
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace, bare_name

CANCELLED = "Cancelled: the scene is not complete."
INTERRUPTED = "The scene is not complete: something else was done meanwhile. Show it again."


class SceneProblem(Exception):
    """Why a scene can't be put in place, as one sentence."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Something under way: in words, and the state that ends it."""

    words: str
    ends: Callable[[State], bool]
    activity: str = "running"  # of the engine meanwhile


class ScenePlayer:
    """Works in the session's thread; one scene at a time, a newer one takes the older's place."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parts: Iterator[_Part] | None = None
        self._part: _Part | None = None
        self._was_busy = False  # since the part began
        self._inside = False
        self._request: RunRequest | None = None  # that the scene has set
        self._own_run = False  # the scene makes it: it was not there before
        self._measured: dict[ExperimentWish, Measured[Any]] = {}
        self._leave = session.subscribe(lambda old, new: self._go_on())

    @property
    def playing(self) -> bool:
        """True until the scene is in place or has failed."""
        return self._parts is not None

    def play(self, scene: Scene) -> None:
        """Put a scene in place; returns at once."""
        self._session.report("")
        self._parts, self._part, self._request = self._all(scene), None, None
        self._own_run = False
        self._session.show_scene(SceneProgress(scene=scene, of=_count(scene)))
        self._go_on()

    def cancel(self) -> None:
        """Stop where it is; what has been run stays."""
        if self.playing:
            self._parts, self._own_run = None, False
            self._session.cancel()
            state = self._session.state
            wanted = None if state.scene is None else state.scene.scene.train
            if wanted is not None and _under_way(state, wanted):  # not one of the user's own
                self._session.trainings.pause()
            self._note(problem=CANCELLED)

    def close(self) -> None:
        """Listen no longer."""
        self._parts = None
        self._leave()

    # -- going on

    def _go_on(self) -> None:
        if self._inside:
            return
        self._inside = True
        self._note_made()
        try:
            while self._parts is not None and self._ended():
                self._part = next(self._parts, None)
                self._was_busy = False
                if self._part is None:
                    self._parts = None
                    self._note(finished=True, words="")
                else:
                    self._note(words=self._part.words, step=1)
        except SceneProblem as problem:
            self._parts = None
            self._note(problem=str(problem))
        finally:
            self._note_made()
            self._own_run &= self.playing
            self._inside = False

    def _note_made(self) -> None:
        """The run as far as it is there is the scene's own, not the user's."""
        state = self._session.state
        if self._own_run and state.trace is not None and state.trace.request == self._request:
            self._session.note_made(state.scene_made.with_run(state.trace))

    def _ended(self) -> bool:
        """True if the part under way is over; SceneProblem if it will not be."""
        state, part = self._session.state, self._part
        if part is None:
            return True
        if part.ends(state):
            return True
        if state.error:
            raise SceneProblem(state.error)
        if state.code_question is not None or state.status.activity == "lost":
            raise SceneProblem(state.status.text or INTERRUPTED)
        other = self._request is not None and state.request != self._request
        if other or (_idle(state) and self._was_busy and state.plan is None):
            raise SceneProblem(INTERRUPTED)
        self._was_busy |= state.status.activity == part.activity
        return False

    def _note(self, step: int = 0, **changes: object) -> None:
        progress = self._session.state.scene
        if progress is not None:
            changed = replace(progress, done=progress.done + step, **changes)  # type: ignore[arg-type]
            self._session.show_scene(changed)

    # -- the parts

    def _all(self, scene: Scene) -> Iterator[_Part]:
        yield from self._model(scene)
        yield from self._run(scene)
        self._select(scene)
        yield from self._compare(scene)
        if scene.batch is not None:
            yield from self._batch(scene)
        if scene.train is not None:
            yield from self._training(scene.train)
        for wish in scene.experiments:
            yield from self._recipe() if wish.name == "recipe" else self._experiment(wish)

    def _model(self, scene: Scene) -> Iterator[_Part]:
        if scene.model and _opened(self._session.state, scene) is None:
            self._session.open_model(scene.model, form=scene.needed_form)
            yield _Part(
                f"Opening {scene.model}…",
                lambda state: (
                    _opened(state, scene) is not None and state.status.activity != "loading"
                ),
                "loading",
            )
        if self._session.state.card is None:
            raise SceneProblem("No model is open. Open a model, then show the scene again.")

    def _run(self, scene: Scene) -> Iterator[_Part]:
        """The prompt, the settings and the tokens; nothing is run that is there already."""
        state = self._session.state
        key = _opened(state, scene) or state.opened[0]
        base = with_key(state.request, key)
        self._request = request = scene.request(base)
        if state.trace is not None and _in_place(state, scene, request):
            self._session.set_sampling(scene.sampling)
            self._session.set_stops(scene.stops)
            return
        forced = sorted(scene.force, key=lambda one: one.step)
        ends = [*(one.step + 1 for one in forced), scene.run]
        if not scene.compare:
            self._session.compare(False)
        self._own_run = True
        self._session.lay_out(request, scene.sampling, scene.stops, ends[0])
        yield self._running(ends[0])
        for one, upto in zip(forced, ends[1:], strict=True):
            yield from self._force(one)
            if self._stopped_early(one.step + 1):
                raise SceneProblem(f"The run ended before token {one.step + 1} could be forced.")
            if upto > one.step + 1:
                self._session.step(upto - one.step - 1)
                yield self._running(upto)

    def _running(self, upto: int) -> _Part:
        def ends(state: State) -> bool:
            if upto == 0:
                return state.trace is None
            return _idle(state) and state.trace is not None and _complete(state.trace, upto)

        return _Part(f"Generating {upto:,} tokens…" if upto > 1 else "Reading the prompt…", ends)

    def _stopped_early(self, upto: int) -> bool:
        trace = self._session.state.trace
        return trace is None or len(trace.steps) < upto

    def _force(self, one: ForcedToken) -> Iterator[_Part]:
        if self._session.state.vocabulary is None:
            yield _Part("Reading the vocabulary…", lambda state: state.vocabulary is not None)
        self._session.force(_token_id(self._session.state, one))
        if self._session.state.error:
            raise SceneProblem(self._session.state.error)

    def _select(self, scene: Scene) -> None:
        state = self._session.state
        card = state.card if state.trace is None else state.trace.card
        if card is not None and (scene.layer >= card.layers or scene.head >= card.heads):
            raise SceneProblem(
                f"This model has layers 0 to {card.layers - 1} and heads 0 to {card.heads - 1}. "
                f"The scene asks for layer {scene.layer}, head {scene.head}."
            )
        self._session.select(
            step=scene.step, layer=scene.layer, head=scene.head, query=scene.query, key=scene.key,
            token_id=None,
        )  # fmt: skip

    def _compare(self, scene: Scene) -> Iterator[_Part]:
        self._session.compare(bool(scene.compare), scene.compare_of)
        if scene.compare and scene.run:
            words = "Running with the other mask setting…"
            if scene.compare_of == "interventions":
                words = "Running without interventions…"
            yield _Part(words, _compared)

    def _batch(self, scene: Scene) -> Iterator[_Part]:
        batch, before = scene.batch, self._session.state.batch
        assert batch is not None
        if before is None or before.request != batch:
            self._session.batches.run(batch)
            yield _Part(
                "Running the batch…",
                lambda state: state.batch is not before and state.batch is not None,
            )
            made = self._session.state.scene_made
            self._session.note_made(made.with_batch(self._session.state.batch))

    def _training(self, wanted: SceneTraining) -> Iterator[_Part]:
        """Train to the end, unless just that was done already; it can be watched meanwhile."""
        if _trained(self._session.state, wanted):
            return
        if _under_way(self._session.state, wanted):  # begun by a page before this one
            self._session.trainings.look_at(None)
            self._session.trainings.go_on()
        else:
            self._session.trainings.train(wanted.runs)

        def ends(state: State) -> bool:
            runs = state.training.runs
            if tuple(run.settings for run in runs) != wanted.runs:
                raise SceneProblem(INTERRUPTED)
            stopped = [run.problem for run in runs if not run.going and run.problem]
            if stopped and not _trained(state, wanted):
                raise SceneProblem(stopped[0])
            return _trained(state, wanted)

        yield _Part("Training…", ends, activity="")

    def _experiment(self, wish: ExperimentWish) -> Iterator[_Part]:
        kind = EXPERIMENTS[wish.name]
        known = self._session.state.measured_of(kind.RESULT)
        same = known is not None and known is self._measured.get(wish)
        if same and _fits(self._session.state, kind):
            return
        settings: dict[str, Any] = dict(wish.settings)
        self._session.measure(kind, **settings)

        def ends(state: State) -> bool:
            found = state.measured_of(kind.RESULT)
            return _idle(state) and found is not None and found is not known and _fits(state, kind)

        yield _Part(kind.RUNNING, ends)
        found = self._session.state.measured_of(kind.RESULT)
        if found is not None:
            self._measured[wish] = found

    def _recipe(self) -> Iterator[_Part]:
        if self._session.state.recipe is None:
            self._session.models.describe()
            yield _Part("Counting the parameters…", _described)


def _opened(state: State, scene: Scene) -> ModelKey | None:
    """The key of the open model if it is the scene's; one without a name is for any."""
    name, form = scene.model, scene.needed_form
    if state.card is None or (name and form and (form == "as-is") != (state.card.form == "as-is")):
        return None
    for key in state.opened:
        if not name or name in (key.model, bare_name(key.model)):
            return key
    return state.opened[0] if state.opened and name == state.card.name else None


def _complete(trace: Trace, upto: int) -> bool:
    """True if the run has this length, or ended by itself before."""
    ended = trace.stop_reason not in ("", "steps", "cancelled", "plan")
    return len(trace.steps) >= upto or (bool(trace.steps) and ended)


def _in_place(state: State, scene: Scene, request: RunRequest) -> bool:
    """True if the run on screen is what the scene would run."""
    trace = state.trace
    if trace is None or trace.card is not state.card or state.busy:
        return False
    if not (trace.request == state.request == request and state.stops == scene.stops):
        return False
    if len(trace.steps) > scene.run or not _complete(trace, scene.run):
        return False
    forced = {one.step: one for one in scene.force}
    for index, step in enumerate(trace.steps):
        one = forced.get(index)
        if (step.draw.how == "forced") is not (one is not None) or step.sampling != scene.sampling:
            return False
        if one is not None and trace.chosen[index].id not in _ids(state, one):
            return False
    return True


def _ids(state: State, one: ForcedToken) -> tuple[int, ...]:
    if not isinstance(one.token, str):
        return (one.token,)
    if state.vocabulary is None:
        return ()
    exact = state.vocabulary.spelled(one.token.encode("utf-8", "surrogatepass"))
    return exact or state.vocabulary.spelled(f" {one.token}".encode("utf-8", "surrogatepass"))


def _token_id(state: State, one: ForcedToken) -> int:
    found = _ids(state, one)
    if not found:
        raise SceneProblem(f"“{str(one.token)[:40]}” is not one token of this model.")
    return found[0]


def _fits(state: State, kind: type[Experiment]) -> bool:
    result = state.result_of_prompt if kind.OF_PROMPT else state.result
    return result(kind.RESULT) is not None


def _compared(state: State) -> bool:
    found = state.comparison
    fits = found is not None and found.fits(state.trace, state.step_index)
    return found is not None and found.of == state.compare_of and fits and _idle(state)


def _idle(state: State) -> bool:
    """True if nothing runs that the scene could wait for."""
    return state.status.activity in ("idle", "checking")


def _trained(state: State, wanted: SceneTraining) -> bool:
    runs = state.training.runs
    done = all(run.phase == "done" for run in runs)
    return done and tuple(run.settings for run in runs) == wanted.runs


def _under_way(state: State, wanted: SceneTraining) -> bool:
    """True if just that is being trained, or has paused and can go on."""
    runs = state.training.runs
    fine = all(run.going or (run.phase != "lost" and not run.problem) for run in runs)
    return fine and tuple(run.settings for run in runs) == wanted.runs


def _described(state: State) -> bool:
    return state.recipe is not None or bool(state.recipe_problem)


def _count(scene: Scene) -> int:
    """Parts at most, for the progress."""
    parts = 2 + 2 * len(scene.force) + bool(scene.compare) + (scene.batch is not None)
    return parts + (scene.train is not None) + len(scene.experiments)
