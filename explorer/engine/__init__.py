"""torch, transformers and tiktoken: loads a model, runs passes, records what they did.  No Qt.

Nothing in this room contacts a network: the libraries are told so before they are imported.
"""

import os

for _name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
    os.environ[_name] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the cores belong to the forward pass
