"""What each question of a run is called where llama.cpp does not answer it."""

from __future__ import annotations

from explorer.trace.experiments import CheckInputs, Experiment
from explorer.trace.inside.attribution import Attribute
from explorer.trace.inside.structure import ReadStructure
from explorer.trace.inside.walk import WalkLayer

_NAMES: dict[type[Experiment], str] = {
    CheckInputs: "A padded batch",
    Attribute: "The attribution of a token's logit",
    ReadStructure: "The picture of the model",
    WalkLayer: "The walk through a layer",
}


def of(asked: Experiment) -> str:
    """To begin a sentence with."""
    return _NAMES.get(type(asked), f"{type(asked).__name__}")
