"""Quantised matrices and a prompt longer than one call: still llama.cpp's own maps, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer.figures.attention.maps import pass_map
from explorer.trace.request import RunRequest
from tests.llama_engine import tiny_gguf
from tests.llama_engine.opened import opened, run
from tests.llama_engine.oracle import direct
from tests.llama_engine.tiny_architectures import ARCHITECTURES, WINDOW

PROMPT = "the cat sat on the mat " * 100
CALL = 512  # tokens that the engine reads in one call under the causal mask


@pytest.mark.parametrize("causal", [True, False], ids=["masked", "unmasked"])
@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_maps_of_a_long_prompt(tmp_path: Path, name: str, kind: str, causal: bool) -> None:
    made = ARCHITECTURES[name]()
    made = replace(made, numbers={**made.numbers, "context_length": 4096})
    path = tiny_gguf.write(tmp_path / "x.gguf", made, kind=kind)
    runner = opened(path)
    trace = run(runner, RunRequest(prompt=PROMPT, causal_mask=causal), 1)
    ids = [token.id for token in trace.prompt]
    assert len(ids) > CALL
    with direct(path, causal=causal, slots=1024) as theirs:
        assert np.array_equal(theirs.read(ids), trace.steps[0].logits)
        for layer, own in theirs.maps.items():
            ours = pass_map(trace, 0, layer, 0).weights
            assert np.abs(ours - own[0]).max() <= 1e-5
    middle = len(ids) // 2
    read = np.flatnonzero(pass_map(trace, 0, 0, 0).weights[middle])
    sliding = name == "gemma3"
    assert read[0] == (middle - WINDOW + 1 if sliding else 0)
    assert read[-1] == (middle if causal else len(ids) - 1)
    runner.close()
