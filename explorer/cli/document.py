"""A trace as the JSON fields of `trace` and `show`, and as a table to read."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from explorer.figures.text import tokens as labels
from explorer.figures.text import warnings
from explorer.figures.text.sentences import name
from explorer.sampling.chain import softmax
from explorer.trace.card import SelfCheck
from explorer.trace.chat import ChatTurn
from explorer.trace.interventions.context_policy import USUAL, ContextPolicy
from explorer.trace.interventions.kinds import written
from explorer.trace.request import Sampling
from explorer.trace.rounding import arithmetic, largest, logit_tolerance
from explorer.trace.step import Step, Token
from explorer.trace.trace import Trace
from explorer.wording import percent

CELL = 240  # letters that a cell of a table has at most: whole paths, and no endless token


def trace_document(trace: Trace, top: int = 0) -> dict[str, Any]:
    """The fields of design section 8, and what came later; `top`: so many tokens of each step."""
    request = trace.request
    sampling = trace.steps[-1].sampling if trace.steps else Sampling()
    last = trace.steps[-1] if trace.steps else None
    return {
        "model": trace.model_name,
        "architecture": trace.card.architecture,
        "prompt_tokens": trace.prompt_tokens,
        "causal_mask": request.causal_mask,
        "cache": {"enabled": request.uses_cache, "reason": request.cache_reason},
        "dtype": trace.card.dtype,
        "sampling": msgspec.to_builtins(sampling),
        "stop_reason": trace.stop_reason,
        "reused_tokens": trace.reused_tokens,
        "tokens": [token_document(token) for token in trace.tokens],
        "turns": _turns(trace),
        "steps": [
            _step(step, token, top) for step, token in zip(trace.steps, trace.chosen, strict=True)
        ],
        "cache_bytes_per_layer": list(last.cache_bytes_per_layer) if last else [],
        "self_check": self_check_document(trace.self_check),
        "stored_dtype": trace.card.stored_dtype,
        "interventions": written(request.interventions),
        "context_policy": _policy(request.context),
        **({"form": trace.card.form} if trace.card.form else {}),
        **(
            {"cache_type_k": trace.card.cache_type_k, "gpu_layers": trace.card.gpu_layers}
            if trace.card.cache_type_k
            else {}
        ),
        "warnings": warnings.of_trace(trace),
    }


def _turns(trace: Trace) -> list[dict[str, Any]]:
    """The turns of a conversation; what was generated belongs to the assistant's last one."""
    turns, count = list(trace.turns), len(trace.prompt)
    if turns and trace.chosen:
        end = count + len(trace.chosen) - 1
        if turns[-1].role == "assistant" and turns[-1].last_slot == count - 1:
            turns[-1] = msgspec.structs.replace(turns[-1], last_slot=end)
        else:
            turns.append(ChatTurn(role="assistant", first_slot=count, last_slot=end))
    return [_fields(turn, "role first_slot last_slot added message") for turn in turns]


def self_check_document(self_check: SelfCheck) -> dict[str, Any]:
    """passed (null = has not run) and the checks with their figures."""
    return {
        "passed": self_check.passed,
        "checks": [_fields(check, "name passed measured tolerance") for check in self_check.checks],
    }


def token_document(token: Token) -> dict[str, Any]:
    """One token as every command lists it."""
    return {
        "id": token.id,
        "text": token.text,
        "bytes_hex": token.raw.hex(),
        "origin": token.origin,
    }


def _step(step: Step, chosen: Token, top: int = 0) -> dict[str, Any]:
    return {
        **_fields(step, "index phase positions_processed forward_ms"),
        "chosen_id": chosen.id,
        "chosen_text": chosen.text,
        **_fields(step.draw, "probability raw_probability rank entropy_bits"),
        **_fields(step, "cache_tokens cache_bytes"),
        **({"note": step.note} if step.note else {}),
        **({"ranks": msgspec.to_builtins(step.ranks)} if step.ranks else {}),
        **({"top": _leading(step, top)} if top else {}),
    }


def _leading(step: Step, count: int) -> list[dict[str, Any]]:
    """The most likely tokens by the raw logits, whatever was sampled."""
    p = softmax(step.logits)
    return [
        {
            "id": token.id,
            "text": token.text,
            "bytes_hex": token.raw.hex(),
            "logit": float(step.logits[token.id]),
            "probability": float(p[token.id]),
        }
        for token in step.top[:count]
    ]


def reuse_document(trace: Trace, fresh: Trace) -> dict[str, Any]:
    """A run that took the beginning of its prompt from the cache, beside one that read it whole."""
    pairs = list(zip(trace.steps, fresh.steps, strict=False))
    gap = max((largest(one.logits - other.logits) for one, other in pairs), default=0.0)
    limits = [logit_tolerance(arithmetic(trace.request), other.logits) for _, other in pairs]
    limit = min(limits, default=0.0)
    return {
        "tokens": trace.reused_tokens,
        "prefill_ms": trace.steps[0].forward_ms if trace.steps else None,
        "fresh_prefill_ms": fresh.steps[0].forward_ms if fresh.steps else None,
        "same_tokens": trace.chosen_ids == fresh.chosen_ids,
        "largest_logit_difference": gap,
        "tolerance": limit,
        "equal": gap <= limit,
    }


def print_reuse(found: dict[str, Any] | None) -> None:
    """The same as a sentence; nothing for None."""
    if found is None or found["prefill_ms"] is None:
        return
    word = "equal" if found["equal"] else "NOT EQUAL"
    print(
        f"{found['tokens']:,} tokens from the cache: prefill {found['prefill_ms']:.1f} ms, read "
        f"whole {found['fresh_prefill_ms']:.1f} ms; logits {word} (largest difference "
        f"{found['largest_logit_difference']:.2g}, rounding explains {found['tolerance']:.2g})"
    )


def _fields(one: object, names: str) -> dict[str, Any]:
    """Some of its fields, under the names that they have there."""
    return {name: getattr(one, name) for name in names.split()}


def print_json(document: dict[str, Any], lines: bool = False) -> None:
    """One JSON object, in ASCII so that any terminal and pipe takes it; what is no number is null.

    JSON has no NaN and no infinity, and any figure of a file or of an engine may be one.  `lines`:
    on one line, for more follow.
    """
    text = json.dumps(_finite(document), indent=None if lines else 1, allow_nan=False)
    text = text.replace("\x7f", "\\u007f")  # the one control character that JSON lets pass
    print(text, flush=lines)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, (list, tuple)) else value


def print_trace(trace: Trace, top: int = 0) -> None:
    """The run as a table; `top`: with so many tokens of each step."""
    request, card = trace.request, trace.card
    mask = "causal mask on" if request.causal_mask else "causal mask OFF"
    named = [request.model or card.name, card.architecture, card.dtype, card.device]
    print("{} ({}, {}, {})".format(*(name(part, CELL) for part in named)))
    if card.form == "as-is":
        on_gpu = f", {card.layers_on_gpu} of {card.layers} layers on a GPU"
        gpu = on_gpu if card.gpu_layers else ""
        stored = name(card.stored_dtype, CELL)
        print(f"weights stored as {stored}, run as they are by llama.cpp{gpu}")
    elif card.stored_dtype:
        print(f"weights stored as {name(card.stored_dtype, CELL)}, run in {card.dtype}")
    print(f"{trace.prompt_tokens} prompt tokens, {mask}, cache {request.cache_reason}")
    if request.padding and request.pad:
        print(f"{request.pad} padding slots on the {request.padding}")
    if request.context != USUAL:
        print(f"context policy {_policy_words(request.context)}")
    if request.interventions:
        print(f"interventions: {', '.join(written(request.interventions))}")
    for turn in trace.turns:
        added = " (added by the template)" if turn.added else ""
        said = trace.prompt[turn.first_slot : turn.last_slot + 1]
        print(f"{name(turn.role, CELL)}{added}: {' '.join(map(labels.written, said))}")
    if not trace.turns:
        print(f"prompt: {' '.join(map(labels.written, trace.prompt))}")
    print()
    rows = [
        (
            str(step.index),
            step.phase,
            str(step.positions_processed),
            f"{step.forward_ms:.1f}",
            labels.written(token),
            step.draw.how,
            f"{step.draw.probability:.3g}",
            f"{step.draw.raw_probability:.3g}",
            str(step.draw.rank),
            f"{step.draw.entropy_bits:.2f}",
            f"{step.cache_bytes:,}",
        )
        for step, token in zip(trace.steps, trace.chosen, strict=True)
    ]
    heads = ("step", "phase", "read", "ms", "token", "how", "p", "raw p", "rank",
             "entropy bits", "cache bytes")  # fmt: skip
    print_table(heads, rows, left={1, 4, 5})
    for step in trace.steps if top else ():
        p = softmax(step.logits)
        likely = [f"{labels.written(t)} {percent(float(p[t.id]))}" for t in step.top[:top]]
        print(f"{'' if step.index else chr(10)}step {step.index}: {', '.join(likely)}")
    notes = [f"step {step.index}: {step.note}" for step in trace.steps if step.note]
    print("\n".join(["", *notes, f"stopped: {trace.stop_reason or 'not yet'}"]))


def print_table(
    heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], left: Collection[int] = ()
) -> None:
    """Columns as wide as their widest cell; numbers to the right, columns in `left` to the left."""
    rows = [tuple(name(cell, CELL) for cell in row) for row in rows]
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        cells = [
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _policy(policy: ContextPolicy) -> dict[str, object]:
    found: dict[str, object] = {
        "policy": policy.name,
        "window": policy.tokens or None,
        "sinks": policy.sinks,
    }
    return {**found, "sink_distances": policy.distances} if policy.moves_sinks else found


def _policy_words(policy: ContextPolicy) -> str:
    kept = f", {policy.tokens:,} tokens" if policy.tokens else ""
    sinks = f", {policy.sinks} of them sinks" if policy.sinks else ""
    moved = ", distances counted in the cache" if policy.moves_sinks else ""
    return f"{policy.name}{kept}{sinks}{moved}"
