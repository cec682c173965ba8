"""Every question about the inside of a model."""

from __future__ import annotations

from explorer.trace.inside.lens import ReadLens

AnyInside = ReadLens
