"""Named modes: chosen as a model is loaded, tried out on it, and refused where they fail.

Exact mode is tested first.  Then the mode's kernels run the same tokens, the whole self-test is
repeated with them, and what they gain and change is measured and kept for this machine.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from explorer import places
from explorer.engine import findings, selftest
from explorer.engine.errors import BadInput
from explorer.engine.layout import Layout
from explorer.engine.loading import LoadedModel
from explorer.engine.one_row import OneRow
from explorer.engine.progress import Progress
from explorer.engine.runner import Runner
from explorer.engine.traffic import machine_key
from explorer.trace.modes import MODES, Mode, ModeFigures
from explorer.trace.request import RunRequest, Sampling

PROMPT, STEPS, AGAIN = 32, 20, 10  # tokens read, cached steps after them, steps timed once more
Stop = Callable[[], bool]


@dataclass(slots=True)
class _Run:
    """The logits and seconds of a prompt and the steps after it."""

    logits: list[np.ndarray]
    seconds: list[float]  # of the steps alone
    ids: tuple[int, ...]  # prompt and every token read


@dataclass(frozen=True, slots=True)
class Entered:
    """A mode that a runner is in, and the way back."""

    runner: Runner
    kernels: OneRow
    loaded: LoadedModel
    found: findings.Findings

    @classmethod
    def of(cls, runner: Runner, mode: Mode) -> Entered:
        """BadInput, and nothing done, where this model has nothing for the kernels to do."""
        kernels = OneRow(runner.model, rounded=mode == "rounded")
        entered = cls(runner, kernels, runner.loaded, findings.taken("", runner))
        runner.use(kernels)
        return entered

    def leave(self) -> None:
        """Exact mode again, with the weights and the findings as they were."""
        self.runner.use(None)
        self.kernels.give_back()
        self.runner.cache.drop()
        findings.apply(self.found, self.runner)
        self.runner.loaded = self.loaded

    @contextlib.contextmanager
    def left_on_failure(self) -> Iterator[None]:
        """An error inside leaves the mode."""
        try:
            yield
        except BaseException:
            self.leave()
            raise


def switch(runner: Runner, mode: Mode, progress: Progress, stop: Stop, again: bool) -> None:
    """Bring a tested runner into `mode`; BadInput with one sentence where that does not work.

    Its gain is measured once on a machine, unless `again`; the self-test runs every time.  What was
    measured of any mode on this model is on the card afterwards.
    """
    known = _known(runner)
    if mode != "exact":
        if again or all(figures.mode != mode for figures in known):
            entered, figures = try_out(runner, mode, progress, stop)
            _keep(runner, figures)
            known = (*(f for f in known if f.mode != mode), figures)
        else:
            entered = Entered.of(runner, mode)
            with entered.left_on_failure():
                _test(runner, mode, progress, stop)
        entered.kernels.forget_originals()
    card = msgspec.structs.replace(runner.loaded.card, mode=mode, modes=known)
    runner.loaded = replace(runner.loaded, card=card)


def try_out(
    runner: Runner, mode: Mode, progress: Progress, stop: Stop
) -> tuple[Entered, ModeFigures]:
    """Test and measure; the runner is left in the mode.  BadInput, and exact again, if it fails."""
    progress(f"Measuring exact mode, to compare mode {mode} with it", None)
    exact = _run(runner, None, STEPS, stop)
    began = time.perf_counter()
    entered = Entered.of(runner, mode)
    warm_up = time.perf_counter() - began
    with entered.left_on_failure():
        _test(runner, mode, progress, stop)
        progress(f"Measuring mode {mode}", None)
        ours = _run(runner, exact.ids, STEPS, stop)
        runner.use(None)  # at once after it, for a busy machine slows both alike
        exact.seconds += _run(runner, exact.ids, AGAIN, stop).seconds
        runner.use(entered.kernels)
        ours.seconds += _run(runner, exact.ids, AGAIN, stop).seconds
        figures = _figures(mode, exact, ours, warm_up)
        limit = selftest.logit_tolerance("float32", np.stack(exact.logits))
        if mode == "fast" and not figures.max_logit_difference <= limit:
            raise BadInput(
                f"Mode fast is not offered on {runner.loaded.card.name}: its logits differ from "
                f"exact mode's by {figures.max_logit_difference:.2g}; stay in exact mode."
            )
    return entered, figures


def _test(runner: Runner, mode: Mode, progress: Progress, stop: Stop) -> None:
    """The self-test once more: all that exact mode offers on this model must work here, too."""
    progress(f"Testing what works in mode {mode}", None)
    before = runner.loaded.card
    if not runner.cache_offered:
        raise BadInput(
            f"Mode {mode} speeds up steps with a cache, and none works on {before.name}; stay in "
            "exact mode."
        )
    selftest.run(runner, stop)
    now = runner.loaded.card
    lost = [c.name for c in before.capabilities if c.offered and not now.offers(c.name)]
    if lost:
        raise BadInput(
            f"Mode {mode} is not offered on {before.name}: with it, {now.words(lost[0])}; stay in "
            "exact mode."
        )


def _run(runner: Runner, read: tuple[int, ...] | None, steps: int, stop: Stop) -> _Run:
    """A prompt of ordinary tokens and `steps` cached steps: over `read`, else over the best."""
    card = runner.loaded.card
    vocabulary = runner.model.get_input_embeddings().num_embeddings
    prompt = max(1, min(PROMPT, (card.context or PROMPT + STEPS) - STEPS))
    sample = selftest.sample_ids(vocabulary, set(card.eos_ids), prompt)
    ids = list(sample if read is None else read[:prompt])
    done = _Run([], [], ())
    with runner.own_cache_aside():
        for index in range(steps + 1):
            layout = Layout(tuple(ids), (1,) * len(ids), tuple(range(len(ids))))
            began = time.perf_counter()
            step = runner.step(RunRequest(), layout, index, Sampling(), stop)
            if index:
                done.seconds.append(time.perf_counter() - began)
            done.logits.append(step.logits)
            ids.append(step.draw.token_id if read is None else read[len(ids)])
    done.ids = tuple(ids)
    return done


def _figures(mode: Mode, exact: _Run, ours: _Run, warm_up: float) -> ModeFigures:
    pairs = list(zip(exact.logits, ours.logits, strict=True))
    return ModeFigures(
        mode=mode,
        measured=datetime.now(UTC).date().isoformat(),
        exact_ms=statistics.median(exact.seconds) * 1e3,
        mode_ms=statistics.median(ours.seconds) * 1e3,
        max_logit_difference=max(float(np.abs(a - b).max()) for a, b in pairs),
        same_winner_steps=sum(int(a.argmax() == b.argmax()) for a, b in pairs),
        steps=len(pairs),
        warm_up_s=warm_up,
    )


# -- what was measured before


def _file(runner: Runner, mode: Mode) -> Path:
    machine = machine_key(runner.model.device)
    name = findings.hashed({"of": findings.identity(runner), "machine": machine, "mode": mode})
    return places.data_folder() / "modes" / f"{name}.json"


def _known(runner: Runner) -> tuple[ModeFigures, ...]:
    found = []
    for mode in MODES:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            found.append(msgspec.json.decode(_file(runner, mode).read_bytes(), type=ModeFigures))
    return tuple(found)


def _keep(runner: Runner, figures: ModeFigures) -> None:
    """A disk that is full or read-only costs nothing but measuring again."""
    path = _file(runner, figures.mode)
    part = path.with_suffix(f".{os.getpid()}.part")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.encode(figures))
        os.replace(part, path)
