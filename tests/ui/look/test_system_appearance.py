"""The desktop's own wishes are followed, at the start and while they change, until one chooses."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication

from explorer.ui.look import system_appearance
from explorer.ui.look.appearance import SYSTEM, Appearance
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.system_appearance import SystemLook
from explorer.ui.look.theme import LIGHT, unit
from explorer.ui.settings.settings import Settings
from tests.ui.stage import WindowStage


class Boxed:
    """A value as D-Bus wraps it."""

    def __init__(self, value: object) -> None:
        self._value = value

    def variant(self) -> object:
        return self._value


@pytest.fixture
def desktop(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> SystemLook:
    monkeypatch.setattr(system_appearance, "_session_bus", lambda: False)
    return SystemLook()


def test_without_a_choice_the_desktops_colours_and_text_are_taken(
    qapp: QApplication, desktop: SystemLook, tmp_path: Path
) -> None:
    look = Appearance(qapp, Settings(tmp_path / "settings.ini"), system=desktop)
    assert look.choice == SYSTEM
    before = look.whole_scale
    seen: list[str] = []
    look.changed.connect(lambda: seen.append(look.theme.name))
    desktop.tell(system_appearance.SCHEME, Boxed(Boxed(1)))
    assert seen == ["dark"]
    desktop.tell(system_appearance.CONTRAST, Boxed(1))
    assert look.theme.name == "high_contrast"
    desktop.tell(system_appearance.CONTRAST, 0)
    desktop.tell(system_appearance.SCHEME, 2)
    assert look.theme.name == "light"
    desktop.tell(system_appearance.TEXT, 1.5)
    assert look.whole_scale == pytest.approx(1.5 * before, abs=1 / 13)  # whole pixels
    for nonsense in ("large", 400.0, None, -1.0):
        desktop.tell(system_appearance.TEXT, nonsense)
        assert look.whole_scale == before
    apply(qapp, LIGHT)


def test_a_choice_holds_against_the_desktop_and_can_be_given_back(
    qapp: QApplication, desktop: SystemLook, tmp_path: Path
) -> None:
    memory = Settings(tmp_path / "settings.ini")
    look = Appearance(qapp, memory, system=desktop)
    look.set_theme("light")
    desktop.tell(system_appearance.SCHEME, 1)
    assert look.theme.name == "light"
    look.set_theme(SYSTEM)
    assert look.theme.name == "dark"
    assert Appearance(qapp, memory, system=desktop).choice == SYSTEM
    with pytest.raises(KeyError):
        look.set_theme("pink")
    apply(qapp, LIGHT)


def test_a_larger_font_of_the_desktop_is_seen_when_it_comes(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = QFont()
    large.setPixelSize(26)
    before = unit(stage.window)
    monkeypatch.setattr(system_appearance.QFontDatabase, "systemFont", lambda _which: large)
    stage.app.sendEvent(stage.window, QEvent(QEvent.Type.ThemeChange))
    stage.paint()
    assert unit(stage.window) == pytest.approx(2 * before, rel=0.05)
    monkeypatch.undo()
    stage.app.sendEvent(stage.window, QEvent(QEvent.Type.ThemeChange))
    assert unit(stage.window) == before


def test_the_menu_offers_it_first_and_ticks_what_holds(stage: WindowStage) -> None:
    menu = next(m for m in stage.window.findChildren(type(stage.window._menus["view"]))
                if m.title() == "Theme")  # fmt: skip
    stage.look.set_theme(SYSTEM)
    menu.aboutToShow.emit()
    first, *others = menu.actions()
    assert first.text().replace("&", "") == "Follow the system"
    assert first.isChecked()
    assert not any(action.isChecked() for action in others)
    stage.look.set_theme("light")
