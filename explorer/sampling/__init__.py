"""From logits to a token: the sampling chain over the whole vocabulary, then one uniform number.

One small numpy room, used alike by the engine, the window and the command line.  Links and rules
are transformers': the repetition penalty divides a positive logit and multiplies a negative one;
ties with the k-th logit are kept; top-p keeps the smallest set whose mass reaches p, ties by id;
min-p keeps what reaches that share of the best token's probability; one token always stays; the
survivors are renormalised.  Greedy takes the best token after the penalty and skips the rest.
"""

from explorer.sampling.chain import (
    Distribution,
    SamplingError,
    Stage,
    check,
    distribution,
    entropy_bits,
    leading,
    ranking,
    softmax,
    stages,
    total_variation,
)
from explorer.sampling.draw import describe, force, landing, pick, uniform
from explorer.sampling.model_defaults import left_out, model_defaults

__all__ = [
    "Distribution",
    "SamplingError",
    "Stage",
    "check",
    "describe",
    "distribution",
    "entropy_bits",
    "force",
    "landing",
    "leading",
    "left_out",
    "model_defaults",
    "pick",
    "ranking",
    "softmax",
    "stages",
    "total_variation",
    "uniform",
]
