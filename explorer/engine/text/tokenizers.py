"""Text to tokens and back, exactly: raw bytes of every token, special tokens told apart."""

from __future__ import annotations

import json
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend
from transformers import AutoTokenizer
from transformers.tokenization_utils_tokenizers import TokenizersBackend
from transformers.utils.chat_template_utils import render_jinja_template

from explorer.engine.errors import BadInput, no_panic
from explorer.engine.model_files import unusable_files
from explorer.engine.text import chat_parts, template_limits, tiktoken_folder
from explorer.engine.text.token_bytes import Spelling
from explorer.engine.text.tokenizer_backends import FastSplitter, PythonSplitter, Splitter
from explorer.trace.chat import ChatParts
from explorer.trace.step import Origin, Token

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


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of one text, and what is wrong with it or worth knowing, if anything."""

    tokens: tuple[Token, ...]
    problem: str = ""
    parts: ChatParts | None = None  # of a chat prompt, where they can be told


class Tokenizer:
    """One model's tokenizer.  Its methods may be called from several threads."""

    def __init__(self, splitter: Splitter, library: Any = None, assumption: str = "") -> None:
        """`library`: the transformers tokenizer, or the settings of a tiktoken folder."""
        self._splitter = splitter
        self.library = library
        self.assumption = assumption  # one sentence about what the files leave open
        self._vocabulary = splitter.vocabulary
        self._lock = threading.Lock()
        self._before, self._after = self._added_around()

    @property
    def missing_bytes(self) -> tuple[int, ...]:
        """Byte values that the vocabulary cannot spell."""
        return self._vocabulary.missing_bytes

    @property
    def spelling(self) -> Spelling:
        """How the vocabulary writes bytes."""
        return self._vocabulary.spelling

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return len(self._vocabulary.raw)

    @property
    def pad_token_id(self) -> int | None:
        """The tokenizer's own padding token, if it states one."""
        return getattr(self.library, "pad_token_id", None)

    @property
    def has_chat_template(self) -> bool:
        """True if the model's folder says how messages become text."""
        return bool(self._template())

    @property
    def bos_policy(self) -> str:
        """What the tokenizer adds to a text of its own accord, as one sentence."""
        before, after = self._names(self._before), self._names(self._after)
        if not before and not after:
            return "No start token is added."
        words = f"{before} is added at the start" if before else "No start token is added"
        return f"{words}, {after} at the end." if after else f"{words}."

    def token(self, token_id: int, origin: Origin = "prompt") -> Token:
        """The token of any id, also of those the model has and the tokenizer has not."""
        raw = self._vocabulary.raw
        if 0 <= token_id < len(raw) and (known := raw[token_id]) is not None:
            return Token(token_id, known, origin, token_id in self._vocabulary.special)
        return Token(token_id, f"<id {token_id}>".encode(), origin, True)

    def encode(self, text: str, chat: bool = False, special_as_text: bool = False) -> Encoded:
        """The tokens of a text, or of one user message put through the chat template.

        Text such as `<|im_end|>` becomes the control token of that name, as in transformers;
        with `special_as_text` it stays text, in a message too if the tokenizer can.  BadInput for
        half a surrogate pair, or if there is no chat template.
        """
        check_text(text)
        if chat:
            rendered = self.render(text)
            tokens = self._tokens(self._splitter.ids(rendered, add=False))
            problem = self._inside_chat(text)
            if special_as_text and problem:
                as_letters = self._letters_inside(rendered, text, tokens)
                if as_letters is None:
                    problem += " With this tokenizer and template, it can't be read as plain text."
                else:
                    tokens, problem = as_letters, ""
            parts = chat_parts.of(rendered, text, tokens, self.render)
            return Encoded(tokens, problem, parts)
        return self._encoded(text, self._splitter.ids(text, True, special_as_text))

    def render(self, text: str, opened: bool = True) -> str:
        """One user message as the model's chat template writes it; `opened`: ready to answer."""
        check_text(text)
        template = self._template()
        if not template:
            raise BadInput("This model has no chat template. Switch chat off and type raw text.")
        messages = [{"role": "user", "content": text}]
        try:
            template_limits.bind(template)
            if isinstance(self.library, dict):
                rendered, _ = render_jinja_template(
                    [messages],
                    chat_template=template,
                    add_generation_prompt=opened,
                    **tiktoken_folder.named_tokens(self.library),
                )
                return str(rendered[0])
            with self._lock:
                return str(
                    self.library.apply_chat_template(
                        messages, tokenize=False, add_generation_prompt=opened
                    )
                )
        except BadInput:
            raise
        except Exception as error:  # a template is a program of the model's own
            raise BadInput(
                "This model's chat template failed on the message. Switch chat off.",
                traceback.format_exc(),
            ) from error

    def _template(self) -> Any:
        if isinstance(self.library, dict):
            return self.library.get("chat_template")
        return getattr(self.library, "chat_template", None)

    def _encoded(self, text: str, ids: list[int]) -> Encoded:
        """Tokens with exactly one start token, and remarks."""
        start = self._before
        doubled = len(start) == 1 and ids[:2] == [start[0], start[0]]
        if doubled:
            ids = ids[1:]
        return Encoded(self._tokens(ids), self._remarks(text, ids, doubled))

    def _tokens(self, ids: list[int]) -> tuple[Token, ...]:
        return tuple(self.token(i) for i in ids)

    def _names(self, ids: list[int]) -> str:
        return " ".join(self.token(i).text for i in ids)

    def _added_around(self) -> tuple[list[int], list[int]]:
        """Ids that the tokenizer puts before and after every text."""
        bare, dressed = self._splitter.ids("a", add=False), self._splitter.ids("a", add=True)
        for start in range(len(dressed) - len(bare) + 1):
            if dressed[start : start + len(bare)] == bare:
                return dressed[:start], dressed[start + len(bare) :]
        return [], []

    def _inside_chat(self, text: str) -> str:
        """A remark on control tokens inside the user's own message."""
        return self._control_words(self._splitter.ids(text, add=False))

    def _letters_inside(
        self, rendered: str, text: str, tokens: tuple[Token, ...]
    ) -> tuple[Token, ...] | None:
        """The chat prompt with the names of control tokens in the message read as letters.

        None unless the same way of reading gives the usual tokens for a message without any.
        """
        plain = text
        for token in tokens:
            if token.special and token.raw:
                plain = plain.replace(token.raw.decode("utf-8", "replace"), " ")
        usual = self.render(plain)
        ids = self._splitter.ids(usual, add=False)
        if self._pieces(usual, plain, self._tokens(ids)) != ids:
            return None
        found = self._pieces(rendered, text, tokens)
        if found is None:
            return None
        spelled = self._tokens(found)
        same = b"".join(token.raw for token in spelled) == rendered.encode()
        return spelled if same else None

    def _pieces(self, rendered: str, text: str, tokens: tuple[Token, ...]) -> list[int] | None:
        place = chat_parts.place_of(rendered, text, self.render)
        if place is None:
            return None
        return chat_parts.letters_within(
            rendered, place, tokens, lambda piece: self._splitter.ids(piece, False, True)
        )

    def _remarks(self, text: str, ids: list[int], doubled: bool) -> str:
        """Sentences on what a reader should know; empty if the tokens simply spell the text."""
        inner = ids[len(self._before) : len(ids) - len(self._after)]
        remarks = [self._lost(text, inner), self._control_words(inner)]
        if doubled:
            name = self._names(self._before)
            remarks.append(f"The text already starts with {name}, so no second one is added.")
        return " ".join(remark for remark in remarks if remark)

    def _control_words(self, ids: list[int]) -> str:
        found = sorted({i for i in ids if i in self._vocabulary.special})
        if not found:
            return ""
        return f"{self._names(found)} in the text is read as a control token, not as plain text."

    def _lost(self, text: str, ids: list[int]) -> str:
        """One sentence if the tokens do not spell the text; empty if they do."""
        if self.spelling not in ("byte-level", "byte-fallback"):
            return ""
        wanted, got = text.encode("utf-8"), b"".join(self.token(i).raw for i in ids)
        if got in (wanted, b" " + wanted):  # some vocabularies put a space in front of every text
            return ""
        if missing := sorted(set(wanted) & set(self.missing_bytes)):
            names = ", ".join(f"0x{byte:02X}" for byte in missing)
            return f"Some bytes of the text are missing from this model's vocabulary: {names}."
        if unknown := self._splitter.unspelled(text):
            names = ", ".join(dict.fromkeys(unknown))
            return f"Some characters of the text are missing from this model's vocabulary: {names}."
        return (
            "This model's tokenizer normalises the text first (for example accents or "
            "spaces). The tokens show what the model gets."
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


def check_text(text: str) -> None:
    """BadInput if a text holds half a surrogate pair, which no encoding can spell."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(
            f"Character {error.start + 1} of the text is half of a surrogate pair. Delete it."
        ) from error
