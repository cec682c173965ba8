"""A model cut over torchrun's processes, by transformers' plan for its architecture."""

from __future__ import annotations

from math import gcd
from typing import Any

from explorer.engine import ranks
from explorer.engine.errors import BadInput
from explorer.engine.model_files.configs import causal_class

_OTHERWISE = (
    "Leave torchrun out, or spread the model over GPUs and memory in one process with --device auto"
)


def arguments() -> dict[str, Any]:
    """What from_pretrained is told; nothing in a process of its own."""
    if ranks.count() == 1:
        return {}
    from transformers.distributed import DistributedConfig

    ranks.join()
    return {"distributed_config": DistributedConfig(tp_size=ranks.count(), tp_plan="auto")}


def require_plan(name: str, config: Any) -> None:
    """BadInput if the model can't be cut over the processes that there are."""
    processes = ranks.count()
    if processes == 1:
        return
    config = causal_class(config)[1]
    plan = getattr(config, "base_model_tp_plan", None) or {}
    if not any("att" in name for name in plan):  # a few plans cut the token table only
        raise BadInput(
            f"transformers has no tensor-parallel plan for {name} ({config.model_type}). "
            f"{_OTHERWISE}."
        )
    for field, what in (
        ("num_attention_heads", "query heads"),
        ("num_key_value_heads", "key/value heads"),
    ):
        heads = getattr(config, field, None)
        if isinstance(heads, int) and heads % processes:
            raise BadInput(
                f"The {heads} {what} of {name} can't be divided among {processes} processes. "
                f"Start as many as divide them ({_divisors(config)}), or run it in one process."
            )


def shares_of(*heads: int) -> list[str]:
    """The numbers of devices, from 2 on, among which all these numbers of heads can be divided."""
    common = gcd(*heads)
    return [str(n) for n in range(2, common + 1) if common % n == 0]


def _divisors(config: Any) -> str:
    """Numbers of processes that would do."""
    counts = (getattr(config, one, None) for one in ("num_attention_heads", "num_key_value_heads"))
    return ", ".join(shares_of(*(n for n in counts if isinstance(n, int)))) or "none does"
