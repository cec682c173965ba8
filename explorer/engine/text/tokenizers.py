"""The tokenizer of a model folder, by whatever library its files are made for."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend
from transformers import AutoTokenizer
from transformers.tokenization_utils_tokenizers import TokenizersBackend
from transformers.utils.chat_template_utils import render_jinja_template

from explorer.engine.errors import BadInput, no_panic
from explorer.engine.model_files import unusable_files
from explorer.engine.text import tiktoken_folder
from explorer.engine.text.encoding import ModelTokenizer, Splitter
from explorer.engine.text.tokenizer_backends import FastSplitter, PythonSplitter

_LARGEST_BYTES = 128 * 1024 * 1024  # the widest vocabularies take 35 MB as tokenizer.json
_LONGEST_SETTINGS = 32 * 1024 * 1024
_SETTINGS = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.json",
    "chat_template.jinja",
)
_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
)


class Tokenizer(ModelTokenizer):
    """The tokenizer of a model folder."""

    def __init__(self, splitter: Splitter, library: Any = None, assumption: str = "") -> None:
        """`library`: the transformers tokenizer, or the settings of a tiktoken folder."""
        self.library = library
        self.assumption = assumption  # one sentence about what the files leave open
        super().__init__(splitter)

    @property
    def pad_token_id(self) -> int | None:
        """The tokenizer's own padding token, if it states one."""
        return getattr(self.library, "pad_token_id", None)

    @property
    def _stated_start(self) -> int | None:
        stated = getattr(self.library, "bos_token_id", None)
        return stated if isinstance(stated, int) else None

    def _template(self) -> Any:
        if isinstance(self.library, dict):
            return self.library.get("chat_template")
        return getattr(self.library, "chat_template", None)

    def _rendered(
        self, source: str, messages: list[dict[str, str]], opened: bool, more: dict[str, Any]
    ) -> str:
        if isinstance(self.library, dict):
            rendered, _ = render_jinja_template(
                [messages],
                chat_template=source,
                add_generation_prompt=opened,
                **{**more, **tiktoken_folder.named_tokens(self.library)},
            )
            return str(rendered[0])
        return str(
            self.library.apply_chat_template(
                messages,
                chat_template=source,
                tokenize=False,
                add_generation_prompt=opened,
                **more,
            )
        )


def load_tokenizer(folder: Path, plain: bool = False) -> Tokenizer:
    """The tokenizer of a model folder; BadInput with a next step if there is none.

    `plain`: from its tokenizer.json alone, whatever class the model names for it.
    """
    there = [folder / name for name in (*_FILES, *_SETTINGS) if (folder / name).is_file()]
    for path in there:
        _refuse_unfit(path)
    if not (folder / tiktoken_folder.TOKENS).is_file():
        vocabulary = tiktoken_folder.find_vocabulary(folder)
        if vocabulary is not None:
            return _from_tiktoken(folder, vocabulary)
    if not any(path.name in _FILES for path in there):
        raise BadInput(
            f"{folder.name} has no tokenizer (tokenizer.json or tokenizer.model); copy or download "
            "the whole folder."
        )
    try:
        with no_panic():
            maker = TokenizersBackend if plain else AutoTokenizer
            library = maker.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            backend = getattr(library, "backend_tokenizer", None)
            return Tokenizer(
                PythonSplitter(library) if backend is None else FastSplitter(backend), library
            )
    except (BadInput, MemoryError):
        raise
    except Exception as error:  # a damaged file fails in many ways
        raise _unreadable(folder, there) from error


def _refuse_unfit(path: Path) -> None:
    """BadInput if a file is far longer than any of its name, or stands in for one."""
    longest = _LARGEST_BYTES if path.name in _FILES else _LONGEST_SETTINGS
    if path.stat().st_size > longest:
        raise BadInput(
            f"{path.name} of {path.parent.name} is far too long to be what its name says; "
            "download it again."
        )
    unusable_files.refuse_stand_in(path)


def _unreadable(folder: Path, there: list[Path]) -> BadInput:
    """Names the file at fault, where it can be told."""
    details = traceback.format_exc()
    if not (folder / "tokenizer.json").is_file() and list(folder.glob("*.model")):
        return BadInput(
            f"The tokenizer.model of {folder.name} cannot be read; download it again, or put "
            "the tokenizer.json of the same model beside it.",
            details,
        )
    names = [path.name for path in there]
    # Where every file is well-formed, it is the settings that say what cannot be.
    last = "tokenizer_config.json" if "tokenizer_config.json" in names else "tokenizer"
    fault = next((path.name for path in there if not _is_sound(path)), last)
    return BadInput(f"The {fault} of {folder.name} cannot be read; download it again.", details)


def _is_sound(path: Path) -> bool:
    """False if a file is not what the end of its name says, or describes no tokenizer."""
    try:
        with no_panic():
            if path.suffix in (".json", ".jinja", ".txt"):
                text = path.read_text("utf-8")
            if path.suffix == ".json":
                json.loads(text)
            if path.name == "tokenizer.json":
                Backend.from_file(str(path))
    except Exception:  # the library raises bare ones
        return False
    return True


def _from_tiktoken(folder: Path, vocabulary: Path) -> Tokenizer:
    found = tiktoken_folder.open_folder(folder, vocabulary)
    return Tokenizer(found.splitter, found.settings, found.assumption)
