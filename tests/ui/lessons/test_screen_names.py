"""The names that lessons may use are those of what the window has."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QApplication

from explorer.lessons import screen_names
from explorer.ui.lessons import targets
from explorer.ui.look.theme import MAX_SCALE, MIN_SCALE, THEMES
from tests.ui.lessons.classroom import Classroom


def test_the_window_has_what_lessons_name_and_no_more(qapp: QApplication, tmp_path: Path) -> None:
    room = Classroom(qapp, tmp_path)
    try:
        window = room.window
        parts = targets.WindowParts(
            window.docks, window.topbar, window.sequence, window.prompt, window.sampling,
            window.stops, window.presenter.show_settings,
        )  # fmt: skip
        docks = [dock.place.id for dock in parts.docks.docks]
        assert set(screen_names.PANELS) == set(docks)
        hideable = {name for name, *_ in targets.covered(parts)}
        assert set(screen_names.HIDEABLE) == hideable
        assert set(screen_names.CONTROLS) == targets.names(parts)
    finally:
        room.close()
    assert set(screen_names.THEMES) == set(THEMES)
    assert (screen_names.LEAST_ZOOM, screen_names.MOST_ZOOM) == (MIN_SCALE, MAX_SCALE)
