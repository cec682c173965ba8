"""What the timings say in words."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from explorer.figures.cost.timing import PIECES, TimedPass, TimingFigure
from explorer.trace.cost.memory_bandwidth import Traffic
from explorer.ui.canvases.charts.marks import LegendEntry
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.wording import ms_text

PIECE_WORDS = {
    "embedding": QT_TRANSLATE_NOOP("timings", "embedding"),
    "attention": QT_TRANSLATE_NOOP("timings", "attention"),
    "mlp": QT_TRANSLATE_NOOP("timings", "MLP"),
    "layer rest": QT_TRANSLATE_NOOP("timings", "norms and adds"),
    "norm": QT_TRANSLATE_NOOP("timings", "final norm"),
    "head": QT_TRANSLATE_NOOP("timings", "head"),
    "rest": QT_TRANSLATE_NOOP("timings", "other"),
}
PHASE_WORDS = {
    "prefill": QT_TRANSLATE_NOOP("timings", "prefill"),
    "decode": QT_TRANSLATE_NOOP("timings", "decode"),
    "recompute": QT_TRANSLATE_NOOP("timings", "recompute"),
}
ATTENTION, MLP, OTHER = 1.0, 0.62, 0.32  # strength of a phase's colour


COURSE_WORDS = (
    QT_TRANSLATE_NOOP("timings", "pass"),
    QT_TRANSLATE_NOOP("timings", "capture"),
    QT_TRANSLATE_NOOP("timings", "sampling"),
    QT_TRANSLATE_NOOP("timings", "transfer"),
    QT_TRANSLATE_NOOP("timings", "display"),
)


def tr(text: str) -> str:
    return QCoreApplication.translate("timings", text)


def speed(figure: TimingFigure) -> str:
    """Prefill and decode, each by itself."""
    parts = []
    if figure.prefill_ms is not None:
        parts.append(tr("Prefill {0}").format(ms_text(figure.prefill_ms)))
    decode = figure.decode
    if decode is not None and figure.tokens_per_second is not None:
        parts.append(
            tr("then {0}/token ({1}/s)").format(
                ms_text(decode.median), f"{figure.tokens_per_second:.3g}"
            )
        )
        if decode.count >= 4:
            parts.append(
                tr("middle half: {0}–{1}").format(f"{decode.low:.3g}", ms_text(decode.high))
            )
    return ", ".join(parts)


def positions(figure: TimingFigure) -> str:
    """What went through the model so far, and what it would be without a cache."""
    so_far = tr("{0} computed").format(_read(figure.positions))
    if figure.reused_tokens:
        prompt = figure.reused_tokens + figure.prefill_tokens
        so_far = tr("{0} of {1} prompt tokens from the cache; {2}").format(
            f"{figure.reused_tokens:,}", f"{prompt:,}", so_far
        )
    if len(figure.passes) == 1:
        return so_far  # the cache has saved nothing yet
    without = tr("without a cache: {0}").format(f"{figure.positions_without_cache:,}")
    return f"{so_far}; {without}"


def bound(figure: TimingFigure, floor: Traffic | None) -> str:
    """How near decode is to what reading the weights takes."""
    if floor is None:
        return tr("memory limit not measured yet")
    least = ms_text(floor.floor_ms)
    if figure.decode is None or figure.passes[-1].phase != "decode":
        return tr("memory limit {0}").format(least)
    times = f"{figure.decode.median / floor.floor_ms:.3g}"
    return tr("memory limit {0}; decode takes {1} times as long").format(least, times)


def one_pass(one: TimedPass) -> str:
    """A pass and its pieces, a line each."""
    lines = [
        tr("Token {0}, {1} of {2}: {3}").format(
            one.index + 1, tr(PHASE_WORDS[one.phase]), _read(one.positions), ms_text(one.forward_ms)
        ),
        pieces(one),
        course(one),
        processes(one),
    ]
    if one.warm_up:
        lines.append(
            tr("First pass after loading (warm-up): slower than the model's normal speed.")
        )
    if one.rebuilt_tokens:
        lines.append(tr("The cache was rebuilt first ({0} positions).").format(one.rebuilt_tokens))
    return "\n".join(filter(None, lines))


def course(one: TimedPass) -> str:
    """The whole step on the window's clock, part by part; why what is missing is not known."""
    pairs = zip(COURSE_WORDS, one.course, strict=True)
    parts = ", ".join(
        f"{tr(name)} {ms_text(ms).removesuffix(' ms')}" for name, ms in pairs if ms is not None
    )
    if one.step_ms is not None:
        return tr("Whole step {0}: {1}").format(ms_text(one.step_ms), parts)
    if one.lap is None:
        text = tr("Whole step in ms: {0}; display not measured (it did not run in this window)")
    else:
        text = tr("Whole step in ms: {0}; display not measured (the next token came first)")
    return text.format(parts)


def processes(one: TimedPass) -> str:
    """How long those that share the model took; empty where one ran it."""
    ranks = one.step.ranks
    if not ranks:
        return ""
    return tr("{0} processes took {1} ms, of it waiting for each other at least {2} ms").format(
        len(ranks),
        " / ".join(f"{rank.forward_ms:.3g}" for rank in ranks),
        " / ".join(f"{rank.waiting_ms:.3g}" for rank in ranks),
    )


def _read(count: int) -> str:
    return tr("1 position") if count == 1 else tr("{0} positions").format(f"{count:,}")


def pieces(one: TimedPass) -> str:
    """The parts of a pass that have a figure."""
    named = zip(PIECES, one.pieces, strict=True)
    return ", ".join(f"{tr(PIECE_WORDS[name])} {ms_text(ms)}" for name, ms in named if ms > 0)


def level(floor: Traffic | None) -> str:
    """What stands above the chart for the line."""
    if floor is None:
        return tr("memory limit not measured yet")
    return tr("┄ memory {0}").format(ms_text(floor.floor_ms))


def legend(figure: TimingFigure, phase: str) -> list[LegendEntry]:
    """What the colours of the passes mean."""
    entries = [
        LegendEntry(tr("attention"), phase, ATTENTION),
        LegendEntry(tr("MLP"), phase, MLP),
        LegendEntry(tr("other"), phase, OTHER),
    ]
    if not figure.split.has_parts:
        entries = [LegendEntry(tr("layers"), phase, OTHER)]
    entries.append(LegendEntry(tr("capture"), "rest"))
    if any(p.warm_up for p in figure.passes):
        entries.append(LegendEntry(tr("warm-up"), phase, look="outline"))
    return entries
