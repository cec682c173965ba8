"""The session: what the window may wish for, and the state that it shows.

Every method is a wish and returns at once.  Call them, and listen, in one thread only; the engine,
the files and the autosave work elsewhere and answer through `post`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import msgspec

from explorer import sampling as chain
from explorer.figures.text.turns import USER
from explorer.lessons.given_answers import GivenAnswers
from explorer.session import transitions
from explorer.session.branches import Branch
from explorer.session.connection.chosen_engine import ChosenEngine
from explorer.session.connection.ports import Engine
from explorer.session.driver import ENDLESS, Driver
from explorer.session.edits import Edits
from explorer.session.engine_lease import with_key
from explorer.session.saving.saved_sessions import Saving, contents
from explorer.session.state import Company, LessonPlace, SceneMade, SceneProgress, State, model_key
from explorer.session.store import Store
from explorer.session.undo_history import History
from explorer.trace.card import SelfCheck
from explorer.trace.chat import Message
from explorer.trace.comparison import Of
from explorer.trace.experiments import Experiment
from explorer.trace.files.saved_extras import SavedExtras
from explorer.trace.files.saved_view import SavedView
from explorer.trace.inside.heads import SweepHeads
from explorer.trace.interventions.cells import added, switched
from explorer.trace.interventions.context_policy import ContextPolicy
from explorer.trace.interventions.kinds import Intervention
from explorer.trace.request import MOST_SEED, TYPED, RunRequest, Sampling, Stops


class Session:
    """The one mutable owner of state.  What is asked beside a run is asked of its parts."""

    def __init__(
        self,
        engine_factory: Callable[[], Engine],
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        """`post` runs a callable later in the owner's thread; no engine is started yet."""
        self._made_of = engine_factory, post
        self._store = Store()
        history = History()
        self._driver = driver = Driver(self._store, history, engine_factory, post)
        self._edits = Edits(self._store, history, driver)
        self.act_numbers = history.numbers  # of acts begun on two sides: see `linked`
        self.saving = Saving(self._store, self._edits, driver, post)
        self.models, self.downloads = driver.models, driver.downloads
        self.batches, self.background = driver.batches, driver.background
        self.trainings = driver.trainings
        self.stopwatch = driver.stopwatch  # how long each step took, from the wish to the picture
        self._talk: RunRequest | None = None  # the conversation that was left for raw text
        self.answers = GivenAnswers()  # to the questions of lessons
        self._store.subscribe(self._edits.bound)

    def another(self) -> Session:
        """A second session with an engine of its own, which is not started yet."""
        factory, post = self._made_of
        if isinstance(factory, ChosenEngine):  # each side chooses its own
            factory = ChosenEngine(factory.command)
        return Session(factory, post)

    def begin_as(self, other: Session, branch: Branch | None = None, opens: bool = True) -> None:
        """Take over what another session has: model, prompt, settings and run with its branches.

        The model is opened by this session's own engine; not `opens`: once it is stepped on.
        `branch`: one of the other's in place of the one on screen; it keeps its name.  A run that
        is taken over is the other session's to save.
        """
        state = other.state
        self.start_engine()
        if not opens:
            pass
        elif state.opened:
            self._driver.open(with_key(state.request, state.opened[0]))
        elif state.request.model:
            self._driver.open(state.request)
        self._store.set(sampling=state.sampling, stops=state.stops, reuse=state.reuse)
        whole = contents(state, SavedView())
        if whole is not None and state.trace is not None:
            taken, beside = whole
            made = SceneMade().with_run(taken)
            for sibling in beside.branches:
                made = made.with_run(sibling.trace)
            self.note_made(made.with_batch(beside.batch))
            if branch is None:
                self.saving.take_over(taken, beside)
            else:
                self.saving.take_over(branch.trace, SavedExtras())
                now = self.state.branches.current
                self._store.set(branch_names={} if now is None else {now: branch.name})
            self._store.set(selection=state.selection)
        if branch is None:
            self._store.set(request=state.request, sampling=state.sampling)
        self._driver.keep_request()
        self._driver.prompt.refresh()

    @property
    def state(self) -> State:
        return self._store.state

    def subscribe(self, listener: Callable[[State, State], None]) -> Callable[[], None]:
        """`listener(old, new)` after each change; call what comes back to unsubscribe."""
        return self._store.subscribe(listener)

    def painted(self, at: float) -> None:
        """Everything of the newest step is on screen since `at`, in seconds of perf_counter.

        During a run listeners are not called: the next step brings the figure along.
        """
        if self.stopwatch.painted(at) and self.state.status.activity != "running":
            self._store.set(painted=self.state.painted + 1)

    # -- the engine and the model

    def start_engine(self) -> None:
        """Start the engine, unless it runs already."""
        if not self._driver.running:
            self._driver.start()

    def restart_engine(self) -> None:
        """A new engine in place of the lost one; the model is opened again, the trace stays."""
        self._driver.start()

    def choose_engine(self, command: tuple[str, ...]) -> None:
        """Run by this command from now on; no words: by this program's own engine.

        The model that was open is opened there by its name; the trace stays.
        """
        factory = self._made_of[0]
        if isinstance(factory, ChosenEngine) and factory.command != command:
            factory.command = command
            self._store.set(library=None)  # those were the models of another machine
            self._driver.start()

    @property
    def engine_command(self) -> tuple[str, ...]:
        """The words of the command by which engines are started; none: this program's own."""
        factory = self._made_of[0]
        return factory.command if isinstance(factory, ChosenEngine) else ()

    def fetch_all(self) -> None:
        """All queries and keys of the step on screen, if an engine elsewhere keeps them."""
        self._driver.far.fetch_all()

    def release(self, why: str) -> None:
        """End the engine to free its memory, and say why; the next step opens its model again."""
        if self._driver.running:
            self._driver.release(why)

    def post(self, act: Callable[[], None]) -> None:
        """Do something in the owner's thread, after what goes on now."""
        self._made_of[1](act)

    @property
    def runs_or_will(self) -> bool:
        """True while a model is opened or steps are made, or will be without another act."""
        return self._driver.runs_or_will

    @property
    def holds_model(self) -> bool:
        """True if an engine runs that has opened a model."""
        return self._driver.running and self.state.card is not None

    def close(self) -> None:
        """End the engine and all threads; waits for a save that is being written."""
        self._driver.close()
        self.saving.close()

    def open_model(
        self,
        name: str,
        dtype: str | None = None,
        device: str | None = None,
        cache_type_k: str | None = None,
        gpu_layers: int | None = None,
        form: str | None = None,
        **how: bool,
    ) -> None:
        """Open a model; the trace on screen stays until the next step.

        The model that is open stays in its place until the new one is there: if that can't be
        opened, or is cancelled, it is used as before.
        None = as before; a .gguf file that was not open opens in its usual form.

        `how` are fields of `messages.Load` for this one time.
        """
        opened = transitions.opened(
            self.state.request, name, dtype, device, cache_type_k, gpu_layers, form
        )
        self._store.set(plan=None, code_question=None, unopened="", no_room=False, error="")
        self._driver.open(opened, **how)

    def answer_code(self, run_it: bool) -> None:
        """Open the model that `code_question` is about with its own code, this once; or don't."""
        question = self.state.code_question
        if question is None:
            return
        self._store.set(code_question=None)
        if run_it:
            self.open_model(question.model, allow_code=True)
        else:
            self._store.set(error=question.refused)

    def test_model_again(self) -> None:
        """Reopen the model and test again which features work on it."""
        state = self.state
        self.open_model(*(state.opened or (model_key(state.request),))[0], test_again=True)
        if state.reopens:
            self._driver.keep_request()

    # -- what changes the forward pass

    def set_prompt(self, text: str) -> None:
        if self._change_request("prompt", merge=True, prompt=text, **TYPED):
            self._driver.prompt.refresh()

    def set_chat(self, on: bool) -> None:
        """As a chat, or as raw text; a conversation is kept for when it is a chat again."""
        request, talk = self.state.request, self._talk
        if on == request.chat:
            return
        changes: dict[str, Any] = dict(TYPED)
        if on and talk is not None:
            last = msgspec.structs.replace(talk.messages[-1], content=request.prompt)
            changes |= {"messages": (*talk.messages[:-1], last)}
            changes |= {"template_args": talk.template_args, "special_as_text": False}
        self._talk = request if request.messages else None
        if self._change_request("chat", chat=on, **changes):
            self._driver.prompt.refresh()

    def set_messages(self, messages: Sequence[Message], typing: bool = False) -> None:
        """A conversation for the prompt; a single message of the user is a typed chat prompt.

        `typing`: a message is being typed in, which is one act to undo.
        """
        last = messages[-1].content
        alone = len(messages) == 1 and messages[0].role == USER
        changes: dict[str, Any] = {"chat": True, "prompt": last}
        own = {"messages": tuple(messages), "special_as_text": False}
        changes |= TYPED if alone else own
        if typing:
            changed = self._change_request("prompt", merge=True, **changes)
        else:
            changed = self._change_request("conversation", **changes)
        if changed:
            self._driver.prompt.refresh()

    def set_reuse(self, on: bool) -> None:
        """Of a conversation that begins as the last run did, read only what is new."""
        self._store.set(reuse=on)

    def answer_again(self) -> None:
        """Another answer to the same prompt: a branch from the first token on, with another seed.

        Only where the next token is drawn: the most likely one is always the same.
        """
        state = self.state
        if state.trace is None or state.request_changed or state.sampling.takes_best:
            return
        self._driver.stop()
        seed = (state.sampling.seed + 1) % (MOST_SEED + 1)
        self._edits.make(
            "sampling", {"sampling": msgspec.structs.replace(state.sampling, seed=seed)}
        )
        self._driver.advance(ENDLESS, kept=0)

    def set_special_as_text(self, on: bool) -> None:
        """Read "<|im_end|>" in the prompt as letters instead of the control token."""
        if self._change_request("special tokens", special_as_text=on):
            self._driver.prompt.refresh()

    def set_causal_mask(self, on: bool) -> None:
        self._change_request("causal mask", causal_mask=on)

    def set_interventions(self, wanted: Sequence[Intervention]) -> None:
        """What the run changes in its model, in this order; each counts once."""
        self._change_request("interventions", interventions=tuple(dict.fromkeys(wanted)))

    def add_interventions(self, more: Sequence[Intervention]) -> None:
        """Some more, in place of those of which they leave nothing."""
        self.set_interventions(added(self.state.request.interventions, *more))

    def drop_interventions(self, some: Collection[Intervention]) -> None:
        """All but these."""
        now = self.state.request.interventions
        self.set_interventions([one for one in now if one not in some])

    def switch_intervention(self, one: Intervention) -> None:
        """On if it is off, off if it is on."""
        self.set_interventions(switched(self.state.request.interventions, one))

    def set_context(self, policy: ContextPolicy) -> None:
        """What a run does about a full context."""
        if self._change_request("context", merge=True, context=policy):
            self._driver.prompt.refresh()

    def set_cache(self, on: bool) -> None:
        self._change_request("cache", cache=on)

    def set_padding(self, side: Literal["left", "right"] | None, pad: int) -> None:
        self._change_request("padding", merge=True, padding=side, pad=pad)

    def _change_request(self, kind: str, merge: bool = False, **changes: Any) -> bool:
        request = msgspec.structs.replace(self.state.request, **changes)
        if request == self.state.request:
            return False
        if kind != "prompt":
            self._driver.stop()
        self.drop_plan()
        self._edits.make(kind, {"request": request}, merge=merge)
        return True

    def set_sampling(self, sampling: Sampling) -> None:
        """Applies from the next step on, also to a run that is under way."""
        if sampling == self.state.sampling:
            return
        try:
            chain.check(sampling)
        except chain.SamplingError as error:
            self._store.set(error=str(error))
            return
        self._edits.make("sampling", {"sampling": sampling}, merge=True)
        self._driver.resample()

    def set_stops(self, stops: Stops) -> None:
        """Applies from the next step or run on."""
        if stops != self.state.stops:
            self._edits.make("stops", {"stops": stops}, merge=True)

    # -- running

    def step(self, steps: int = 1) -> None:
        """Go on by so many steps: along the run as far as it goes, then by new passes.

        The first pass of a run is the prefill.  With changed sampling settings, new passes begin a
        branch after the selected step; with a changed request, they begin a new run.
        """
        state = self.state
        if state.looks_back and not state.request_changed and state.branch_point is None:
            assert state.trace is not None
            assert state.step_index is not None
            recorded = min(steps, len(state.trace.steps) - 1 - state.step_index)
            self.look(recorded)
            steps -= recorded
        if steps:
            self._driver.advance(steps, kept=self.state.branch_point)

    def run(self) -> None:
        """Generate until an end token, the limit, or pause.

        From the end of the run, also where an earlier step is selected; with changed sampling
        settings, as a branch after the selected step.
        """
        self._driver.advance(ENDLESS, kept=self.state.branch_point)

    def go_on(self, capture_every: int | None = None) -> None:
        """Begin the large run of `state.plan`, recording attention of every n-th layer."""
        if self.state.plan is None:
            return
        every = self.state.request.capture_every if capture_every is None else capture_every
        self._change_request("capture", capture_every=max(1, every))
        self._driver.go_on()

    def drop_plan(self) -> None:
        """Leave the large run be."""
        if self.state.plan is not None:
            self._store.set(plan=None)

    def run_prompt(
        self, prompt: str, chat: bool, side: Literal["left", "right"] | None, pad: int
    ) -> None:
        """Another prompt in place of the run on screen, and its first pass: one act to undo."""
        self._driver.stop()
        self.drop_plan()
        state = self.state
        request = msgspec.structs.replace(
            state.request, prompt=prompt, chat=chat, padding=side, pad=pad, **TYPED
        )
        if state.trace is not None and state.trace.steps and state.trace.request == request:
            return  # it is the run on screen
        act = self._edits.make(
            "batch prompt", {"request": request, **transitions.view(None, state)}
        )
        self._driver.prompt.refresh()
        self._driver.advance(1, act)

    def lay_out(self, request: RunRequest, sampling: Sampling, stops: Stops, steps: int) -> None:
        """Settings and the first passes of a new run, as one act to undo; 0 steps: no run yet."""
        self._driver.stop()
        self.drop_plan()
        changes = {"request": request, "sampling": sampling, "stops": stops}
        act = self._edits.make("scene", {**changes, **transitions.view(None, self.state)})
        self._driver.prompt.refresh()
        if steps:
            self._driver.advance(steps, act)

    def show_scene(self, progress: SceneProgress) -> None:
        """Say how far a scene is; see `scenes.ScenePlayer`."""
        self._store.set(scene=progress)

    def note_made(self, made: SceneMade) -> None:
        """Say what scenes made by themselves: it is not asked to be saved."""
        if made is not self.state.scene_made:
            self._store.set(scene_made=made)

    def show_company(self, company: Company) -> None:
        """Say whether another session is shown beside this one, and linked to it."""
        self._store.set(company=company)

    def show_lesson(self, place: LessonPlace | None) -> None:
        """Say which page of which lesson is open; None = no lesson."""
        self._store.set(lesson=place)

    def pause(self) -> None:
        self._driver.pause()

    def cancel(self) -> None:
        """End whatever the engine is doing, a load, a run or a check, and say that it ended."""
        self._driver.give_up()

    def cut(self) -> None:
        """Remove the steps after the selected one; stepping on from there is a new pass.

        The tree of branches keeps them.
        """
        self._driver.stop()
        trace, index = self.state.trace, self.state.step_index
        if trace is not None and index is not None and self.state.looks_back:
            shorter = transitions.unchecked(trace.truncated(index + 1))
            self._edits.make("cut", transitions.view(shorter, self.state))

    def reset(self) -> None:
        """Drop the trace; undo brings it back."""
        self._driver.stop()
        if self.state.trace is None:
            return
        changes = transitions.view(None, self.state)
        request = self._driver.free_request()
        if request != self.state.request:  # the run was of another model than the one that is open
            changes["request"] = request
        self._edits.make("reset", changes)
        self._driver.prompt.refresh()

    def force(self, token_id: int) -> None:
        """Replace the token picked by the step on screen; later steps are cut off."""
        self._driver.stop()
        trace, index = self.state.trace, self.state.step_index
        if trace is None or index is None:
            self._store.set(error="There is no generated token to replace yet. Press Step first.")
            return
        step = trace.steps[index]
        token = transitions.known_token(token_id, self.state)
        if token is None:
            self._store.set(
                error=f"Token {token_id} is not among the most likely tokens of this step. "
                "Open its model to force any other."
            )
            return
        try:
            draw = chain.force(step.logits, step.sampling, token_id, trace.context_ids(index))
        except chain.SamplingError as error:
            self._store.set(error=str(error))
            return
        forced = trace.truncated(index + 1).forced(token, draw)
        self._edits.make("force", transitions.view(transitions.unchecked(forced), self.state))

    def look_only(self) -> None:
        """Leave a run whose model has drifted as it is: nothing is computed on it."""
        self._store.set(drift=None)

    def run_again(self) -> None:
        """Run what is on screen once more with the model as it is now: a branch beside it."""
        self._driver.run_again()

    # -- looking

    def look(self, by: int) -> None:
        """Select the step so many later, or earlier if negative; the ends stop it."""
        trace, index = self.state.trace, self.state.step_index
        if trace is None or index is None:
            return
        last = len(trace.steps) - 1
        wanted = min(max(index + by, 0), last)
        if wanted != index:
            self.select(step=None if wanted == last else wanted)

    def select(self, **changes: Any) -> None:
        """Change fields of the selection; another step drops the cursor of the old one."""
        selection = replace(self.state.selection, **changes)
        if selection.step != self.state.selection.step:
            selection = replace(selection, query=changes.get("query"), key=changes.get("key"))
        if selection == self.state.selection:
            return
        self._store.set(selection=selection)
        if self.state.step_index is not None:
            self._driver.background.look_at(self.state.step_index)

    def select_slot(self, slot: int) -> None:
        """Select the step that chose the token of a slot; a token of the prompt by its row."""
        trace = self.state.trace
        if trace is None:
            return
        step = slot - len(trace.prompt)
        if step < 0:
            self.select(query=slot)
        else:
            last = step == len(trace.steps) - 1
            self.select(step=None if last else step, query=None)

    def compare(self, on: bool, of: Of = "mask") -> None:
        """Also run the step on screen with the causal mask, or the file's form, the other way."""
        known = self.state.comparison
        kept = known if on and known is not None and known.of == of else None
        self._store.set(comparing=on, compare_of=of, comparison=kept)
        if on and self.state.step_index is not None:
            self._driver.background.look_at(self.state.step_index)

    # -- branches and experiments

    def show_branch(self, number: int, steps: int | None = None, select: int | None = None) -> None:
        """Put a branch on screen, whole or its first `steps` steps, looking at step `select`."""
        branch = self.state.branches.get(number)
        if branch is None or number in self.state.forgotten:
            self._store.set(error="This branch was deleted, by you or to save memory.")
            return
        self._driver.stop()
        trace = branch.trace if steps is None else branch.trace.truncated(max(1, steps))
        if transitions.same_view(trace, self.state):
            self.select(step=select)
            return
        trace = replace(trace, self_check=SelfCheck())
        changes = {**transitions.view(trace, self.state), "request": trace.request}
        if branch.trace.steps[-1].sampling != self.state.sampling:  # steps go on as they were drawn
            changes["sampling"] = branch.trace.steps[-1].sampling
        # The branch first: a beginning that several share is shown as part of this one.
        self._store.set(branches=replace(self.state.branches, current=number))
        self._driver.keep_request()
        self._edits.make("branch", changes)
        self._driver.prompt.refresh()
        if select is not None:
            self.select(step=min(select, len(trace.steps) - 1))

    def rename_branch(self, number: int, name: str) -> None:
        """Call a branch otherwise; an empty name changes nothing."""
        name = " ".join(name.split())
        if name and self.state.branches.get(number) is not None:
            self._edits.make("rename", {"branch_names": {**self.state.branch_names, number: name}})

    def forget_branch(self, number: int) -> None:
        """Give a branch up, until undo; the one on screen stays."""
        branches = self.state.branches
        if branches.get(number) is not None and number != branches.current:
            self._edits.make("forget", {"forgotten": self.state.forgotten | {number}})

    def measure(self, kind: type[Experiment], quiet: bool = False, **settings: Any) -> None:
        """Run an experiment on the step on screen, for `state.measured_of` its result.

        `settings` are fields of `kind`.  `quiet`: the program wants it, so nothing gives way to it
        but what else nobody asked for, and no error is shown.
        """
        if not quiet:
            self._driver.stop()
        run = partial(self._driver.experiments.run, kind, settings, quiet)
        self._driver.proof.first(run, quiet=quiet)

    def sweep_heads(self) -> None:
        """Silence each head in turn, for what that does to the token chosen at this step."""
        state = self.state
        if state.trace is not None and state.step_index is not None:
            self.measure(SweepHeads, token=state.trace.chosen_ids[state.step_index])

    # -- undo

    def undo(self) -> None:
        self._edits.undo()

    def redo(self) -> None:
        self._edits.redo()

    # -- the rest

    def run_self_check(self) -> None:
        """Check the trace on screen now."""
        self._driver.stop()
        self._store.set(error="")
        self._driver.proof.first(lambda: self._driver.background.check(asked=True))

    def report(self, problem: str) -> None:
        """Show a sentence until something is done; "" dismisses it."""
        self._store.set(error=problem)
