"""A theme reaches every widget that takes one, once."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QScrollArea, QVBoxLayout, QWidget

from explorer.ui.look import themed
from explorer.ui.look.theme import DARK, LIGHT, Theme
from tests.ui.stage import WindowStage


class Canvas(QWidget):
    """Notes the themes that it is given, and hands them to what is inside, or not."""

    def __init__(self, parent: QWidget | None = None, hands_on: bool = True) -> None:
        super().__init__(parent)
        self.given: list[str] = []
        self._hands_on = hands_on

    def set_theme(self, theme: Theme) -> None:
        self.given.append(theme.name)
        if self._hands_on:
            themed.pass_on(self, theme)


def test_it_passes_through_whatever_takes_none(qapp: QApplication) -> None:
    root, area, page = QWidget(), QScrollArea(), QWidget()
    QVBoxLayout(root).addWidget(area)
    area.setWidget(page)
    deep = Canvas(page)
    deep.hide()
    themed.pass_on(root, DARK)
    themed.pass_on(root, LIGHT)
    assert deep.given == [DARK.name, LIGHT.name]


def test_who_takes_one_looks_after_what_is_inside(qapp: QApplication) -> None:
    root = QWidget()
    outer = Canvas(root)
    inner = Canvas(outer, hands_on=False)
    innermost = Canvas(inner)
    themed.pass_on(root, DARK)
    assert outer.given == inner.given == [DARK.name]
    assert innermost.given == []


def test_every_panel_of_the_window_gets_it_once(stage: WindowStage) -> None:
    added = [Canvas(panel) for panel in stage.window.docks.panels]
    stage.window.look.set_theme(DARK.name)
    assert [canvas.given for canvas in added] == [[DARK.name]] * len(added)
