"""Layers on a GPU: refused where there is none; what would lie in its memory is never touched.

The pinned package has no GPU support on Linux: what a GPU would hold is played by name.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from explorer.engine.callbacks import nobody
from explorer.engine.errors import BadInput
from explorer.llama_engine.binding import tensor
from explorer.llama_engine.binding.library import LlamaLibrary, library
from explorer.llama_engine.binding.structs import ModelParams, TensorStruct
from explorer.llama_engine.inside import residual
from explorer.llama_engine.selftest import store
from explorer.trace.inside.stream import ReadStream
from explorer.trace.request import RunRequest
from tests.llama_engine import tiny_gguf
from tests.llama_engine.opened import opened, run

REQUEST = RunRequest(prompt="the cat sat on the mat and the dog sat")
STEPS = 4
ON_GPU = (b"l_out", b"ffn_", b"result_")  # what layers compute, but for their attention


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tiny_gguf.write(tmp_path / "tiny.gguf", "llama")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build with GPU support."""
    monkeypatch.setattr(LlamaLibrary, "can_use_gpu", True)


@pytest.mark.skipif(library().can_use_gpu, reason="there is a GPU")
def test_without_gpu_support_layers_on_a_gpu_are_refused(path: Path) -> None:
    with pytest.raises(BadInput, match="Open the file with 0 GPU layers"):
        opened(path, gpu_layers=1)
    opened(path).close()


@pytest.mark.usefixtures("gpu")
def test_llama_cpp_gets_the_number_and_the_card_says_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    load = library().llama_model_load_from_file

    def noting(name: bytes, params: ModelParams) -> int:
        asked.append(params.n_gpu_layers)
        return int(load(name, params))

    monkeypatch.setattr(library(), "llama_model_load_from_file", noting)
    plain, other = opened(path), opened(path, gpu_layers=2)
    assert asked == [0, 2]
    assert [runner.card.gpu_layers for runner in (plain, other)] == [0, 2]
    assert [len(runner.card.warnings) for runner in (plain, other)] == [0, 1]
    assert store.identity(plain) != store.identity(other)
    for runner in (plain, other):
        runner.close()


@pytest.mark.usefixtures("gpu")
def test_what_is_on_a_gpu_is_not_offered_and_the_rest_is_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_memory(one: TensorStruct) -> bool:
        return not one.name.startswith(ON_GPU)

    plain = opened(path)
    expected = run(plain, REQUEST, STEPS)
    plain.close()
    monkeypatch.setattr(tensor, "in_memory", in_memory)
    runner = opened(path, gpu_layers=2)
    card = runner.card
    assert runner.proven is not None
    assert runner.proven.rebuilt == frozenset(range(card.layers))
    for name in ("capture", "causal_off", "cache", "undo", "silence_heads", "cut_cells"):
        assert card.offers(name), name
    for name in ("silence_mlp", "silence_layers"):
        assert card.words(name) == "what it reads or changes is in the memory of a GPU"
    found = run(runner, REQUEST, STEPS)
    for step, other in zip(found.steps, expected.steps, strict=True):
        assert np.array_equal(step.logits, other.logits)
        assert np.isnan(step.layer_ms).all(), "the processor's nodes do not tell a GPU's time"
    for layer in range(card.layers):
        assert np.array_equal(
            found.weights(STEPS - 1, layer, 0), expected.weights(STEPS - 1, layer, 0)
        )
    with pytest.raises(BadInput, match="in the memory of a GPU"):
        residual.read(runner, ReadStream(request=REQUEST), nobody)
    runner.close()
