"""Nothing invisible reaches the screen unmarked, whole or spread over tokens."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from explorer.figures.text.characters import printable, visible_text
from explorer.figures.text.tokens import labels, visible
from explorer.trace.step import Token

# Unicode's Default_Ignorable_Code_Point, which categories do not tell, and what is drawn blank.
IGNORABLE = [
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2065),
    *(*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164),
    *(*range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0, *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4)),
    *(*range(0x1D173, 0x1D17B), 0xE0001, 0xE0020, 0xE007F, *range(0xE0100, 0xE01F0), 0x2800),
]
SPACES = [
    code
    for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zs", "Zl", "Zp")
]
UNSEEN = sorted({*IGNORABLE, *SPACES})


def test_what_cannot_be_seen_is_marked() -> None:
    assert not [hex(code) for code in UNSEEN if chr(code) in visible_text(chr(code))]
    assert not [hex(code) for code in UNSEEN if chr(code) in visible_text(f"a{chr(code)}a")]


def test_what_cannot_be_seen_is_marked_too_where_two_tokens_spell_it() -> None:
    unmarked = []
    for code in UNSEEN:
        raw = chr(code).encode()
        for cut in range(1, len(raw)):
            found = labels([Token(0, raw[:cut]), Token(1, raw[cut:])])
            assert found[1].whole == visible(raw)
            if chr(code) in found[1].whole or not found[1].whole.strip():
                unmarked.append(hex(code))
    assert not unmarked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("R&D <b>model</b>", "R&D <b>model</b>"),
        ("\x1b]0;owned\x07\x1b[31mRED", "⟨ESC⟩]0;owned⟨BEL⟩⟨ESC⟩[31mRED"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("two\nlines\r", "two⟨LF⟩lines⟨CR⟩"),
        ("abc\u202efdp.exe", "abc⟨RLO⟩fdp.exe"),
        ("half \ud800", "half ⟨U+D800⟩"),
        ("a name: \u2068naïve 中\u2069", "a name: \u2068naïve 中\u2069"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_names_keep_their_letters_and_lose_their_powers(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_table_keeps_its_lines() -> None:
    assert printable("a\n\x1bb", keep="\n") == "a\n⟨ESC⟩b"
