"""What a report holds: the run in words, the answers of a lesson, and pictures with captions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QImage

from explorer import __version__
from explorer.figures.prediction.next_token import settings_words
from explorer.figures.text import tokens
from explorer.session.state import State
from explorer.trace.interventions.context_policy import USUAL
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from explorer.ui.panel.how_it_runs import as_is_choices
from explorer.ui.panel.intervention_words import policy_words, together

translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class Answer:
    """A question of a lesson: what was predicted, and what was measured then."""

    question: str
    predicted: str
    measured: str


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """What a panel showed."""

    title: str
    caption: str
    image: QImage


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Plain text throughout: whoever writes it out escapes it."""

    title: str
    author: str
    notes: str
    day: date
    prompt: str
    generated: str
    tokens: tuple[tuple[str, str], ...]  # visible text and origin of each
    facts: tuple[tuple[str, str], ...]  # name and value
    answers: tuple[Answer, ...] = ()
    pictures: tuple[Picture, ...] = ()
    room: bool = False  # empty lines to write on


def tokens_of(trace: Trace) -> tuple[tuple[str, str], ...]:
    """Visible text and origin of every token, in order."""
    return tuple((tokens.written(token), token.origin) for token in trace.tokens)


def prompt_text(trace: Trace) -> str:
    """What was typed; of any other prompt the text of its tokens."""
    if trace.request.typed:
        return trace.request.prompt
    raw = b"".join(token.raw for token in trace.prompt if token.origin != "padding")
    return raw.decode("utf-8", "replace")


def generated_text(trace: Trace) -> str:
    """The text that the run added, without control tokens."""
    raw = b"".join(token.raw for token in trace.chosen if not token.special)
    return raw.decode("utf-8", "replace")


def facts(state: State) -> tuple[tuple[str, str], ...]:
    """Model, settings, seed, what is looked at, and versions; no path of this computer."""
    trace = state.trace
    return () if trace is None else tuple(_facts(state, trace))


def _facts(state: State, trace: Trace) -> Iterator[tuple[str, str]]:
    card, request = trace.card, trace.request
    yield translate("Report", "Model"), trace.model_name
    yield (
        translate("Report", "Architecture"),
        translate("Report", "{0}, {1} layers with {2} heads, {3} parameters").format(
            card.architecture, card.layers, card.heads, f"{card.parameters:,}"
        ),
    )
    as_it_is = translate("Report", "llama.cpp, as it is ({0})").format(card.stored_dtype)
    choices = as_is_choices(card, partial(translate, "Report"))
    runs_in = [as_it_is, *choices] if card.form == "as-is" else [card.dtype]
    yield translate("Report", "Runs in"), ", ".join([*runs_in, card.device])
    yield translate("Report", "Settings of the run"), _run_words(request)
    if trace.steps:
        sampling = trace.steps[-1].sampling
        yield translate("Report", "Sampling"), settings_words(sampling)
        yield translate("Report", "Seed"), str(sampling.seed)
    if state.step_index is not None:
        seen = state.selection
        yield (
            translate("Report", "On screen"),
            translate("Report", "token {0}, layer {1}, head {2}").format(
                state.step_index + 1, seen.layer, seen.head
            ),
        )
    named = ", ".join(f"{name} {number}" for name, number in sorted(card.versions.items()))
    program = translate("Report", "Decoder Explorer {0}").format(__version__)
    yield translate("Report", "Versions"), ", ".join(filter(None, [program, named]))


def _run_words(request: RunRequest) -> str:
    mask = (
        translate("Report", "causal mask on")
        if request.causal_mask
        else translate("Report", "causal mask off")
    )
    cache = (
        translate("Report", "KV cache on")
        if request.uses_cache
        else translate("Report", "KV cache off")
    )
    words = [mask, cache, *(words for words, _ in together(request.interventions))]
    if request.context != USUAL:
        words.append(policy_words(request.context))
    if request.padding and request.pad:
        side = (
            translate("Report", "{0} padding tokens on the left")
            if request.padding == "left"
            else translate("Report", "{0} padding tokens on the right")
        )
        words.append(side.format(request.pad))
    if request.chat:
        words.append(translate("Report", "chat template"))
    return ", ".join(words)
