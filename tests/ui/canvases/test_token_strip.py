"""Tokens as boxes: one per slot, told apart by form, walked by mouse and keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QAccessible, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.trace.step import Origin, Token
from explorer.ui.access.accessible import line_of
from explorer.ui.canvases.tokens.token_box import paint_box
from explorer.ui.canvases.tokens.token_strip import TokenStrip
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import HIGH_CONTRAST, LIGHT
from tests.ui import pointer
from tests.ui.waiting import settle, show


@pytest.fixture
def strip(qapp: QApplication) -> Iterator[TokenStrip]:
    apply(qapp, LIGHT)
    strip = TokenStrip(LIGHT)
    strip.resize(400, 100)
    show(strip)
    yield strip
    strip.deleteLater()
    qapp.sendPostedEvents(strip, QEvent.Type.DeferredDelete.value)


def _tokens(*pieces: bytes, origin: Origin = "prompt") -> list[Token]:
    return [Token(i, piece, origin) for i, piece in enumerate(pieces)]


def _many(count: int) -> list[Token]:
    return _tokens(*(f" word{i}".encode() for i in range(count)))


def _picture(strip: TokenStrip, slot: int = 0) -> QImage:
    return strip.grab(strip.box_rect(slot).toRect().adjusted(-3, -3, 3, 3)).toImage()


def test_equal_tokens_each_have_a_box(strip: TokenStrip) -> None:
    strip.set_tokens(_tokens(b" the", b" the", b" the"))
    corners = {(box.left, box.row) for box in strip.boxes}
    assert len(corners) == 3


@pytest.mark.usefixtures("qapp")
def test_the_byte_stands_before_its_character_whichever_way_that_is_written() -> None:
    def drawn(text: str) -> QImage:
        image = QImage(120, 24, QImage.Format.Format_RGB32)
        image.fill(0)
        painter = QPainter(image)
        token = Token(0, b"\x95")
        paint_box(painter, QRectF(image.rect()), 3, token, text, LIGHT, 1)
        painter.end()
        return image

    left_to_right_mark = "\u200e"
    assert drawn("⟨95⟩ ו") == drawn(f"{left_to_right_mark}⟨95⟩ ו")


def test_boxes_wrap_and_never_overlap(strip: TokenStrip) -> None:
    strip.set_tokens(_many(60))
    rects = [strip.box_rect(slot) for slot in range(60)]
    assert len({box.row for box in strip.boxes}) > 3
    for i, a in enumerate(rects):
        assert a.right() <= strip.viewport().width()
        assert not any(a.intersects(b) for b in rects[i + 1 :])


def test_a_huge_token_fits_the_strip(strip: TokenStrip) -> None:
    strip.set_tokens(_tokens(b"x" * 5000, b"y"))
    assert strip.box_rect(0).right() <= strip.viewport().width()


@pytest.mark.parametrize("theme", [LIGHT, HIGH_CONTRAST], ids=lambda t: t.name)
def test_origins_differ_in_form_not_only_in_colour(strip: TokenStrip, theme: object) -> None:
    """Drawn with the same colours for all four, they still look different."""
    from dataclasses import replace

    one = replace(theme, generated=theme.prompt, forced=theme.prompt, padding=theme.prompt)  # type: ignore
    strip.set_theme(one)
    pictures = []
    for origin in ("prompt", "generated", "forced", "padding"):
        strip.set_tokens([Token(0, b" word", origin)])  # type: ignore[arg-type]
        pictures.append(_picture(strip))
    for i, picture in enumerate(pictures):
        assert all(picture != other for other in pictures[i + 1 :])


def test_a_special_token_differs_from_text_that_looks_like_one(strip: TokenStrip) -> None:
    strip.set_tokens([Token(0, b"<s>", special=True)])
    special = _picture(strip)
    strip.set_tokens([Token(0, b"<s>", special=False)])
    assert _picture(strip) != special


def test_tokens_not_read_yet_are_faint(strip: TokenStrip) -> None:
    strip.set_tokens(_many(3), read=3)
    full = _picture(strip, 2)
    strip.set_tokens(_many(3), read=2)
    assert _picture(strip, 2) != full
    assert "not read yet" in strip.words(2)
    assert "not read yet" not in strip.words(1)


def test_tokens_of_one_character_touch_and_the_last_shows_it(strip: TokenStrip) -> None:
    strip.set_tokens(_tokens(b"a", b"\xe4\xbd", b"\xa0", b"b"))
    assert strip.box_rect(1).right() == pytest.approx(strip.box_rect(2).left())
    assert strip.box_rect(0).right() < strip.box_rect(1).left()
    assert strip.texts == ("a", "⟨E4 BD⟩", "⟨A0⟩ 你", "b")
    assert "1 to 2 together spell 你" in strip.words(1)


def test_a_token_that_completes_a_character_changes_those_before(strip: TokenStrip) -> None:
    strip.set_tokens(_tokens(b"a", b"\xe4\xbd"))
    assert strip.box_rect(0).right() < strip.box_rect(1).left()
    strip.set_tokens(_tokens(b"a", b"\xe4\xbd", b"\xa0"))
    assert strip.texts[2] == "⟨A0⟩ 你"
    assert strip.box_rect(1).right() == pytest.approx(strip.box_rect(2).left())


def test_growing_and_shrinking_is_laying_out_anew(strip: TokenStrip) -> None:
    strip.set_tokens(_many(90))
    strip.set_tokens(_many(50))
    strip.set_tokens(_many(70))
    grown = strip.boxes
    strip.set_tokens([])
    strip.set_tokens(_many(70))
    assert strip.boxes == grown


def test_it_stays_at_the_end_unless_one_has_scrolled_back(strip: TokenStrip) -> None:
    strip.set_tokens(_many(100))
    bar = strip.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    strip.set_tokens(_many(200))
    assert bar.value() == bar.maximum()
    bar.setValue(0)
    strip.set_tokens(_many(300))
    assert bar.value() == 0


def test_a_replaced_token_is_drawn_anew(strip: TokenStrip) -> None:
    strip.resize(400, 700)
    tokens = _many(200)
    strip.set_tokens(tokens)
    strip.verticalScrollBar().setValue(0)
    before = _picture(strip, 3)
    strip.set_tokens([*tokens[:3], Token(9, b" WORD3", "forced"), *tokens[4:]])
    assert _picture(strip, 3) != before
    assert strip.texts[3] == "␣WORD3"


@pytest.mark.parametrize("count", [100, 400])
def test_kept_rows_look_as_freshly_drawn_ones(strip: TokenStrip, count: int) -> None:
    """Above some hundred boxes rows are kept as pictures; nothing may show of that."""
    strip.resize(400, 900)
    strip.set_tokens(_many(count))
    kept = strip.grab().toImage()
    strip._rows.outdate(-1, 0)
    assert strip.grab().toImage() == kept


def test_hover_and_click(strip: TokenStrip) -> None:
    strip.set_tokens(_many(4))
    hovered: list[object] = []
    picked: list[int] = []
    strip.hovered.connect(hovered.append)
    strip.picked.connect(picked.append)
    pointer.move(strip.viewport(), strip.box_rect(2).center().toPoint())
    QTest.mouseClick(
        strip.viewport(), Qt.MouseButton.LeftButton, pos=strip.box_rect(1).center().toPoint()
    )
    QApplication.sendEvent(strip.viewport(), QEvent(QEvent.Type.Leave))
    assert hovered[0] == 2
    assert hovered[-1] is None
    assert picked == [1]


def test_keys_walk_scroll_and_pick(strip: TokenStrip) -> None:
    strip.set_tokens(_many(100))
    strip.set_marks(10)
    picked: list[int] = []
    strip.picked.connect(picked.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left):
        QTest.keyClick(strip, key)
    assert strip.over == 11
    assert strip.viewport().rect().contains(strip.box_rect(11).center().toPoint())
    row = strip.boxes[11].row
    QTest.keyClick(strip, Qt.Key.Key_Down)
    assert strip.boxes[strip.over].row == row + 1
    QTest.keyClick(strip, Qt.Key.Key_End)
    assert strip.over == 99
    QTest.keyClick(strip, Qt.Key.Key_Home)
    QTest.keyClick(strip, Qt.Key.Key_Return)
    assert picked == [0]
    assert line_of(strip).startswith("position 0: ")


def test_copy_gives_the_text_itself(strip: TokenStrip) -> None:
    pad = Token(9, b"<pad>", "padding")
    strip.set_tokens([pad, *_tokens(b"Hi ", b"\xe4\xbd", b"\xa0")])
    QTest.keyClick(strip, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == "Hi 你"


def test_words_tell_id_bytes_and_origin(strip: TokenStrip) -> None:
    strip.set_tokens([Token(3021, b" Paris", "forced")])
    words = strip.words(0)
    assert "position 0" in words
    assert "id 3021" in words
    assert "20 50 61 72 69 73" in words
    assert "chosen by you" in words


def test_zooming_the_program_enlarges_the_boxes(qapp: QApplication, strip: TokenStrip) -> None:
    strip.set_tokens(_many(5))
    before = strip.box_rect(0)
    apply(qapp, LIGHT, 2.0)
    settle()
    assert strip.box_rect(0).height() > 1.5 * before.height()
    assert strip.box_rect(0).width() > 1.5 * before.width()


def test_a_screen_reader_finds_a_list(strip: TokenStrip) -> None:
    face = QAccessible.queryAccessibleInterface(strip)
    assert face.role() == QAccessible.Role.List


def test_a_strip_that_grew_looks_like_one_shown_at_once(
    strip: TokenStrip, qapp: QApplication
) -> None:
    """Rows are kept as pictures, and a new token is painted on the last of them."""
    made = _many(60)
    for count in range(20, 61):
        strip.set_tokens(made[:count], read=count - 1)
        strip.set_marks(count - 1, count % 7)
        settle()
    grown = strip.grab().toImage()
    strip.set_theme(LIGHT)  # forgets the pictures
    assert strip.grab().toImage() == grown


def test_a_token_that_is_added_costs_no_other_box(
    strip: TokenStrip, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _many(60)
    strip.set_tokens(made[:40], read=39)
    strip.grab()
    painted = _watched_boxes(strip, monkeypatch)
    strip.set_tokens(made[:41], read=40)
    strip.grab()
    assert set(painted) <= {39, 40}


def test_the_same_tokens_once_more_cost_no_box(
    strip: TokenStrip, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a run hands them over again."""
    strip.set_tokens(_many(60), read=59)
    strip.grab()
    painted = _watched_boxes(strip, monkeypatch)
    strip.set_tokens(_many(60), read=59)
    strip.grab()
    assert not painted


def _watched_boxes(strip: TokenStrip, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The slots whose boxes are painted from now on."""
    painted: list[int] = []
    paint = strip._paint_box
    monkeypatch.setattr(
        strip, "_paint_box", lambda painter, slot: (painted.append(slot), paint(painter, slot))
    )
    return painted


def test_the_end_stays_in_view_when_everything_grows(qapp: QApplication, strip: TokenStrip) -> None:
    strip.set_tokens(_many(60))
    bar = strip.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    before = bar.maximum()
    apply(qapp, LIGHT, 1.6)
    settle()
    assert bar.value() == bar.maximum() > before
