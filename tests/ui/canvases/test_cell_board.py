"""A board of words: what is read and picked, how it zooms, and what it marks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.figures.drawing.board import BoardCell, CellsFigure
from explorer.ui.access.accessible import line_of
from explorer.ui.canvases.tokens.cell_board import CellBoard
from explorer.ui.look.theme import THEMES
from tests.ui.waiting import settle, show


@pytest.fixture
def board(qapp: QApplication) -> Iterator[CellBoard]:
    board = CellBoard(THEMES["light"])
    board.resize(400, 200)
    board.show_figure(figure(49, 30))
    show(board)
    yield board
    board.close()
    board.deleteLater()


def figure(rows: int, columns: int) -> CellsFigure:
    return CellsFigure(
        rows=[f"r{row}" for row in range(rows)],
        columns=[f"t{column}" for column in range(columns)],
        cell=lambda row, column: None if column == 3 else BoardCell("same", row / rows),
        words=lambda row, column: f"cell {row} {column}",
    )


def test_the_first_row_is_at_the_bottom(board: CellBoard) -> None:
    assert board.cell_rect((0, 0)).top() > board.cell_rect((48, 0)).top()
    assert board.cell_rect((48, 0)).top() == 0


def test_a_click_picks_the_cell_under_it(board: CellBoard) -> None:
    told: list[tuple[int, int]] = []
    board.picked.connect(lambda row, column: told.append((row, column)))
    place = board.cell_rect((46, 2)).center().toPoint()
    QTest.mouseClick(board.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert told == [(46, 2)]
    assert board.tip_at(place) == "cell 46 2"


def test_keys_read_every_cell_and_bring_it_into_view(board: CellBoard) -> None:
    board.set_selected(48, 0)
    board.setFocus()
    told: list[tuple[int, int]] = []
    board.picked.connect(lambda row, column: told.append((row, column)))
    for key in (Qt.Key.Key_End, *[Qt.Key.Key_PageDown] * 5):
        QTest.keyClick(board, key)
    assert line_of(board) == "cell 0 29"
    assert board.viewport().rect().contains(board.cell_rect((0, 29)).center().toPoint())
    QTest.keyClick(board, Qt.Key.Key_Return)
    assert told == [(0, 29)]


def test_zoom_goes_from_all_in_view_to_large_cells(board: CellBoard) -> None:
    usual = board.cell_rect((0, 0)).height()
    board.fit()
    corners = (board.cell_rect((0, 0)), board.cell_rect((48, 29)))
    assert all(board.viewport().rect().contains(c.center().toPoint()) for c in corners)
    settle()
    board.fit()
    assert board.cell_rect((0, 0)).height() == usual
    for _ in range(20):
        board.zoom(1.25)
    assert board.cell_rect((0, 0)).height() == pytest.approx(3 * usual)
    settle()


def test_what_is_selected_comes_into_view(board: CellBoard) -> None:
    board.set_selected(48, 0)
    board.set_selected(48, 29)
    assert board.viewport().rect().contains(board.cell_rect((48, 29)).center().toPoint())
    board.set_selected(0, 29)
    assert board.viewport().rect().contains(board.cell_rect((0, 29)).center().toPoint())


def test_a_smaller_board_forgets_the_cell_that_was_read(board: CellBoard) -> None:
    board.setFocus()
    QTest.keyClick(board, Qt.Key.Key_End)
    board.show_figure(figure(3, 2))
    assert board.current is None
    board.show_figure(figure(0, 0))
    assert line_of(board) == ""
    settle()


def test_a_board_that_shows_all_goes_on_doing_so_until_it_is_zoomed(board: CellBoard) -> None:
    board.show_all()
    settle()
    corner = board.cell_rect((0, 29))
    assert corner.right() <= board.viewport().width()
    board.show_figure(figure(12, 5))
    assert board.zoomed > board.viewport().height() / (49 * 19)
    top, last = board.cell_rect((11, 0)), board.cell_rect((0, 4))
    assert top.top() == 0
    assert last.bottom() <= board.viewport().height()
    board.zoom(1.25)
    before = board.zoomed
    board.show_figure(figure(49, 30))
    assert board.zoomed == before


def test_the_names_of_the_columns_stand_right_under_few_rows(board: CellBoard) -> None:
    board.show_figure(figure(2, 4))
    settle()
    image = board.viewport().grab().toImage()
    ground = image.pixel(image.width() - 2, image.height() - 2)

    def written(first: int, last: int) -> bool:
        rows = range(first, min(last, image.height()))
        return any(image.pixel(x, y) != ground for y in rows for x in range(image.width()))

    end = round(board.cell_rect((0, 0)).bottom())
    assert written(end + 2, end + 24)
    assert not written(end + 40, image.height())
