"""The engine's own process, over a child that only plays llama.cpp (`fake_llama`)."""

from __future__ import annotations

import sys
from pathlib import Path

from explorer.engine import serve
from explorer.engine.relay import llama_process, relay

llama_process.COMMAND = (sys.executable, str(Path(__file__).with_name("fake_llama.py")))
relay.PACKAGE = "json"
if __name__ == "__main__":
    serve.main()
