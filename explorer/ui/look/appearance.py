"""Theme and size of everything, changed at run time and remembered."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QLocale, QObject, QSize, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from explorer.ui.look import apply_theme, text_size
from explorer.ui.look.system_appearance import SystemLook
from explorer.ui.look.theme import BASE_FONT_PX, MAX_SCALE, MIN_SCALE, THEMES, Theme
from explorer.ui.settings.settings import Settings

SYSTEM = "system"  # the choice of no theme: as the desktop asks
ZOOM_STEP = 1.1
BACK_ROW_PX = 24  # no text is smaller in presenter mode
BACK_ROW_LINES = 30  # and on a large screen it is as high as this part of the screen
MOST_FOR_A_CLASS = 1.5  # times that
_ZOOMS = {False: "zoom", True: "presenter_zoom"}  # how they are remembered
ROUNDING = 0.97  # fonts come in whole pixels, so that sizes do not grow quite evenly


class Appearance(QObject):
    """Applies theme and zoom to the application; `changed` tells what paints itself."""

    changed = Signal()

    def __init__(
        self,
        app: QApplication,
        memory: Settings,
        parent: QObject | None = None,
        room: QSize | None = None,
        dressed: bool = True,
        system: SystemLook | None = None,
    ) -> None:
        """`room` is the size of the screen; None = ask for it.  Not `dressed`: `dress` follows.

        `system`: what the desktop asks for; None = find it out.
        """
        super().__init__(parent)
        self.system = system or SystemLook(self)
        self.system.changed.connect(self._follow_system)
        self._dressed = dressed
        self._room = room
        self._applied = 1.0
        self._shown = "", 1.0, 0  # theme, zoom and least text
        self.needs: Callable[[], QSize] | None = None  # least size of the window as it is now
        self._app = app
        QLocale.setDefault(_numbers())
        self._memory = memory
        self.choice = memory.text("theme")  # a theme's name
        if self.choice not in THEMES:
            self.choice = SYSTEM
        # A class sits farther away than oneself: each mode has a zoom of its own.
        self._scales = {on: _remembered(memory, name) for on, name in _ZOOMS.items()}
        self.presenting = False
        self._apply()

    @property
    def theme(self) -> Theme:
        """The colours on screen."""
        return THEMES[self.system.theme if self.choice == SYSTEM else self.choice]

    @property
    def scale(self) -> float:
        """The zoom that was chosen in this mode."""
        return self._scales[self.presenting]

    @scale.setter
    def scale(self, scale: float) -> None:
        self._scales[self.presenting] = scale

    @property
    def whole_scale(self) -> float:
        """The zoom on screen: presenter mode included.

        Never so large that parts fall off, and for a class never too small for the back row.
        """
        wanted, most = self.scale * self._base, min(self._largest(), self._most)
        if self.presenting:
            least = self._back_row_px / BASE_FONT_PX
            wanted, most = max(wanted, least), max(most, least)
        # Fonts come in whole pixels: sizes between two of them would differ by nothing one sees.
        return min(round(BASE_FONT_PX * wanted), int(BASE_FONT_PX * most + 1e-6)) / BASE_FONT_PX

    @property
    def _base(self) -> float:
        """What a zoom of 1 stands for."""
        text = self.system.text
        return max(text, self._back_row_px / BASE_FONT_PX) if self.presenting else text

    @property
    def _back_row_px(self) -> int:
        """The least text of presenter mode on this screen."""
        high = 0 if self._room is None else self._room.height()
        return max(BACK_ROW_PX, round(high / BACK_ROW_LINES))

    @property
    def _most(self) -> float:
        """No zoom is larger."""
        class_ = MOST_FOR_A_CLASS * self._back_row_px / BASE_FONT_PX
        return max(MAX_SCALE, class_) if self.presenting else MAX_SCALE

    def dress(self) -> None:
        """Put the style sheet on, once everything is built that it is to reach."""
        self._dressed = True
        apply_theme.dress(self._app, self.theme, self._applied)

    def set_theme(self, name: str) -> None:
        """A theme by its name, or `SYSTEM`: whatever the desktop asks for, also later."""
        self.show_theme(name)
        self._memory.put("theme", name)

    def show_theme(self, name: str) -> None:
        """Until the program is closed; the next start has the user's own again."""
        if name != SYSTEM and name not in THEMES:
            raise KeyError(name)
        self.choice = name
        self._apply()

    def _follow_system(self) -> None:
        if self._wanted(self.whole_scale) != self._shown:
            self._apply()

    def zoom(self, direction: int) -> None:
        """One notch larger (+1) or smaller (-1); 0 = normal size."""
        wanted = self.scale * ZOOM_STEP**direction if direction else 1.0
        most = min(self._largest(), self._most) / self._base
        least = self._back_row_px / BASE_FONT_PX / self._base if self.presenting else MIN_SCALE
        self.scale = max(min(round(wanted, 3), most), least)
        self._memory.put(_ZOOMS[self.presenting], self.scale)
        self._apply()

    def show_zoom(self, scale: float) -> None:
        """Until the program is closed; never smaller than the user's own choice."""
        own = _remembered(self._memory, _ZOOMS[self.presenting])
        self.scale = min(max(scale, own), MAX_SCALE)
        self.fit()

    def present(self, on: bool, room: QSize) -> None:
        """Larger, on a screen of this size."""
        self.presenting = on
        self._room = room
        self._apply()

    def fit(self) -> None:
        """Take the size again, after what the window needs has changed."""
        if self.whole_scale != self._applied:
            self._apply()

    def _largest(self) -> float:
        """The zoom at which the whole window just fits the screen; 1 at the least."""
        room, screen = self._room, QGuiApplication.primaryScreen()
        if self.needs is None or (room is None and screen is None):
            return MAX_SCALE
        room = room or screen.availableSize()
        least = self.needs()
        fits = min(room.width() / least.width(), room.height() / least.height())
        return max(1.0, self._applied * fits * ROUNDING)

    def _apply(self) -> None:
        # What the window needs does not grow exactly with the zoom: measured again, it may be
        # that a little less fits.
        text_size.set_least(*([self._back_row_px] if self.presenting else []))
        most = self._most + 1
        while (scale := self.whole_scale) < most and self._wanted(scale) != self._shown:
            most = scale
            apply_theme.apply(self._app, self.theme, scale, self._dressed)
            self._applied = scale
            self._shown = self._wanted(scale)
            self.changed.emit()

    def _wanted(self, scale: float) -> tuple[str, float, int]:
        """What is to be on screen: theme, zoom and least text."""
        return self.theme.name, scale, text_size.least_px()


def _numbers() -> QLocale:
    """How every field writes numbers: as all other text of the window does, 1234.5.

    In the desktop's own way one field would say 0,7 beside a chart that says 92.5 %.
    """
    locale = QLocale(QLocale.Language.English, QLocale.Country.UnitedStates)
    locale.setNumberOptions(
        QLocale.NumberOption.OmitGroupSeparator | QLocale.NumberOption.RejectGroupSeparator
    )
    return locale


def _remembered(memory: Settings, name: str) -> float:
    return min(max(memory.number(name, 1.0), MIN_SCALE), MAX_SCALE)
