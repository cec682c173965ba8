"""Where models that were opened lie, kept in the data folder of this machine.

A saved run names its model and tells its fingerprint, never a path: this is how the model is found
again.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from explorer import places
from explorer.engine import kept_json
from explorer.trace.card import ModelCard
from explorer.trace.fingerprint import Fingerprint, same_weights

_KEPT = 200  # models, the newest


class OpenedModel(msgspec.Struct, frozen=True):
    """One model, as it was opened last."""

    name: str
    path: str
    fingerprint: Fingerprint
    form: str = ""


def remember(card: ModelCard) -> None:
    """Note where a model lies; a disk that is full or read-only costs nothing but that."""
    known = _read()
    place = OpenedModel(card.name, card.path, card.fingerprint, card.form)
    if not card.path or known[:1] == [place]:
        return
    key = place.path, place.form
    rest = [other for other in known if (other.path, other.form) != key]
    kept_json.write_if_possible(_file(), [place, *rest][:_KEPT])


def find(name: str, like: Fingerprint | None = None) -> Path | None:
    """A model of this name that was opened before and is still there.

    `like`: only one that cannot be told from this fingerprint.
    """
    for place in _read():
        alike = like is None or same_weights(place.fingerprint, like)
        if place.name == name and alike and _is_there(Path(place.path)):
            return Path(place.path)
    return None


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _file() -> Path:
    return places.data_folder() / "model-places.json"


def _read() -> list[OpenedModel]:
    return kept_json.read(_file(), list[OpenedModel]) or []
