"""The next-token chart: raw probabilities beside what the sampling settings leave of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.sampling import check, distribution, leading, softmax
from explorer.trace.request import Sampling
from explorer.trace.step import Step, Token
from explorer.trace.trace import Trace

FEW = 16_384  # tokens: figures of so small a vocabulary take less than two milliseconds


@dataclass(frozen=True, slots=True)
class Bar:
    """One vocabulary entry; two ids that are spelled alike are two bars."""

    token_id: int
    token: Token | None  # its bytes; None if they are not known without the model
    raw: float
    final: float  # after the sampling chain
    chosen: bool

    @property
    def kept(self) -> bool:
        """False if the sampling settings rule this token out."""
        return self.final > 0


@dataclass(frozen=True, slots=True)
class NextToken:
    """The bars of one step, by descending logit, and everything else as one figure."""

    step: Step
    sampling: Sampling
    bars: tuple[Bar, ...]
    rest_count: int
    rest_raw: float
    rest_final: float
    kept: int  # tokens that the sampling settings leave, over the whole vocabulary
    tied_out: int  # tokens ruled out, though exactly as likely as the last that is left

    @property
    def beyond_k(self) -> int:
        """Tokens that top-k leaves beyond k: they are exactly as likely as the k-th."""
        sampled = self.sampling.top_k > 0 and not self.sampling.takes_best
        return max(self.kept - self.sampling.top_k, 0) if sampled else 0

    @property
    def same_settings(self) -> bool:
        """True if the chart is drawn with the settings the token was picked with."""
        return self.sampling == self.step.sampling


def chart(trace: Trace, index: int, sampling: Sampling, rows: int) -> NextToken:
    """The `rows` most probable tokens after step `index`; the chosen one is always among them.

    SamplingError with a sentence if logits or settings give no distribution.
    """
    step = trace.steps[index]
    chosen = trace.chosen[index]
    known = {token.id: token for token in (*step.top, chosen)}
    leaders, raw, final, kept = _shares(trace, index, sampling, max(rows, 1))
    ids = [int(i) for i in leaders]
    if chosen.id not in ids:
        ids[-1] = chosen.id
    bars = tuple(Bar(i, known.get(i), float(raw[i]), float(final[i]), i == chosen.id) for i in ids)
    others = np.ones(len(raw), bool)
    others[ids] = False
    return NextToken(
        step=step,
        sampling=sampling,
        bars=bars,
        rest_count=int(np.count_nonzero(others)),
        rest_raw=float(raw[others].sum()),
        rest_final=float(final[others].sum()),
        kept=kept,
        tied_out=_tied_out(raw, final) if _cuts_ties(sampling) else 0,
    )


def _cuts_ties(sampling: Sampling) -> bool:
    """Only top-p can cut between equals: it keeps as few as it can, in the order of the ids."""
    return sampling.top_p < 1 and sampling.repetition_penalty == 1 and not sampling.takes_best


def _tied_out(raw: np.ndarray, final: np.ndarray) -> int:
    left = final > 0
    return int(np.count_nonzero(raw[~left] == raw[left].min()))


def _shares(
    trace: Trace, index: int, sampling: Sampling, rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """The `rows` leading ids, raw and final (V,) probabilities, and how many tokens are left."""
    logits = trace.steps[index].logits
    if not (sampling.takes_best and sampling.repetition_penalty == 1):
        dist = distribution(logits, sampling, trace.context_ids(index))
        return dist.order[:rows], dist.raw, dist.final, int(np.count_nonzero(dist.final))
    check(sampling)
    raw = softmax(logits)
    leaders = leading(logits, rows)  # nothing else needs the order of them all
    final = np.zeros(len(raw))
    final[leaders[0]] = 1
    return leaders, raw, final, 1


def settings_words(sampling: Sampling) -> str:
    """How a token is picked with these settings, in a few words."""
    penalty = f"repetition penalty {sampling.repetition_penalty:g}"
    if sampling.takes_best:
        words = "greedy: the most likely token"
        return words if sampling.repetition_penalty == 1 else f"{words} after {penalty}"
    words_of = {
        "penalty": penalty if sampling.repetition_penalty != 1 else "",
        "temperature": f"temperature {sampling.temperature:g}",
        "top_k": f"top-k {sampling.top_k}" if sampling.top_k else "",
        "top_p": f"top-p {sampling.top_p:g}" if sampling.top_p < 1 else "",
        "min_p": f"min-p {sampling.min_p:g}" if sampling.min_p else "",
    }
    parts = [words for link in sampling.order if (words := words_of[link])]
    return ", ".join([*parts, f"seed {sampling.seed}"])
