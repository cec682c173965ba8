"""Damaged model files of every kind end in a sentence or in a model, whatever is wrong with them.

Never a traceback, a wait or gigabytes: each mutant runs under an alarm and a limit of memory.  A
short part runs always, with the same seeds; `--run-slow` tries many more.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gguf as library
import pytest
import torch

from explorer.engine.callbacks import never
from explorer.engine.errors import BadInput
from explorer.engine.library import catalog, recipe
from explorer.engine.library.stores import Source
from explorer.engine.loading.loading import load
from explorer.engine.passes.generate import one_step
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import store
from explorer.engine.text.tokenizers import Tokenizer, load_tokenizer
from explorer.trace.request import RunRequest, Sampling
from tests.engine.folders import byte_level, model, write_folder, write_gguf, write_tokenizer
from tests.engine.loading.mutants import mutant
from tests.engine.text.test_tiktoken_folder import write_ranks
from tests.engine.text.test_tokenizers import write_sentence_piece

FEW, MANY = 5, 150  # mutants of each kind of file; of those that take no model, ten times as many
SECONDS = 20  # for one of them; a machine may be busy
ROOM = 3 << 30  # bytes that may be taken on top of what the process has
TEXT = "the cat, 日本語 <|im_end|> 12"
SMALL = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2}


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))


@contextmanager
def bounded() -> Iterator[None]:
    """While inside, a wait or gigabytes raise; where the system can do that."""
    if sys.platform != "linux":
        yield
        return
    import resource

    def late(*_: Any) -> None:
        raise TimeoutError("a mutant took too long")

    held = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    before = resource.getrlimit(resource.RLIMIT_AS)
    old = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (held + ROOM, before[1]))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGALRM, old)


def open_and_run(path: Path) -> None:
    """Open a model, and one pass and a look at its card if it opens."""
    try:
        recipe.inspect(str(path))
    finally:
        loaded = load(str(path))
        use(loaded.tokenizer)
        runner = Runner(loaded)
        store.find(runner, never, again=True)
        request = RunRequest(prompt="the cat")
        one_step(runner, request, runner.layout(request, ()), 0, Sampling())


def read_tokenizer(folder: Path) -> None:
    use(load_tokenizer(folder))


def list_it(path: Path) -> None:
    """The line of `models` for it, or none: one odd folder must not hide the others."""
    catalog._row(Source("x", path, "gguf" if path.suffix == ".gguf" else "folder"), None)


def use(tokenizer: Tokenizer) -> None:
    tokenizer.encode(TEXT)
    tokenizer.encode(TEXT * 200)
    tokenizer.token(tokenizer.size - 1)
    if tokenizer.has_chat_template:
        tokenizer.encode(TEXT, chat=True)


def as_gguf(kind: library.GGMLQuantizationType) -> Callable[[Path], Path]:
    return lambda folder: write_gguf(folder / "x.gguf", model(**SMALL), kind)


def as_folder(name: str, shard_size: str = "50GB") -> Callable[[Path], Path]:
    return lambda folder: write_folder(folder, model(**SMALL), shard_size) / name


def as_pickle(folder: Path) -> Path:
    made = model(**SMALL)
    (write_folder(folder, made) / "model.safetensors").unlink()
    torch.save(made.state_dict(), folder / "pytorch_model.bin")
    return folder / "pytorch_model.bin"


def as_tokenizer(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        write_tokenizer(folder, byte_level())
        return folder / name

    return write


def as_tiktoken(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        size = write_ranks(folder / "tokenizer.model")
        (folder / "tokenizer_config.json").write_text(
            '{"pat_str": " ?[a-z]+|[^a-z]", "add_bos_token": true, "bos_token": "<s>", '
            f'"added_tokens_decoder": {{"{size}": {{"content": "<s>"}}}}}}'
        )
        return folder / name

    return write


def as_sentence_piece(folder: Path) -> Path:
    write_sentence_piece(folder / "tokenizer.model")
    return folder / "tokenizer.model"


KINDS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], None]]] = {
    "gguf F32": (as_gguf(library.GGMLQuantizationType.F32), open_and_run),
    "gguf Q8_0": (as_gguf(library.GGMLQuantizationType.Q8_0), open_and_run),
    "safetensors": (as_folder("model.safetensors"), open_and_run),
    "index": (as_folder("model.safetensors.index.json", "20KB"), open_and_run),
    "pickle": (as_pickle, open_and_run),
    "config": (as_folder("config.json"), open_and_run),
    "generation config": (as_folder("generation_config.json"), open_and_run),
    "listed gguf": (as_gguf(library.GGMLQuantizationType.F32), list_it),
    "listed safetensors": (as_folder("model.safetensors"), list_it),
    "listed index": (as_folder("model.safetensors.index.json", "20KB"), list_it),
    "listed config": (as_folder("config.json"), list_it),
    "tokenizer": (as_tokenizer("tokenizer.json"), read_tokenizer),
    "tokenizer config": (as_tokenizer("tokenizer_config.json"), read_tokenizer),
    "chat template": (as_tokenizer("chat_template.jinja"), read_tokenizer),
    "tiktoken": (as_tiktoken("tokenizer.model"), read_tokenizer),
    "tiktoken config": (as_tiktoken("tokenizer_config.json"), read_tokenizer),
    "sentencepiece": (as_sentence_piece, read_tokenizer),
}
COUNTS = [pytest.param(FEW, id="short"), pytest.param(MANY, id="long", marks=pytest.mark.slow)]


@pytest.mark.filterwarnings("ignore")  # libraries warn of odd values, and that is well
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", KINDS)
def test_mutants_end_in_a_sentence_or_a_model(tmp_path: Path, kind: str, count: int) -> None:
    write, opened = KINDS[kind]
    folder = tmp_path / "tiny"
    folder.mkdir()
    file = write(folder)
    whole = file.read_bytes()
    place = file if file.suffix == ".gguf" else folder
    times = 1 if opened is open_and_run else 10
    for number in range(count * times):
        draw = random.Random(zlib.crc32(f"{kind} {number}".encode()))
        file.write_bytes(mutant(whole, draw, file.suffix == ".json"))
        sentence = ending(opened, place, f"mutant {number} of {kind}")
        assert sentence.endswith("."), number
        assert len(sentence) < 500, number
        assert "\n" not in sentence, number


def ending(opened: Callable[[Path], None], place: Path, what: str) -> str:
    """The sentence that a mutant is refused with, or that it opens; AssertionError for all else."""
    try:
        with bounded():
            opened(place)
    except BadInput as error:
        return error.sentence
    except BaseException as error:
        raise AssertionError(f"{what}: {error!r}") from error
    return "It opens."
