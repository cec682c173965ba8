"""TOML with the line of every key, and its tables as structs: every error names file and line."""

from __future__ import annotations

import bisect
import difflib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from explorer.lessons.toml_faults import explained

MOST_CHARACTERS = 200_000
MOST_DEPTH = 8
_SHOWN = 60  # characters of what a file says, in a message
_BARE = re.compile(r"[^,\]}\n#]*")
_LONG_KEY = re.compile(
    r"(?:(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+){30}"
)
_AT_LINE = re.compile(r" ?\(at (?:line (\d+), column \d+|end of document)\)$")
_AT_PATH = re.compile(r" - at `([^`]*)`$")
_WORDS = {
    "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false",
    "array": "a list", "object": "a table", "null": "nothing",
}  # fmt: skip

Path = tuple[str | int, ...]
S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")


class LessonFileError(ValueError):
    """What is wrong with a lesson or scene file, as one sentence that begins with the file.

    `line` counts from 1; 0 = the file as a whole.  `others` are wrong in the same file.
    """

    def __init__(
        self, file: str, line: int, words: str, others: Sequence[LessonFileError] = ()
    ) -> None:
        super().__init__(f"{file}, line {line}: {words}" if line else f"{file}: {words}")
        self.file, self.line, self.words, self.others = file, line, words, tuple(others)

    @property
    def each(self) -> tuple[LessonFileError, ...]:
        """Everything that is wrong in the file, from its top."""
        return self, *self.others


class Faults:
    """Collects what is wrong in a file, so that all of it is reported at once."""

    def __init__(self) -> None:
        self._found: list[LessonFileError] = []

    def of(self, make: Callable[[], T]) -> T | None:
        """What `make` gives; None, and its fault kept, if that is not possible."""
        try:
            return make()
        except LessonFileError as error:
            self._found += error.each
            return None

    @property
    def found(self) -> tuple[LessonFileError, ...]:
        """All of it, as it was found."""
        return tuple(self._found)

    def tell(self) -> None:
        """LessonFileError with every fault so far, if there is any."""
        if self._found:
            first, *others = sorted(self._found, key=lambda one: one.line)
            raise LessonFileError(first.file, first.line, first.words, others)


@dataclass(frozen=True, slots=True)
class Document:
    """A TOML file as plain values, and the line on which each of them is written."""

    file: str
    values: dict[str, Any]
    lines: Mapping[Path, int]  # of the keys, from 1
    starts: Mapping[Path, int]  # of texts: the line of their first character

    def line(self, at: Path) -> int:
        """The line of this value, or of the nearest table around it."""
        while at and at not in self.lines:
            at = at[:-1]
        return self.lines.get(at, 1)

    def error(self, at: Path, words: str) -> LessonFileError:
        """An error about the value at this place."""
        return LessonFileError(self.file, self.line(at), words)

    def refuse(self, at: Path, words: str) -> None:
        """The same, raised."""
        raise self.error(at, words)

    def convert(self, value: Any, kind: type[S], at: Path, places: Mapping[str, Path] = {}) -> S:
        """The table `value`, written at `at`, as a struct; LessonFileError if it does not fit.

        `places` says where single keys are written, if that is not in the table at `at`.
        """
        try:
            return msgspec.convert(value, kind)
        except (msgspec.ValidationError, RecursionError) as error:
            path, words = _explained(str(error), kind)
            begins = places.get(str(path[0]), at) if path else at
            raise self.error((*begins, *path), words) from error


def read(text: str, file: str) -> Document:
    """The document in `text`; LessonFileError if it is too large, too deep or no TOML."""
    if len(text) > MOST_CHARACTERS:
        raise LessonFileError(file, 1, f"The file has more than {MOST_CHARACTERS:,} characters.")
    if found := _LONG_KEY.search(text):  # the parser would take minutes over thousands of parts
        raise LessonFileError(file, text.count("\n", 0, found.start()) + 1, "This key is too long.")
    try:
        values = tomllib.loads(text)
        require_shallow(values)
        scanner = _Scanner(text.replace("\r\n", "\n"))
        scanner.document()
    except (tomllib.TOMLDecodeError, RecursionError, _TooDeep, ValueError) as error:
        raise _syntax_error(file, text, error) from error
    return Document(file, values, scanner.lines, scanner.starts)


def require_shallow(values: Any) -> None:
    """ValueError if lists and tables are nested deeper than any lesson needs."""
    level = [values]
    for _ in range(MOST_DEPTH):
        inner = [v for one in level for v in (one.values() if isinstance(one, dict) else one)]
        level = [one for one in inner if isinstance(one, dict | list)]
        if not level:
            return
    raise _TooDeep


def known_only(
    document: Document, table: Mapping[str, Any], names: Sequence[str], at: Path
) -> None:
    """LessonFileError at the first key that is not among `names`."""
    for name in table:
        if name not in names:
            raise document.error((*at, name), unknown_key(name, names))


def unknown_key(name: str, names: Sequence[str]) -> str:
    """What to say of a key that means nothing here."""
    close = difflib.get_close_matches(name, names, 1)
    hint = f"Did you mean “{close[0]}”?" if close else f"Known keys: {', '.join(names)}."
    return f"“{name[:_SHOWN]}” is not a known key. {hint}"


class _TooDeep(Exception):
    """Lists and tables are nested too deeply."""


def _syntax_error(file: str, text: str, error: Exception) -> LessonFileError:
    if isinstance(error, _TooDeep | RecursionError):
        return LessonFileError(file, 1, f"Lists and tables are nested more than {MOST_DEPTH} deep.")
    found = _AT_LINE.search(str(error))
    last = max(1, len(text.splitlines()))
    line = int(found[1]) if found and found[1] else last if found else 1
    words = _AT_LINE.sub("", str(error))[:200].rstrip(".")
    line, words = explained(text, min(line, last), words)
    return LessonFileError(file, line, f"This is not valid TOML: {words}")


def _explained(message: str, kind: type[msgspec.Struct]) -> tuple[Path, str]:
    """Where in the table msgspec found a fault, and the fault in plain words."""
    found = _AT_PATH.search(message)
    path = _path(found[1]) if found else ()
    said = _AT_PATH.sub("", message)
    name = str(next((part for part in reversed(path) if isinstance(part, str)), "This"))
    if unknown := re.match(r"Object contains unknown field `(.*)`", said, re.DOTALL):
        names = _fields(_kind_at(kind, path))
        return (*path, unknown[1]), unknown_key(unknown[1], names)
    if missing := re.match(r"Object missing required field `(.*)`", said):
        return path, f"“{missing[1]}” is missing."
    if said.startswith("Invalid enum value"):
        allowed = _literals(_kind_at(kind, path[:-1]), path[-1] if path else "")
        return path, f"“{name}” must be one of: {', '.join(allowed)}."
    if wrong := re.match(r"Expected `([^`]*)`(.*?)(?:, got `(\w+)`)?$", said):
        wanted = " or ".join(_WORDS.get(one, one) for one in wrong[1].split(" | "))
        got = f", not {_WORDS.get(wrong[3], wrong[3])}" if wrong[3] else ""
        return path, f"“{name}” must be {wanted}{_limit(wrong[2])}{got}."
    return path, f"“{name}” is not right: {said[:200].rstrip('.')}."


def _limit(words: str) -> str:
    """What msgspec says of sizes, without signs."""
    return (
        words.replace(">=", "of at least")
        .replace("<=", "of at most")
        .replace("of length of", "of length")
    )


def _path(text: str) -> Path:
    parts = re.findall(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]", text)
    return tuple(key if key else int(number) for key, number in parts if key or number)


def _kind_at(kind: Any, path: Path) -> Any:
    """The type of what stands at `path` in a struct; None if it is no struct's field."""
    for part in path:
        if isinstance(part, int):
            continue
        fields = get_type_hints(kind) if _is_struct(kind) else {}
        kind = next((one for one in _inside(fields.get(part)) if _is_struct(one)), fields.get(part))
    return kind


def _inside(hint: Any) -> list[Any]:
    """A type and all that it is made of."""
    return [hint, *(one for part in get_args(hint) for one in _inside(part))]


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _fields(kind: Any) -> list[str]:
    return list(kind.__struct_fields__) if _is_struct(kind) else []


def _literals(kind: Any, name: str | int) -> list[str]:
    hint = get_type_hints(kind).get(str(name)) if _is_struct(kind) else None
    found = [one for one in _inside(hint) if get_origin(one) is Literal]
    return [str(value) for one in found for value in get_args(one)]


class _Scanner:
    """Goes through TOML that is known to be valid, and notes the line of every value."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._ends = [place for place, letter in enumerate(text) if letter == "\n"]
        self.lines: dict[Path, int] = {}
        self.starts: dict[Path, int] = {}
        self._arrays: dict[Path, int] = {}

    def document(self) -> None:
        """All of it."""
        table: Path = ()
        while self._space():
            begin = self._line
            if self._text.startswith("[[", self._at):
                name = self._header(2)
                self._arrays[name] = self._arrays.get(name, -1) + 1
                table = (*name, self._arrays[name])
                self.lines.setdefault(name, begin)
                self.lines[table] = begin
            elif self._text[self._at] == "[":
                table = self._header(1)
                self.lines[table] = begin
            else:
                self._pair(table)

    @property
    def _line(self) -> int:
        return bisect.bisect_left(self._ends, self._at) + 1

    def _space(self) -> bool:
        """Skip what means nothing; False at the end."""
        found = re.compile(r"(?:[\s,]|#[^\n]*)*").match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at < len(self._text)

    def _header(self, brackets: int) -> Path:
        self._at += brackets
        path: Path = ()
        for part in self._key("]"):
            path = (*path, part)
            if path in self._arrays and len(path):
                path = (*path, self._arrays[path])
        self._at += brackets
        # The last array named is a new entry, not the one before.
        return path[:-1] if brackets == 2 and isinstance(path[-1], int) else path

    def _key(self, end: str) -> list[str]:
        """A dotted key, up to the character `end`."""
        parts: list[str] = []
        while self._text[self._at] != end:
            if self._text[self._at] in "\"'":
                begin = self._at
                self._string()
                parts.append(self._text[begin + 1 : self._at - 1])
            elif found := re.compile(r"[A-Za-z0-9_-]+").match(self._text, self._at):
                parts.append(found[0])
                self._at = found.end()
            else:
                self._at += 1
        return parts

    def _pair(self, table: Path) -> None:
        line = self._line
        path = table
        for part in self._key("="):
            path = (*path, part)
            self.lines.setdefault(path, line)
        self._at += 1
        self._value(path)

    def _value(self, path: Path) -> None:
        self._space()
        self.lines.setdefault(path, self._line)
        self.starts[path] = self._line
        opening = self._text[self._at]
        if opening in "\"'":
            triple = self._text.startswith(opening * 3, self._at)
            self.starts[path] += int(triple and self._text.startswith("\n", self._at + 3))
            self._string()
        elif opening == "[":
            self._at += 1
            number = 0
            while self._space() and self._text[self._at] != "]":
                self._value((*path, number))
                number += 1
            self._at += 1
        elif opening == "{":
            self._at += 1
            while self._space() and self._text[self._at] != "}":
                self._pair(path)
            self._at += 1
        else:
            found = _BARE.match(self._text, self._at)
            self._at = found.end() if found else len(self._text)

    def _string(self) -> None:
        mark = self._text[self._at]
        if self._text.startswith(mark * 3, self._at):
            body = r"(?:\\[\s\S]|(?!\"{3})[\s\S])*\"{3,5}" if mark == '"' else r"[\s\S]*?'{3,5}"
            start = self._at + 3
        else:
            body = r'(?:\\.|[^"\\\n])*"' if mark == '"' else r"[^'\n]*'"
            start = self._at + 1
        found = re.compile(body).match(self._text, start)
        self._at = found.end() if found else len(self._text)
