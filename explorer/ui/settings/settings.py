"""What the program remembers between two starts: layout, look, recent files, last session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QByteArray, QSettings

from explorer import places
from explorer.session.state import State
from explorer.trace.request import RunRequest, Sampling

RECENT = 10


class LastSession(msgspec.Struct, frozen=True):
    """What was set when the program was closed, and where its run is."""

    request: RunRequest
    sampling: Sampling
    file: str = ""  # .dxt; empty = there was no run


class KnownEngine(msgspec.Struct, frozen=True):
    """An engine of the user's: what it is called, and the command that starts it."""

    name: str
    command: str


class Settings:
    """An ini file in the data folder; damaged or foreign values read as if never set."""

    def __init__(self, path: Path | None = None) -> None:
        file = path or places.data_folder() / "settings.ini"
        self.fresh = not file.exists()  # nobody has used the program here before
        self._settings = QSettings(str(file), QSettings.Format.IniFormat)
        self.last_run = file.with_name("last-session.dxt")  # where it is kept if it is in no file

    def text(self, key: str, default: str = "") -> str:
        value = self._settings.value(key, default)
        return value if isinstance(value, str) else default

    def number(self, key: str, default: float) -> float:
        try:
            return float(str(self._settings.value(key, default)))
        except ValueError:
            return default

    def blob(self, key: str) -> QByteArray:
        value = self._settings.value(key, QByteArray())
        return value if isinstance(value, QByteArray) else QByteArray()

    def put(self, key: str, value: str | float | QByteArray) -> None:
        self._settings.setValue(key, value)

    def recent(self) -> list[str]:
        """Models and files opened lately, the latest first."""
        try:
            found = json.loads(self.text("recent", "[]"))
        except ValueError:
            return []
        return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []

    def form_of(self, name: str) -> str:
        """How this .gguf file was opened last, see `request.Form`; empty = its usual form."""
        return self._forms().get(name, "")

    def keep_form(self, name: str, form: str) -> None:
        """Remember it, the last few."""
        others = {other: of for other, of in self._forms().items() if other != name}
        kept = {**({name: form} if form else {}), **others}
        self.put("forms", json.dumps(dict(list(kept.items())[:RECENT])))

    def _forms(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(self.text("forms", "{}"), type=dict[str, str])
        except msgspec.DecodeError:
            return {}

    def engines(self) -> list[KnownEngine]:
        """The user's own engines, in the order in which they were added."""
        try:
            return msgspec.json.decode(self.text("engines", "[]"), type=list[KnownEngine])
        except msgspec.DecodeError:
            return []

    def keep_engines(self, engines: list[KnownEngine]) -> None:
        self.put("engines", _encode(engines))

    def chosen_engine(self) -> str:
        """The command of the engine that was chosen last; empty: this program's own."""
        return self.text("engine")

    def add_recent(self, name: str) -> None:
        others = [item for item in self.recent() if item != name]
        self.put("recent", json.dumps([name, *others][:RECENT]))

    def drop_recent(self, name: str) -> None:
        """It can't be opened any more."""
        self.put("recent", json.dumps([item for item in self.recent() if item != name]))

    def remember_session(self, state: State, file: str = "") -> None:
        last = LastSession(state.request, state.sampling, file)
        self.put("last_session", _encode(last))

    def last_session(self) -> LastSession | None:
        try:
            return msgspec.json.decode(self.text("last_session"), type=LastSession)
        except (msgspec.DecodeError, ValueError):
            return None

    def sync(self) -> None:
        """Write to disk now."""
        self._settings.sync()


def _encode(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, ValueError):  # a lone surrogate in the prompt
        return ""
