"""One tiny llama, opened as it is and, converted to float32, by torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from explorer.engine.loading.loading import load
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.llama_engine.passes.runner import LlamaRunner
from tests.llama_engine import tiny_gguf
from tests.llama_engine.opened import opened


@dataclass(frozen=True)
class Both:
    """The same weights: llama.cpp keeps keys and values in 16 bits, torch in 32."""

    llama: LlamaRunner
    torch: Runner


@pytest.fixture(scope="package")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    path = tiny_gguf.write(folder / "tiny.gguf", "llama")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DECODER_EXPLORER_HOME", str(folder / "data"))
        torch = Runner(load(str(path)))
    selftest.run(torch)
    llama = opened(path)
    yield Both(llama, torch)
    llama.close()
