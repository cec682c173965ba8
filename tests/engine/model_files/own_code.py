"""A model folder that brings code of its own, which leaves a mark wherever it runs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.engine.folders import model, write_folder

CONFIG = """
from pathlib import Path
from transformers import LlamaConfig
Path({mark!r}).write_text("configuration")

class OwnConfig(LlamaConfig):
    model_type = "own_kind"
"""
MODEL = """
from transformers import LlamaForCausalLM
from .configuration_own import OwnConfig
from .extra import LAYERS

class OwnForCausalLM(LlamaForCausalLM):
    config_class = OwnConfig
"""
EXTRA = "LAYERS = 3\n"


def write(folder: Path, mark: Path) -> Path:
    """Llama under a type of its own; importing its code writes `mark`."""
    write_folder(folder, model(eos_token_id=None))
    path = folder / "config.json"
    stated = json.loads(path.read_text())
    stated |= {
        "model_type": "own_kind",
        "architectures": ["OwnForCausalLM"],
        "auto_map": {
            "AutoConfig": "configuration_own.OwnConfig",
            "AutoModelForCausalLM": "modeling_own.OwnForCausalLM",
        },
    }
    path.write_text(json.dumps(stated))
    (folder / "configuration_own.py").write_text(CONFIG.format(mark=str(mark)))
    (folder / "modeling_own.py").write_text(MODEL)
    (folder / "extra.py").write_text(EXTRA)
    settings = folder / "tokenizer_config.json"
    named = json.loads(settings.read_text())
    named |= {"auto_map": {"AutoTokenizer": ["tokenization_own.OwnTokenizer", None]}}
    settings.write_text(json.dumps(named))
    (folder / "tokenization_own.py").write_text(
        CONFIG.format(mark=str(mark)).replace("configuration", "tokenization")
    )
    return folder
