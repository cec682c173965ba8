"""The light way of importing transformers: without the compiler, and with everything there."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import json, sys
from explorer.engine import light_imports
light_imports.load()
from explorer.engine.loading import loading
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import store
from tests.engine.tiny import tiny_runner
import torch, transformers
from transformers import masking_utils
heavy = ("torch._dynamo", "torch.distributed.tensor")
found = {"light": not any(name in sys.modules for name in heavy)}
runner = tiny_runner("llama")
from explorer.engine.model_files.meta_model import skeleton
skeleton(runner.model.config)
found["still light"] = "torch._dynamo" not in sys.modules
with light_imports.no_compiler():
    from torch._dynamo import utils
    import torch._dynamo.exc
found["parts"] = callable(utils.same) and callable(torch._dynamo.exc.TorchDynamoException)
found["distributed"] = torch.distributed.is_available()
found["names"] = [transformers.models.LlamaConfig.__name__, transformers.GPT2LMHeadModel.__name__,
                  transformers.models.qwen2.modeling_qwen2.Qwen2Model.__name__]
# What was put off is the real thing once it is wanted.
found["mask"] = type(masking_utils.TransformGetItemToIndex()).__module__
import torch._dynamo
found["compiler"] = torch._dynamo.__spec__ is not None and callable(torch._dynamo.optimize)
found["compiled"] = torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)).tolist()
print(json.dumps(found))
"""


def test_the_compiler_is_left_out_and_can_still_be_had() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", SCRIPT],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "light": True,
        "still light": True,
        "parts": True,
        "distributed": True,
        "names": ["LlamaConfig", "GPT2LMHeadModel", "Qwen2Model"],
        "mask": "torch._dynamo._trace_wrapped_higher_order_op",
        "compiler": True,
        "compiled": [2.0, 2.0],
    }
