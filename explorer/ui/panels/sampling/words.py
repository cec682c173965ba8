"""The sampling chain in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from explorer.figures.prediction import sampling as figures
from explorer.figures.prediction.sampling import Chain, Orders, Standing
from explorer.figures.text import tokens
from explorer.sampling import Stage
from explorer.trace.request import Sampling
from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary
from explorer.wording import exact_percent

Translate = Callable[[str], str]


def name(tr: Translate, stage: str) -> str:
    """What a stage is called."""
    return {
        "logits": tr("Raw logits"),
        "penalty": tr("Repetition penalty"),
        "temperature": tr("Temperature"),
        "top_k": tr("Top-k"),
        "top_p": tr("Top-p"),
        "min_p": tr("Min-p"),
        "greedy": tr("Greedy"),
    }[stage]


def setting(tr: Translate, stage: Stage, sampling: Sampling) -> str:
    """The number that a link works with."""
    if stage.name in ("logits", "greedy"):
        return ""
    if not stage.active:
        return tr("off")
    return {
        "penalty": f"{sampling.repetition_penalty:g}",
        "temperature": f"{sampling.temperature:g}",
        "top_k": f"{sampling.top_k:,}",
        "top_p": f"{sampling.top_p:g}",
        "min_p": f"{sampling.min_p:g}",
    }[stage.name]


def whose(tr: Translate, chain: Chain) -> str:
    """Which settings are shown, and what the number drawn gives under them."""
    if not chain.preview:
        text = tr("Token {0}, with the settings that chose it").format(chain.step.index + 1)
    else:
        text = tr("Preview: token {0} with the current settings").format(chain.step.index + 1)
    return text


def ties(tr: Translate, before: Stage, stage: Stage, sampling: Sampling) -> str:
    """What a stage does with tokens that are exactly as likely as the last one; empty if none."""
    more, out = figures.beyond_k(stage, sampling), figures.tied_out(before, stage)
    if more:
        return tr("{0} more than k (ties with the last)").format(f"{more:,}")
    if out:
        return tr("{0} ties with the last are cut (lower ids win)").format(f"{out:,}")
    return ""


def outcome(tr: Translate, chain: Chain, label: Callable[[int], str]) -> str:
    """The number drawn, where it fell, and what was picked in the run."""
    last = chain.stages[-1]
    if chain.u is None or chain.landed is None:
        text = tr("Greedy: nothing is sampled; {0} is chosen.").format(label(chain.picked))
    else:
        below = float(last.p[: chain.landed].sum())
        text = tr("u = {0} falls between {1} and {2} of the cumulative probability: {3}").format(
            f"{chain.u:.4f}",
            exact_percent(below),
            exact_percent(below + float(last.p[chain.landed])),
            label(chain.picked),
        )
    parts = [text]
    if chain.step.draw.how == "forced":
        parts.append(tr("in the run, you forced {0}").format(label(chain.chosen)))
    elif chain.chosen != chain.picked:
        parts.append(tr("in the run, {0} was chosen").format(label(chain.chosen)))
    return " · ".join(parts)


def why_orders_differ(tr: Translate, orders: Orders, sampling: Sampling) -> str:
    """Both orders and their results, in one or two sentences; empty if they are the same."""
    if not orders.differ:
        return ""
    one, other = orders.first[-1], orders.last[-1]
    text = tr(
        "The order matters here. Temperature before the cuts: {0} tokens kept, the top "
        "one has {1}. After the cuts: {2} kept, the top one has {3}."
    ).format(f"{one.kept:,}", exact_percent(float(one.p[0])), f"{other.kept:,}",
             exact_percent(float(other.p[0])))  # fmt: skip
    cut = orders.cut
    if cut is not None:
        if sampling.temperature < 1:
            why = tr("Temperature {0:g} sharpens the distribution, so {1} keeps {2}, not {3}.")
        else:
            why = tr("Temperature {0:g} flattens the distribution, so {1} keeps {2}, not {3}.")
        counts = f"{cut[0].kept:,}", f"{cut[1].kept:,}"
        text = f"{text} {why.format(sampling.temperature, name(tr, cut[0].name), *counts)}"
    return text


def standing(tr: Translate, one: Standing) -> str:
    """Rank and probability at one stage."""
    where = tr("cut") if one.rank is None else tr("rank {0}").format(f"{one.rank + 1:,}")
    figure = "" if one.rank is None else f", {exact_percent(one.p)}"
    return f"{name(tr, one.name)}: {where}{figure}"


def token(known: Mapping[int, Token], names: Vocabulary | None, token_id: int) -> str:
    """The visible text of an id; its number where the bytes are not known."""
    if names is not None and token_id < len(names):
        return tokens.written(names.token(token_id))
    found = known.get(token_id)
    return f"id {token_id}" if found is None else tokens.written(found)
