"""How a token is written on screen: nothing invisible, nothing guessed, nothing merged away.

Whitespace and control characters get a picture, formatting characters their name, and bytes that
are no whole character are written in hex: ⟨E4 BD⟩.  So a � on screen is always a U+FFFD that
really is in the text.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from explorer.figures.text.characters import elide, visible_text
from explorer.trace.step import Token

MOST_LETTERS = 400  # of a token; real vocabularies have none that long


@dataclass(frozen=True, slots=True)
class Label:
    """One token as it is written on screen.

    `first` and `last` are the slots whose bytes together spell `whole`, every character of which
    can be seen, too; a token that stands alone has first == last and an empty `whole`.
    """

    text: str
    special: bool
    partial: bool  # some bytes are no whole character by themselves
    first: int
    last: int
    whole: str = ""

    @property
    def quoted(self) -> str:
        """As `in_quotes`."""
        return in_quotes(self.text)


def in_quotes(text: str) -> str:
    """A token for sentences: in quotes, and kept from turning the reading order around."""
    return f"'\u2068{text}\u2069'"


def labels(tokens: Sequence[Token], first_slot: int = 0) -> tuple[Label, ...]:
    """One label per token, in slot order; characters spread over several tokens are grouped."""
    texts = [written(token) for token in tokens]
    groups = _groups(tokens)
    result = []
    for slot, (token, text) in enumerate(zip(tokens, texts, strict=True)):
        first, last, whole = groups.get(slot, (slot, slot, ""))
        first, last = first + first_slot, last + first_slot
        result.append(Label(text, token.special, _is_partial(token.raw), first, last, whole))
    return tuple(result)


def extended(
    before: Sequence[Token], known: Sequence[Label], tokens: Sequence[Token]
) -> tuple[Label, ...]:
    """The same as `labels(tokens)`, taking over what is known of the tokens `before`.

    A new token may complete a character that earlier ones began, so those are looked at again.
    """
    same = len(before)
    if tuple(tokens[:same]) != tuple(before):
        same = next(i for i, t in enumerate(before) if i >= len(tokens) or t != tokens[i])
    while same > 0 and _may_join(before[same - 1]):
        same -= 1
    return (*known[:same], *labels(tokens[same:], same))


def written(token: Token) -> str:
    """One token by itself, everything in it visible; an id if it has no bytes at all.

    Of a token with thousands of letters both ends: to draw them all would take seconds.
    """
    return elide(visible(token.raw), MOST_LETTERS) if token.raw else f"⟨id {token.id}⟩"


@lru_cache(maxsize=1 << 16)
def visible(raw: bytes) -> str:
    """Bytes as text in which every character can be seen, undecodable ones in hex."""
    parts = []
    for text, broken in _decoded(raw):
        parts.append(f"⟨{broken.hex(' ').upper()}⟩" if broken else visible_text(text))
    return "".join(parts)


def plain(text: str) -> str:
    """Text with every character visible; for strings that are not tokens."""
    return visible(text.encode("utf-8", "surrogatepass"))


def _decoded(raw: bytes) -> list[tuple[str, bytes]]:
    """Runs of (text, b"") and ("", undecodable bytes), in order."""
    runs: list[tuple[str, bytes]] = []
    at = 0
    while at < len(raw):
        try:
            runs.append((raw[at:].decode("utf-8"), b""))
            break
        except UnicodeDecodeError as error:
            good, bad = at + error.start, at + error.end
            if good > at:
                runs.append((raw[at:good].decode("utf-8"), b""))
            if runs and runs[-1][1] and good == at:
                runs[-1] = ("", runs[-1][1] + raw[good:bad])
            else:
                runs.append(("", raw[good:bad]))
            at = bad
    return runs


@lru_cache(maxsize=1 << 16)
def _is_partial(raw: bytes) -> bool:
    if raw.isascii():
        return False
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _groups(tokens: Sequence[Token]) -> dict[int, tuple[int, int, str]]:
    """Slot -> (first, last, characters) for tokens that spell characters only together."""
    found: dict[int, tuple[int, int, str]] = {}
    slot = 0
    while slot < len(tokens):
        if not _may_join(tokens[slot]):
            slot += 1
            continue
        end = slot
        while end < len(tokens) and _may_join(tokens[end]):
            end += 1
        for first, last, whole in _joined([token.raw for token in tokens[slot:end]]):
            for member in range(first, last + 1):
                found[slot + member] = (slot + first, slot + last, whole)
        slot = end
    return found


def _may_join(token: Token) -> bool:
    return not token.special and token.origin != "padding" and _is_partial(token.raw)


def _joined(pieces: list[bytes]) -> list[tuple[int, int, str]]:
    """Ranges of pieces that share characters, with those characters made visible.

    Characters are found over the whole run at once, so that a piece may end one and begin the
    next; ranges that touch in a piece become one.
    """
    ends = [0]
    for piece in pieces:
        ends.append(ends[-1] + len(piece))
    owner = [i for i, (a, b) in enumerate(pairwise(ends)) for _ in range(b - a)]
    ranges: list[tuple[int, int, str]] = []
    at = 0
    for text, broken in _decoded(b"".join(pieces)):
        if broken:
            at += len(broken)
            continue
        for c in text:
            size = len(c.encode("utf-8"))
            first, last = owner[at], owner[at + size - 1]
            at += size
            if first == last:
                continue
            if ranges and ranges[-1][1] == first:
                first, c = ranges[-1][0], ranges[-1][2] + c
                ranges.pop()
            ranges.append((first, last, c))
    return [(first, last, visible_text(whole)) for first, last, whole in ranges]


def decode(tokens: Sequence[Token]) -> str:
    """The text of many tokens at once, padding left out; half characters become U+FFFD."""
    return codecs.decode(b"".join(t.raw for t in tokens if t.origin != "padding"), errors="replace")


def find(text: str, written: Sequence[Label], after: int = -1) -> int | None:
    """The slot with this number, or the next one after `after` (round about) that shows `text`.

    A number that is no slot is looked for as text.  Spaces count as ␣.
    """
    if text.isdecimal() and int(text) < len(written):
        return int(text)
    wanted = visible(text.encode())
    count = len(written)
    order = [(after + 1 + i) % count for i in range(count)] if count else []
    return next((slot for slot in order if wanted in written[slot].text), None)
