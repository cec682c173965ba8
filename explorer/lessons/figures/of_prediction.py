"""Figures of tokens and of the next token: probabilities, ranks, entropy, what was generated."""

from __future__ import annotations

import math

import numpy as np

from explorer.lessons.quantities import Quantity
from explorer.lessons.run_facts import CanNotTell, RunFacts, named, on_step, result, whole
from explorer.sampling import Distribution, SamplingError, distribution, uniform
from explorer.trace.experiments import Draws, PromptScores, SearchResult
from explorer.trace.step import Token
from explorer.trace.trace import Trace


def _shares(facts: RunFacts) -> Distribution:
    trace, index, step = on_step(facts)
    try:
        return distribution(step.logits, facts.sampling, trace.context_ids(index))
    except SamplingError as error:
        raise CanNotTell(str(error)) from error


def token_id(facts: RunFacts, asked: Quantity) -> int:
    """The id of a token given by id or text; of several the one that is most probable here."""
    _, _, step = on_step(facts)
    if not isinstance(asked.value, str):
        return whole(asked, 0, len(step.logits) - 1, "Token")
    spellings = (asked.value, f" {asked.value}")
    for known in (_spelled(facts, spellings), _named_by_step(facts, spellings)):
        if known:
            return max(known, key=lambda one: float(step.logits[one]))
    raise CanNotTell(f"“{asked.value[:40]}” is not one token of this model.")


def _spelled(facts: RunFacts, spellings: tuple[str, ...]) -> list[int]:
    if facts.vocabulary is None:
        return []
    return [one for text in spellings for one in facts.vocabulary.spelled(text.encode("utf-8"))]


def _named_by_step(facts: RunFacts, spellings: tuple[str, ...]) -> list[int]:
    trace, _, step = on_step(facts)
    wanted = {text.encode("utf-8") for text in spellings}
    return [token.id for token in (*step.top, *trace.tokens) if token.raw in wanted]


def _p(facts: RunFacts, token: Quantity) -> float:
    return float(_shares(facts).raw[token_id(facts, token)])


def _p_after(facts: RunFacts, token: Quantity) -> float:
    return float(_shares(facts).final[token_id(facts, token)])


def _rank(facts: RunFacts, token: Quantity) -> int:
    return int(np.flatnonzero(_order(facts) == token_id(facts, token))[0]) + 1


def _order(facts: RunFacts) -> np.ndarray:
    """(V,) ids by descending raw probability."""
    _, _, step = on_step(facts)
    return np.asarray(np.argsort(-step.logits, kind="stable"))


def _at_rank(facts: RunFacts, rank: Quantity | None) -> int:
    order = _order(facts)
    place = 1 if rank is None else whole(rank, 1, len(order), "Rank")
    return int(order[place - 1])


def _top_token(facts: RunFacts, rank: Quantity | None = None) -> str:
    return _text_of(facts, _at_rank(facts, rank))


def _top_p(facts: RunFacts, rank: Quantity | None = None) -> float:
    return float(_shares(facts).raw[_at_rank(facts, rank)])


def _text_of(facts: RunFacts, token_id: int) -> str:
    _, _, step = on_step(facts)
    for token in step.top:
        if token.id == token_id:
            return token.text
    if facts.vocabulary is None:
        raise CanNotTell("The text of this token is not known. Open the model of this run.")
    return facts.vocabulary.token(token_id).text


def _chosen(facts: RunFacts, number: Quantity | None = None) -> int:
    """Index of the n-th generated token, 1 = the first; without a number that of the step."""
    trace, index, _ = on_step(facts)
    return index if number is None else whole(number, 1, len(trace.chosen), "Token") - 1


def _chosen_text(facts: RunFacts, number: Quantity | None = None) -> str:
    at = _chosen(facts, number)
    return _run(facts).chosen[at].text


def _chosen_p(facts: RunFacts, number: Quantity | None = None) -> float:
    at = _chosen(facts, number)
    return _run(facts).steps[at].draw.raw_probability


def _chosen_rank(facts: RunFacts, number: Quantity | None = None) -> int:
    at = _chosen(facts, number)
    return _run(facts).steps[at].draw.rank + 1


def _run(facts: RunFacts) -> Trace:
    return on_step(facts)[0]


def _generated(facts: RunFacts) -> str:
    return b"".join(token.raw for token in _run(facts).chosen).decode("utf-8", "replace")


def _entropy(facts: RunFacts) -> float:
    return on_step(facts)[2].draw.entropy_nats


def _kept(facts: RunFacts) -> int:
    return int(np.count_nonzero(_shares(facts).final))


def _number_drawn(facts: RunFacts) -> float:
    if facts.sampling.takes_best:
        raise CanNotTell("Greedy draws no number.")
    return uniform(facts.sampling.seed, on_step(facts)[1])


def _prompt(facts: RunFacts) -> list[Token]:
    return [token for token in _run(facts).prompt if token.origin != "padding"]


def _at_position(facts: RunFacts, position: Quantity) -> Token:
    tokens = _run(facts).tokens
    return tokens[whole(position, 0, len(tokens) - 1, "Position")]


def _surprisal(facts: RunFacts, position: Quantity) -> float:
    scores = result(facts, PromptScores)
    place = whole(position, 0, len(_run(facts).prompt) - 1, "Position")
    if place not in scores.slots:
        raise CanNotTell("Nothing comes before this token, so it has no surprisal.")
    return scores.nats[scores.slots.index(place)]


def _mean_surprisal(facts: RunFacts) -> float:
    nats = result(facts, PromptScores).nats
    if not nats:
        raise CanNotTell("The prompt has only one token.")
    return math.fsum(nats) / len(nats)


def _text(raw: tuple[bytes, ...]) -> str:
    return b"".join(raw).decode("utf-8", "replace")


def _drawn(facts: RunFacts, token: Quantity) -> float:
    draws, wanted = result(facts, Draws), token_id(facts, token)
    return sum(one.drawn for one in draws.first if one.id == wanted) / draws.count


TOKEN = (1, 1)
FIGURES = (
    named("p", "probability of a token by the model: p(' Paris')", _p, "share", TOKEN),
    named("p_after", "the same after the sampling settings", _p_after, "share", TOKEN),
    named("rank", "place of a token, 1 = the most likely", _rank, "count", TOKEN),
    named("top_token", "the most likely token, or the n-th", _top_token, "text", (0, 1)),
    named("top_share", "probability of that token", _top_p, "share", (0, 1)),
    named("chosen", "the n-th generated token, from 1", _chosen_text, "text", (0, 1)),
    named("chosen_p", "its probability by the model", _chosen_p, "share", (0, 1)),
    named("chosen_rank", "its place, 1 = the most likely", _chosen_rank, "count", (0, 1)),
    named("generated", "all generated text", _generated, "text"),
    named("entropy", "uncertainty of the model at this step", _entropy, "nats"),
    named("kept", "tokens that the sampling settings leave", _kept, "count"),
    named("number_drawn", "the random number of this step and seed", _number_drawn),
    named("token_count", "tokens of prompt and generated text",
          lambda facts: len(_prompt(facts)) + len(_run(facts).chosen), "count"),
    named("prompt_tokens", "tokens of the prompt", lambda f: len(_prompt(f)), "count"),
    named("generated_tokens", "tokens generated", lambda f: len(_run(f).chosen), "count"),
    named("padding_tokens", "padding slots",
          lambda f: sum(t.origin == "padding" for t in _run(f).prompt), "count"),
    named("prompt_characters", "characters of the prompt",
          lambda f: len(_run(f).request.prompt), "count"),
    named("token", "text of the token at a position, from 0",
          lambda f, at: _at_position(f, at).text, "text", TOKEN),
    named("token_id", "its number in the vocabulary",
          lambda f, at: _at_position(f, at).id, "", TOKEN),
    named("token_bytes", "its length in bytes",
          lambda f, at: len(_at_position(f, at).raw), "count", TOKEN),
    named("surprisal", "surprisal of the prompt token at a position", _surprisal, "nats", TOKEN),
    named("mean_surprisal", "mean surprisal of the prompt", _mean_surprisal, "nats"),
    named("greedy_text", "the greedy sequence of a search",
          lambda f: _text(result(f, SearchResult).greedy.raw), "text"),
    named("greedy_p", "probability of that sequence",
          lambda f: result(f, SearchResult).greedy.probability, "share"),
    named("best_text", "the most probable sequence found",
          lambda f: _text(result(f, SearchResult).best.raw), "text"),
    named("best_p", "probability of that sequence",
          lambda f: result(f, SearchResult).best.probability, "share"),
    named("beats_greedy", "true if it is more probable than greedy's",
          lambda f: result(f, SearchResult).beats_greedy, "truth"),
    named("search_passes", "forward passes of the search",
          lambda f: result(f, SearchResult).passes, "count"),
    named("search_length", "tokens of each sequence of the search",
          lambda f: result(f, SearchResult).length, "count"),
    named("samples", "samples drawn", lambda f: result(f, Draws).count, "count"),
    named("distinct_samples", "different continuations among them",
          lambda f: result(f, Draws).distinct, "count"),
    named("drawn_share", "share of samples that begin with a token", _drawn, "share", TOKEN),
)  # fmt: skip
