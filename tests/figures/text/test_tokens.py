"""Tokens on screen: everything visible, nothing merged, half characters told from U+FFFD."""

from __future__ import annotations

import pytest

from explorer.figures.text import tokens as figures
from explorer.figures.text.characters import elide
from explorer.figures.text.tokens import labels, plain, visible, written
from explorer.trace.step import Token


def _tokens(*pieces: bytes) -> list[Token]:
    return [Token(i, piece) for i, piece in enumerate(pieces)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" Paris", "␣Paris"),
        ("a  5 b", "a␣␣5␣b"),
        ("x\n\n\n7", "x↵↵↵7"),
        ("\tif", "⇥if"),
        ("\r\n", "⟨CR⟩↵"),
        ("\0\x13\x1b", "⟨NUL⟩⟨DC3⟩⟨ESC⟩"),
        ("\x7f", "⟨DEL⟩"),
        ("\u0085", "⟨U+0085⟩"),
        ("\u00a0x", "⟨NBSP⟩x"),
        ("\u3000", "⟨U+3000⟩"),
        ("\u200b", "⟨ZWSP⟩"),
        ("\ufeffx", "⟨BOM⟩x"),
        ("a\u202eb", "a⟨RLO⟩b"),
        ("\u2066", "⟨LRI⟩"),
        ("\u0301", "◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\ue000", "⟨U+E000⟩"),
        ("你好", "你好"),
        ("🙂", "🙂"),
        ("🫨", "🫨"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("👍🏽", "👍🏽"),
        ("\u200d", "⟨ZWJ⟩"),
        ("a\u200db", "a⟨ZWJ⟩b"),
        ("שלום", "שלום"),
        ("\ufffd", "\ufffd"),
    ],
)
def test_every_character_can_be_seen(text: str, shown: str) -> None:
    assert visible(text.encode()) == shown
    assert plain(text) == shown


def test_undecodable_bytes_are_hex_and_a_real_replacement_character_is_not() -> None:
    assert visible(b"\xe4\xbd") == "⟨E4 BD⟩"
    assert visible(b"x\xe4") == "x⟨E4⟩"
    assert visible(b"\xa0y") == "⟨A0⟩y"
    assert visible(b"\xff\xfe") == "⟨FF FE⟩"
    assert visible("\ufffd".encode()) == "\ufffd"
    assert visible(b"\xef\xbf") == "⟨EF BF⟩"


def test_a_lone_surrogate_is_bytes_not_a_crash() -> None:
    assert plain("\ud800") == "⟨ED A0 80⟩"


def test_a_character_over_three_tokens_is_one_group() -> None:
    found = labels(_tokens(b"hi ", b"\xf0\x9f", b"\x99", b"\x82", b" ok"))
    assert [label.text for label in found] == ["hi␣", "⟨F0 9F⟩", "⟨99⟩", "⟨82⟩", "␣ok"]
    assert [(label.first, label.last, label.whole) for label in found] == [
        (0, 0, ""),
        (1, 3, "🙂"),
        (1, 3, "🙂"),
        (1, 3, "🙂"),
        (4, 4, ""),
    ]
    assert [label.partial for label in found] == [False, True, True, True, False]


def test_tokens_that_end_one_character_and_begin_the_next_make_one_group() -> None:
    found = labels(_tokens(b"\xe4\xbd", b"\xa0\xe5", b"\xa5\xbd"))
    assert {(label.first, label.last, label.whole) for label in found} == {(0, 2, "你好")}


def test_two_characters_that_do_not_touch_stay_two_groups() -> None:
    found = labels(_tokens(b"\xe4\xbd", b"\xa0", b"\xe5\xa5", b"\xbd"))
    assert [(label.first, label.last, label.whole) for label in found] == [
        (0, 1, "你"),
        (0, 1, "你"),
        (2, 3, "好"),
        (2, 3, "好"),
    ]


def test_bytes_that_never_become_a_character_make_no_group() -> None:
    found = labels(_tokens(b"\xe4", b"\xe4\xbd", b"x"))
    assert all(label.first == label.last and not label.whole for label in found)


def test_special_and_padding_tokens_never_join_a_character() -> None:
    tokens = [Token(0, b"\xe4\xbd"), Token(1, b"\xa0", special=True), Token(2, b"\xa0", "padding")]
    assert all(not label.whole for label in labels(tokens))


def test_duplicates_stay() -> None:
    assert [label.text for label in labels(_tokens(b" the", b" the", b" the"))] == ["␣the"] * 3


def test_special_tokens_are_marked_and_look_alikes_are_not() -> None:
    special, text = labels(
        [Token(2, b"<|im_end|>", special=True), Token(9, b"<|im_end|>", special=False)]
    )
    assert (special.special, text.special) == (True, False)


def test_an_id_without_bytes_is_named_by_its_number() -> None:
    assert written(Token(50300, b"")) == "⟨id 50300⟩"


def test_elided_labels_keep_both_ends_and_their_length() -> None:
    assert elide("short", 8) == "short"
    long = elide("internationalisation", 9)
    assert long == "inte…tion"
    assert len(elide("x" * 500, 12)) == 12
    assert elide("abc", 1) == "…"
    assert "\u200d" not in elide("👨\u200d👩\u200d👧" * 3, 5)


def test_quoting_keeps_right_to_left_text_in_its_place() -> None:
    (label,) = labels(_tokens("שלום".encode()))
    assert label.quoted == "'\u2068שלום\u2069'"


def test_text_of_many_tokens_leaves_padding_out() -> None:
    tokens = [Token(0, b"<pad>", "padding"), Token(1, b"\xe4\xbd"), Token(2, b"\xa0!")]
    assert figures.decode(tokens) == "你!"


PIECES = [b"a", b"\xf0\x9f", b"\x99", b"\x82", b"\xe4\xbd", b"\xa0\xe5", b"\xa5\xbd", b" ok"]


@pytest.mark.parametrize("known", range(len(PIECES) + 1))
@pytest.mark.parametrize("now", range(len(PIECES) + 1))
def test_extending_is_labelling_anew(known: int, now: int) -> None:
    tokens = _tokens(*PIECES)
    before = tokens[:known]
    assert figures.extended(before, labels(before), tokens[:now]) == labels(tokens[:now])


def test_extending_notices_a_replaced_token() -> None:
    before, after = _tokens(b"a", b"b", b"c"), _tokens(b"a", b"x", b"c", b"d")
    assert figures.extended(before, labels(before), after) == labels(after)


def test_a_token_is_found_by_number_or_by_what_it_shows() -> None:
    written = figures.labels([Token(i, raw) for i, raw in enumerate((b" a", b"7", b" a", b"\n"))])
    assert figures.find("2", written) == 2
    assert figures.find("7", written) == 1, "no slot 7: looked for as text"
    assert figures.find(" a", written, after=0) == 2
    assert figures.find("a", written, after=2) == 0
    assert figures.find("\n", written) == 3
    assert figures.find("zebra", written) is None
    assert figures.find("a", ()) is None
