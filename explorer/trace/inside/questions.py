"""Every question about the inside of a model."""

from __future__ import annotations

from explorer.trace.inside.attribution import Attribute
from explorer.trace.inside.heads import SweepHeads
from explorer.trace.inside.lens import ReadLens
from explorer.trace.inside.stream import ReadStream
from explorer.trace.inside.structure import ReadStructure
from explorer.trace.inside.walk import WalkLayer

AnyInside = ReadLens | ReadStream | Attribute | SweepHeads | WalkLayer | ReadStructure
