"""Characters that cannot be seen, or that act on what shows them, written so that they can be.

Whitespace and control characters get a picture, formatting characters their name: ␣ ⟨ESC⟩ ⟨ZWSP⟩.
"""

from __future__ import annotations

import re
import unicodedata

_PICTURES = {" ": "␣", "\n": "↵", "\t": "⇥"}
_MEANT = str.maketrans({picture: c for c, picture in _PICTURES.items()})
# Names, not pictures such as ␀: few fonts have those, and at this size nobody can read them.
_CONTROL = (
    *("NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR"),
    *("SO", "SI", "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB"),
    *("ESC", "FS", "GS", "RS", "US"),
)
_NAMES = {
    **{chr(code): name for code, name in enumerate(_CONTROL)},
    "\x7f": "DEL",
    "\u00a0": "NBSP",
    "\u00ad": "SHY",
    "\u034f": "CGJ",
    "\u061c": "ALM",
    "\u200b": "ZWSP",
    "\u200c": "ZWNJ",
    "\u200d": "ZWJ",
    "\u200e": "LRM",
    "\u200f": "RLM",
    "\u2028": "LSEP",
    "\u2029": "PSEP",
    "\u202a": "LRE",
    "\u202b": "RLE",
    "\u202c": "PDF",
    "\u202d": "LRO",
    "\u202e": "RLO",
    "\u2060": "WJ",
    "\u2066": "LRI",
    "\u2067": "RLI",
    "\u2068": "FSI",
    "\u2069": "PDI",
    "\ufe0e": "VS15",
    "\ufe0f": "VS16",
    "\ufeff": "BOM",
}
_HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}
_EMOJI = range(0x1F000, 0x1FB00)  # newer ones are unknown to Python's tables, not unassigned
# What Unicode lets a program draw as nothing, or as a space, and which its categories do not tell.
_BLANK_RANGES = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065)),
    *((0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8)),
    *((0x16FE4, 0x16FE4), (0x13441, 0x13446), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
    (0xE0000, 0xE0FFF),
)
_BLANK = {chr(code) for first, last in _BLANK_RANGES for code in range(first, last + 1)}
# These turn reading order around, break lines or drive a terminal.  Isolates (FSI, PDI) keep a
# name from doing so, and joiners belong to the spelling of some languages: both stay.
_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2067\u206a-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\u115f\u1160\u2800\u3164\uffa0\U000e0000-\U000e0fff]"
)


def visible_text(text: str) -> str:
    """Text in which every character can be seen, for what is looked at letter by letter."""
    if text.isascii() and text.isprintable():
        return text.replace(" ", "␣")
    return "".join(_character(text, i) for i in range(len(text)))


def from_pictures(text: str) -> str:
    """What a user typed, the pictures of whitespace read as what they stand for."""
    return text.translate(_MEANT)


def _character(text: str, i: int) -> str:
    c = text[i]
    if c in _PICTURES:
        return _PICTURES[c]
    if _belongs_to_neighbours(text, i):
        return c
    if c in _NAMES:
        return _mark(c)
    category = unicodedata.category(c)
    if category in _HIDDEN and not (category == "Cn" and ord(c) in _EMOJI):
        return _mark(c)
    if c in _BLANK:
        return _mark(c)
    if i == 0 and category in ("Mn", "Me"):
        return "◌" + c
    return c


def _belongs_to_neighbours(text: str, i: int) -> bool:
    """True for the joiners and selectors that make one picture of an emoji sequence."""
    if i == 0:
        return False
    before = text[i - 1]
    if text[i] in "\ufe0e\ufe0f":
        return unicodedata.category(before) in ("So", "Sk", "Sm", "Nd", "Po", "Cn")
    if text[i] == "\u200d":
        pictured = unicodedata.category(before) in ("So", "Sk", "Cn") or before == "\ufe0f"
        return pictured and i + 1 < len(text) and unicodedata.category(text[i + 1]) in ("So", "Cn")
    return False


def printable(text: str, keep: str = "") -> str:
    """Names and sentences from elsewhere: spaces stay spaces, whatever acts is a mark.

    `keep` are characters that may act all the same, such as the line breaks of a table.
    """
    if text.isascii() and text.isprintable():
        return text
    return _ACTING.sub(lambda m: m[0] if m[0] in keep else _mark(m[0]), text)


def _mark(c: str) -> str:
    return f"⟨{_NAMES.get(c) or f'U+{ord(c):04X}'}⟩"


def elide(text: str, most: int) -> str:
    """At most `most` characters, the cut marked in the middle: both ends tell tokens apart."""
    if len(text) <= most:
        return text
    head = most // 2
    tail = most - 1 - head
    return _cut_end(text[:head]) + "…" + _cut_start(text[len(text) - tail :] if tail else "")


def _cut_end(text: str) -> str:
    # A combining mark or a joiner left dangling would attach to the ellipsis.
    while text and text[-1] == "\u200d":
        text = text[:-1]
    return text


def _cut_start(text: str) -> str:
    while text and (unicodedata.combining(text[0]) or text[0] in "\u200d\ufe0e\ufe0f"):
        text = text[1:]
    return text
