"""Figures of attention, mask, cache, time, padding and size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from explorer.lessons.figures.of_prediction import token_id
from explorer.lessons.quantities import Quantity
from explorer.lessons.run_facts import (
    CanNotTell,
    HeadKind,
    PassTimes,
    RunFacts,
    named,
    on_step,
    result,
    whole,
)
from explorer.sampling import SamplingError, softmax
from explorer.trace.batch import BatchResult, BatchRow
from explorer.trace.card import ModelCard
from explorer.trace.comparison import Comparison
from explorer.trace.experiments import CacheComparison, PrefixShift, Shifts
from explorer.trace.found_models import Recipe

HEAD_KINDS: tuple[HeadKind, ...] = ("first", "previous", "induction")


def _attention(
    facts: RunFacts,
    query: Quantity,
    key: Quantity,
    layer: Quantity | None = None,
    head: Quantity | None = None,
) -> float:
    trace, index, _ = on_step(facts)
    slots = trace.read_slots(index)
    row, column = (whole(one, 0, slots - 1, "Position") for one in (query, key))
    at = facts.layer if layer is None else whole(layer, 0, trace.card.layers - 1, "Layer")
    which = facts.head if head is None else whole(head, 0, trace.card.heads - 1, "Head")
    return float(facts.panels.attention_row(trace, index, at, which, row)[column])


def _means(facts: RunFacts, kind: Quantity) -> np.ndarray:
    """(L, H) means of one kind; CanNotTell if no head has one."""
    if kind.value not in HEAD_KINDS:
        raise CanNotTell(f"Heads are sorted by one of: {', '.join(HEAD_KINDS)}.")
    trace, index, _ = on_step(facts)
    means = facts.panels.head_means(trace, index, kind.value)
    if not np.isfinite(means).any():
        repeat = " The text repeats no token." if kind.value == "induction" else ""
        raise CanNotTell(f"No head has a figure for this.{repeat}")
    return means


def _best(facts: RunFacts, kind: Quantity) -> tuple[int, int]:
    means = _means(facts, kind)
    layer, head = np.unravel_index(int(np.nanargmax(means)), means.shape)
    return int(layer), int(head)


def _this_head(facts: RunFacts, kind: Quantity) -> float:
    means = _means(facts, kind)
    layer = whole(Quantity(facts.layer), 0, means.shape[0] - 1, "Layer")
    head = whole(Quantity(facts.head), 0, means.shape[1] - 1, "Head")
    return float(means[layer, head])


def _other_side(facts: RunFacts) -> tuple[np.ndarray, np.ndarray]:
    """Logits of the step on screen and of the same step with the mask the other way."""
    _, _, step = on_step(facts)
    found: Comparison | None = facts.comparison
    if found is None:
        raise CanNotTell("The run has not been compared with the other mask setting.")
    return step.logits, found.step.logits


def _mask_gap(facts: RunFacts) -> float:
    here, there = _other_side(facts)
    return float(np.abs(here.astype(np.float64) - there.astype(np.float64)).max())


def _p_other(facts: RunFacts, token: Quantity) -> float:
    _, there = _other_side(facts)
    try:
        return float(softmax(there)[token_id(facts, token)])
    except SamplingError as error:
        raise CanNotTell(str(error)) from error


def _unmasked(facts: RunFacts) -> Shifts:
    found = result(facts, PrefixShift)
    if found.unmasked is None:
        raise CanNotTell(found.why or "This model can't run without its mask.")
    return found.unmasked


def _times(facts: RunFacts) -> PassTimes:
    trace, index, _ = on_step(facts)
    return facts.panels.times(trace, index)


def _cache(facts: RunFacts) -> CacheComparison:
    return result(facts, CacheComparison)


def _kv_bytes(facts: RunFacts) -> int:
    trace, _, step = on_step(facts)
    if not trace.request.uses_cache:
        raise CanNotTell(f"The KV cache is {trace.request.cache_reason}.")
    return step.cache_bytes


def _card(facts: RunFacts) -> ModelCard:
    if facts.card is None:
        raise CanNotTell("No model is open.")
    return facts.card


def _of_card(read: Callable[[ModelCard], int | str]) -> Callable[[RunFacts], int | str]:
    return lambda facts: read(_card(facts))


def _recipe(facts: RunFacts) -> Recipe:
    if facts.recipe is None:
        raise CanNotTell("The parts of the model have not been counted.")
    return facts.recipe


def _part(facts: RunFacts, name: Quantity) -> int:
    parts = _recipe(facts).parts
    if name.value not in parts:
        raise CanNotTell(f"Parts are: {', '.join(parts) or 'not known'}.")
    return parts[str(name.value)]


def _batch(facts: RunFacts) -> BatchResult:
    if facts.batch is None:
        raise CanNotTell("The batch of the padding lab has not been run.")
    return facts.batch


def _row(facts: RunFacts, number: Quantity) -> BatchRow:
    rows = _batch(facts).rows
    return rows[whole(number, 1, len(rows), "Prompt") - 1]


def _read(row: BatchRow) -> str:
    reading = row.at_last_real if row.readout == row.last_real else row.at_last_slot
    return reading.top[0].token.text


def _of_batch(read: Callable[[BatchResult], Any]) -> Callable[[RunFacts], Any]:
    return lambda facts: read(_batch(facts))


ONE = (1, 1)
FIGURES = (
    named("attention", "attention(query, key) by position from 0; then layer, head if not those "
          "on screen", _attention, "share", (2, 4)),
    named("head_score", "largest mean over all heads: 'induction', 'previous' or 'first'",
          lambda f, kind: float(np.nanmax(_means(f, kind))), "share", ONE),
    named("this_head", "the same of the head on screen", _this_head, "share", ONE),
    named("best_layer", "layer of the head with the largest mean, from 0",
          lambda f, kind: _best(f, kind)[0], "", ONE),
    named("best_head", "its head, from 0", lambda f, kind: _best(f, kind)[1], "", ONE),
    named("mask_gap", "largest change of a logit if the mask is switched", _mask_gap),
    named("p_other", "probability of a token with the mask switched", _p_other, "share", ONE),
    named("prefix_gap", "largest change of earlier logits if the last token is removed",
          lambda f: result(f, PrefixShift).masked.logits_abs),
    named("prefix_gap_unmasked", "the same without the mask", lambda f: _unmasked(f).logits_abs),
    named("kv_bytes", "bytes in the KV cache, measured", _kv_bytes, "bytes"),
    named("kv_tokens", "tokens in the KV cache", lambda f: on_step(f)[2].cache_tokens, "count"),
    named("kv_bytes_per_token", "bytes a token takes, by the formula",
          _of_card(lambda card: card.kv_bytes_per_token), "bytes"),
    named("prefill_ms", "time of the prefill", lambda f: _times(f).prefill_ms, "ms"),
    named("decode_ms", "time of a later pass, median", lambda f: _times(f).decode_ms, "ms"),
    named("positions", "positions run through the model", lambda f: _times(f).positions, "count"),
    named("positions_without_cache", "what the same tokens take without a cache",
          lambda f: _times(f).positions_without_cache, "count"),
    named("cached_positions", "positions with the cache, in the comparison",
          lambda f: sum(_cache(f).cached.positions), "count"),
    named("uncached_positions", "positions without the cache",
          lambda f: sum(_cache(f).uncached.positions), "count"),
    named("cached_ms", "time with the cache", lambda f: sum(_cache(f).cached.ms), "ms"),
    named("uncached_ms", "time without the cache", lambda f: sum(_cache(f).uncached.ms), "ms"),
    named("cache_tokens", "tokens generated each way", lambda f: _cache(f).tokens, "count"),
    named("same_tokens", "true if the runs with and without the cache gave the same tokens",
          lambda f: _cache(f).same_tokens, "truth"),
    named("model", "name of the model", _of_card(lambda card: card.name), "text"),
    named("layers", "layers", _of_card(lambda card: card.layers), "count"),
    named("heads", "query heads of a layer", _of_card(lambda card: card.heads), "count"),
    named("kv_heads", "key/value heads of a layer", _of_card(lambda card: card.kv_heads), "count"),
    named("head_width", "numbers in a query", _of_card(lambda card: card.head_dim), "count"),
    named("width", "numbers in the residual stream", _of_card(lambda c: c.hidden_size), "count"),
    named("vocabulary", "tokens the model knows", _of_card(lambda c: c.vocab_size), "count"),
    named("context", "positions the model was built for", _of_card(lambda c: c.context), "count"),
    named("parameters", "parameters, counted", _of_card(lambda c: c.parameters), "count"),
    named("parameters_of", "of one part: 'attention', 'feed_forward', 'table', 'head', 'rest'",
          _part, "count", ONE),
    named("rule_of_thumb", "12·L·d² + V·d",
          lambda f: _recipe(f).parameters_rule_of_thumb, "count"),
    named("tying_saves", "parameters saved by using the token table twice",
          lambda f: _recipe(f).tying_saves, "count"),
    named("row_error", "largest logit difference of a batch row to the prompt alone, from 1",
          lambda f, n: _row(f, n).max_abs_diff_vs_alone, "", ONE),
    named("row_right", "true if that row is as alone", lambda f, n: _row(f, n).verdict == "right",
          "truth", ONE),
    named("row_padding", "padding slots of that row",
          lambda f, n: _row(f, n).real.count(0), "count", ONE),
    named("row_length", "real tokens of that row",
          lambda f, n: _row(f, n).real.count(1), "count", ONE),
    named("row_token", "the token it answers", lambda f, n: _read(_row(f, n)), "text", ONE),
    named("row_token_alone", "the token of the prompt alone",
          lambda f, n: _row(f, n).alone[0].token.text, "text", ONE),
    named("row_readout", "the slot that was read, from 0",
          lambda f, n: _row(f, n).readout, "", ONE),
    named("row_last_real", "the slot of its last real token, from 0",
          lambda f, n: _row(f, n).last_real, "", ONE),
    named("wrong_rows", "rows that differ from their prompt alone",
          _of_batch(lambda b: sum(row.verdict != "right" for row in b.rows)), "count"),
    named("batch_rows", "rows of the batch", _of_batch(lambda b: len(b.rows)), "count"),
    named("batch_slots", "length of every row after padding", _of_batch(lambda b: b.slots),
          "count"),
    named("tolerance", "largest difference that counts as equal", _of_batch(lambda b: b.tolerance)),
)  # fmt: skip
