"""What the table of actions asks of a window."""

from __future__ import annotations

from typing import Protocol

from explorer.session.session import Session
from explorer.ui.files.session_files import SessionFiles
from explorer.ui.frame.docks import Docks
from explorer.ui.frame.presenting.presenter import Presenter
from explorer.ui.lessons.lessons import Lessons
from explorer.ui.look.appearance import Appearance
from explorer.ui.settings.preferences import Preferences


class HelpPages(Protocol):
    """What explains the program and its terms."""

    def explain_focus(self) -> None: ...

    def show_glossary(self) -> None: ...

    def show_keys(self) -> None: ...

    def show_guide(self) -> None: ...


class ActionWindow(Protocol):
    """Its parts, and what it does by itself."""

    session: Session
    files: SessionFiles
    docks: Docks
    lessons: Lessons
    presenter: Presenter
    look: Appearance
    preferences: Preferences

    @property
    def help(self) -> HelpPages: ...

    def choose_model(self) -> None: ...

    def download_model(self) -> None: ...

    def run_or_pause(self) -> None: ...

    def go_along(self, by: int) -> None: ...

    def restart_engine(self) -> None: ...

    def go_to_token(self) -> None: ...

    def compare_mask(self) -> None: ...

    def compare_forms(self) -> None: ...

    def make_report(self) -> None: ...

    def copy_python(self) -> None: ...

    def save_notebook(self) -> None: ...

    def save_gif(self) -> None: ...

    def close_run(self) -> None: ...

    def close(self) -> bool: ...

    def reset_layout(self) -> None: ...

    def open_log(self) -> None: ...

    def about(self) -> None: ...
