"""Wrong .gguf files end in a sentence, in a model that runs, or in the death of one child process.

Flipped bytes and wrong numbers, drawn from a seed.  A short part runs always; `--run-slow` tries
a thousand.
"""

from __future__ import annotations

import random
import signal
import threading
import zlib
from collections import Counter
from pathlib import Path

import pytest

from explorer.trace.request import RunRequest, Sampling
from explorer.trace.wire import messages
from tests.engine.loading.mutants import mutant
from tests.llama_engine import tiny_gguf
from tests.llama_engine.test_serve import Child
from tests.llama_engine.wrong_files import wrong

FEW, MANY = 36, 1000
SECONDS = 60  # for one file
SHARE = 0.03  # of the files at most that llama.cpp does not survive
COUNTS = [pytest.param(FEW, id="short"), pytest.param(MANY, id="long", marks=pytest.mark.slow)]


def write(path: Path, number: int) -> str:
    """A wrong file; which it is."""
    name = tiny_gguf.NAMES[number % len(tiny_gguf.NAMES)]
    draw = random.Random(zlib.crc32(f"{name} {number}".encode()))
    kind = draw.choice(("F32", "Q8_0"))
    if draw.random() < 0.5:
        made, what = wrong(name, draw)
        tiny_gguf.write(path, made, kind=kind)
        return f"{name}: {what}"
    path.write_bytes(mutant(tiny_gguf.write(path, name, kind=kind).read_bytes(), draw))
    return f"{name}: bytes"


def ending(child: Child, path: Path, run: int) -> str:
    """`opens`, `refused` or the signal that ended the process; SIGKILL: it took too long."""
    late = threading.Timer(SECONDS, child.process.kill)
    late.start()
    try:
        last = child.ask(messages.Load(run=run, model=str(path), threads=1))[-1]
        if isinstance(last, messages.Loaded):
            request = RunRequest(prompt="the cat, 日本語 <|im_end|> 12")
            asked = messages.Advance(
                run=run, request=request, chosen=(), sampling=Sampling(), steps=2
            )
            last = child.ask(asked)[-1]
            if isinstance(last, messages.Finished):
                return "opens"
    except (AssertionError, OSError):
        child.process.communicate(timeout=30)  # which closes what it was asked through
        return signal.Signals(-child.process.returncode).name
    finally:
        late.cancel()
    assert isinstance(last, messages.Failed), last
    assert last.sentence.endswith(".")
    assert "\n" not in last.sentence
    return "refused"


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("count", COUNTS)
def test_wrong_files_end_in_a_sentence_or_a_model(tmp_path: Path, count: int) -> None:
    child, found, lost = Child(), Counter[str](), []
    for number in range(count):
        path = tmp_path / f"{number}.gguf"
        what = write(path, number)
        end = ending(child, path, number + 1)
        found[end] += 1
        path.unlink()
        if end not in ("opens", "refused"):
            lost.append(f"{number} {what}: {end}")
            child = Child()
    child.close()
    print(dict(found), *lost, sep="\n")
    assert found["SIGKILL"] == 0
    assert len(lost) <= SHARE * count, lost
    assert found["opens"]
    assert found["refused"]
