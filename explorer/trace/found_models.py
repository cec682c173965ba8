"""Models on a disk, and how one of them is built: what the window shows of them before loading."""

from __future__ import annotations

import msgspec


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model on the engine's disk; told from the heads of its files."""

    name: str
    path: str
    source: str = ""  # bundled, Hugging Face cache, LM Studio, Ollama, or an added folder's path
    architecture: str = ""
    parameters: int | None = 0  # None where that is not known yet
    bytes: int = 0  # of its files
    dtype: str = ""  # of its weights as stored, by share: "Q4_1 79 %, Q8_0 21 %"
    fits: bool | None = None  # in its usual form, now; None where the free memory is not known
    # By dtype, and "as-is" of a .gguf file: weights, cache and capture of a run.
    memory_bytes: dict[str, int] = {}
    pickle: bool = False  # weights in .bin files, which can hide programs
    own_code: bool = False  # opens only after a yes to its own program code
    incomplete: bool = False  # a download that was cut off: its name and size so far are known

    @property
    def is_gguf(self) -> bool:
        """True if llama.cpp can be asked to run it as it is."""
        return "as-is" in self.memory_bytes


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where the engine runs; 0 or empty where nobody says."""

    processor: str = ""
    cores: int = 0
    memory_bytes: int = 0
    gpus: tuple[str, ...] = ()


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """The models found, and the places where they were looked for."""

    models: tuple[FoundModel, ...] = ()
    folders: tuple[str, ...] = ()  # added by the user
    available_bytes: int | None = None  # memory that can be had now
    conversions_bytes: int = 0  # of GGUF files, kept on the disk
    offline: str = ""  # why nothing can be downloaded, as one sentence; empty if it can
    gpu: bool = False  # llama.cpp can put layers of a .gguf file on a GPU
    machine: Machine = Machine()  # older engines do not tell it


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a download of one model would fetch."""

    repo: str
    form: str = ""  # of those below, the one that the figures are of
    forms: tuple[tuple[str, int], ...] = ()  # safetensors, pickle or a GGUF file's name; bytes
    files: tuple[tuple[str, int], ...] = ()  # name, bytes
    bytes: int = 0
    free_bytes: int = 0  # on the disk where it would go


class Predecessor(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table to compare with."""

    name: str
    year: int
    layers: int
    hidden_size: int
    parameters: int


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is built, from its config alone."""

    model: str
    layers: int
    hidden_size: int
    parameters: int  # exactly
    parameters_rule_of_thumb: int
    tying_saves: int = 0
    parts: dict[str, int] = {}  # parameters: attention, feed_forward, table, head, positions, rest
    kv_bytes_per_token: dict[str, int] = {}  # by dtype
    recipe: tuple[str, ...] = ()  # sentences
    compare: tuple[Predecessor, ...] = ()
