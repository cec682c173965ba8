"""What a run will take: sizes from the file and the cache's own tensors."""

from __future__ import annotations

from explorer.engine.machine.system_memory import available_bytes
from explorer.engine.passes.layout import Prompt
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.trace.cost.run_cost import Plan


def plan(runner: LlamaRunner, prompt: Prompt) -> Plan:
    """The first pass of a run; its time from the passes that this process has run."""
    request, slots, card = prompt.request, len(prompt.tokens), runner.card
    attending = len(runner.proven.attending) if runner.proven else card.layers
    kept = -(-attending // max(1, request.capture_every))
    recorded = kept * (card.heads + card.kv_heads) * card.head_dim * 2
    return Plan(
        tokens=slots,
        weights_bytes=int(runner.model.library.llama_model_size(runner.model.handle)),
        cache_bytes=sum(runner.cache_bytes(slots)),
        capture_bytes=slots * recorded,
        available_bytes=available_bytes(),
        estimated_seconds=runner.slot_seconds and runner.slot_seconds * slots,
        in_chunks=slots > runner.chunk and request.causal_mask,
        capture_every=request.capture_every,
    )
