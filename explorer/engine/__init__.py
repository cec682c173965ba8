"""torch, transformers and tiktoken: loads a model, runs passes, records what they did.  No Qt.

Nothing in this room contacts a network, and the libraries are set up so before they are imported;
`hub`, a process of its own that a user asks for, is the one exception.
"""

import os

OFFLINE_NAMES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_TRUE = {"1", "ON", "YES", "TRUE"}
asked_offline = tuple(name for name in OFFLINE_NAMES if os.environ.get(name, "").upper() in _TRUE)
"""Which of them the user had set: then nothing is downloaded either."""

for _name in (*OFFLINE_NAMES, "HF_HUB_DISABLE_TELEMETRY"):
    os.environ[_name] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the cores belong to the forward pass
