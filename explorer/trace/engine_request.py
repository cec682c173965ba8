"""What everything that is asked of the engine has."""

from __future__ import annotations

import msgspec


class Request(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of what may be asked; answers carry the same run number."""

    run: int = 0
