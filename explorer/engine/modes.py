"""Named modes: chosen as a model is loaded, tried out on it, and refused where they fail.

Exact mode is tested first.  Then the mode's kernels run the same tokens, the whole self-test is
repeated with them, and what they gain and change is measured and kept for this machine.
"""

from __future__ import annotations

import contextlib
import logging
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from explorer import disk, places
from explorer.engine import kernels, one_row
from explorer.engine.errors import BadInput
from explorer.engine.loading.loading import LoadedModel
from explorer.engine.machine.memory_bandwidth import machine_key
from explorer.engine.one_row import OneRow
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.engine.progress import Progress
from explorer.engine.selftest import selftest, store
from explorer.trace.mode_figures import ModeFigures
from explorer.trace.modes import MODES, Mode
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.rounding import logit_tolerance

PROMPT, STEPS = 32, 20  # tokens read, and cached steps after them
Stop = Callable[[], bool]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entered:
    """A mode that a runner is in, and the way back."""

    runner: Runner
    kernels: OneRow
    loaded: LoadedModel
    found: store.StoredSelfTest

    @classmethod
    def of(cls, runner: Runner, mode: Mode) -> Entered:
        """BadInput, and nothing done, where this model has nothing for the kernels to do."""
        kernels = OneRow(runner.model, rounded=mode == "rounded")
        entered = cls(runner, kernels, runner.loaded, store.taken("", runner))
        runner.use(kernels)
        return entered

    def leave(self) -> None:
        """Exact mode again, with the weights and the findings as they were."""
        self.runner.use(None)
        self.kernels.give_back()
        self.runner.cache.drop()
        store.apply(self.found, self.runner)
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
    """Bring a tested runner into `mode`; where that does not work, it stays exact, and says why.

    Its gain is measured once on a machine, unless `again`; the self-test runs every time.  The card
    tells the mode, or why it was refused, and what was measured of any mode on this model.
    """
    refused = ""
    if mode != "exact":
        try:
            _enter(runner, mode, progress, stop, again)
        except BadInput as error:
            _log.warning("%s %s", error.sentence, error.details)
            mode, refused = "exact", error.sentence
    card = msgspec.structs.replace(
        runner.loaded.card, mode=mode, mode_refused=refused, modes=_known(runner)
    )
    runner.loaded = replace(runner.loaded, card=card)


def _enter(runner: Runner, mode: Mode, progress: Progress, stop: Stop, again: bool) -> None:
    if again or all(figures.mode != mode for figures in _known(runner)):
        entered, figures = try_out(runner, mode, progress, stop)
        _keep(runner, figures)
    else:
        entered = Entered.of(runner, mode)
        with entered.left_on_failure():
            _test(runner, mode, progress, stop)
    entered.kernels.forget_originals()


def try_out(
    runner: Runner, mode: Mode, progress: Progress, stop: Stop
) -> tuple[Entered, ModeFigures]:
    """Test and measure; the runner is left in the mode.  BadInput, and exact again, if it fails."""
    one_row.usable(runner.model, mode)
    began = time.perf_counter()
    kernels.library()
    warm_up = time.perf_counter() - began
    progress(f"Measuring exact mode, to compare mode {mode} with it", None)
    exact, read = _logits(runner, None, stop)
    began = time.perf_counter()
    entered = Entered.of(runner, mode)
    warm_up += time.perf_counter() - began
    with entered.left_on_failure():
        _test(runner, mode, progress, stop)
        progress(f"Measuring mode {mode}", None)
        ours, _ = _logits(runner, read, stop)
        figures = _figures(mode, exact, ours, _seconds(runner, read, entered, stop), warm_up)
        limit = logit_tolerance("float32", np.stack(exact))
        if mode == "fast" and not figures.max_logit_difference <= limit:
            raise BadInput(
                f"Mode fast is not offered on {runner.loaded.card.name}: its logits "
                f"differ from exact mode by {figures.max_logit_difference:.2g}. Stay in "
                "exact mode."
            )
    return entered, figures


def _test(runner: Runner, mode: Mode, progress: Progress, stop: Stop) -> None:
    """The self-test once more: all that exact mode offers on this model must work here, too."""
    progress(f"Testing what works in mode {mode}", None)
    before = runner.loaded.card
    if not runner.cache_offered:
        raise BadInput(
            f"Mode {mode} needs a cache, and none works on {before.name}. Stay in exact mode."
        )
    selftest.run(runner, stop)
    now = msgspec.structs.replace(runner.loaded.card, tested="")  # today
    runner.loaded = replace(runner.loaded, card=now)
    lost = [c.name for c in before.capabilities if c.offered and not now.offers(c.name)]
    if lost:
        raise BadInput(
            f"Mode {mode} is not offered on {before.name}: with it, {now.words(lost[0])}; stay in "
            "exact mode."
        )


def _passes(
    runner: Runner, read: tuple[int, ...] | None, stop: Stop
) -> Iterator[tuple[np.ndarray, float, tuple[int, ...]]]:
    """A prompt of ordinary tokens and STEPS cached steps: over `read`, else over the best.

    Of each pass its logits, its seconds, and all tokens with the next one.
    """
    card = runner.loaded.card
    vocabulary = runner.model.get_input_embeddings().num_embeddings
    prompt = max(1, min(PROMPT, (card.context or PROMPT + STEPS) - STEPS))
    sample = selftest.sample_ids(vocabulary, set(card.eos_ids), prompt)
    ids = list(sample if read is None else read[:prompt])
    with runner.own_cache_aside():
        for index in range(STEPS + 1):
            layout = Layout(tuple(ids), (1,) * len(ids), tuple(range(len(ids))))
            began = time.perf_counter()
            step = runner.step(RunRequest(), layout, index, Sampling(), stop)
            seconds = time.perf_counter() - began
            ids.append(step.draw.token_id if read is None else read[len(ids)])
            yield step.logits, seconds, tuple(ids)


def _logits(
    runner: Runner, read: tuple[int, ...] | None, stop: Stop
) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """Those of every pass, and the tokens read."""
    done = list(_passes(runner, read, stop))
    return [logits for logits, _, _ in done], done[-1][2]


def _seconds(
    runner: Runner, read: tuple[int, ...], entered: Entered, stop: Stop
) -> tuple[float, float]:
    """Medians of a step: exact, and in the mode.  Step by step in turns: others use the machine."""
    turns = (None, entered.kernels)
    spent: tuple[list[float], list[float]] = ([], [])
    for first in (0, 1):
        for index, (_, seconds, _) in enumerate(_passes(runner, read, stop)):
            if index:  # the prefill is no step
                spent[(first + index) % 2].append(seconds)
            runner.use(turns[(first + index + 1) % 2])
    runner.use(entered.kernels)
    return statistics.median(spent[0]), statistics.median(spent[1])


def _figures(
    mode: Mode,
    exact: list[np.ndarray],
    ours: list[np.ndarray],
    seconds: tuple[float, float],
    warm_up: float,
) -> ModeFigures:
    pairs = list(zip(exact, ours, strict=True))
    return ModeFigures(
        mode=mode,
        measured=datetime.now(UTC).date().isoformat(),
        exact_ms=seconds[0] * 1e3,
        mode_ms=seconds[1] * 1e3,
        max_logit_difference=max(float(np.abs(a - b).max()) for a, b in pairs),
        same_winner_steps=sum(int(a.argmax() == b.argmax()) for a, b in pairs),
        steps=len(pairs),
        warm_up_s=warm_up,
    )


# -- what was measured before


def _file(runner: Runner, mode: Mode) -> Path:
    machine = machine_key(runner.model.device)
    name = store.hashed({"of": store.identity(runner), "machine": machine, "mode": mode})
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
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.write(path, msgspec.json.encode(figures))
