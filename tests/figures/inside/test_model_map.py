"""The rows of the picture: outside the layers, the layer that is lit, and what each part took."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from explorer.figures.inside import model_map
from tests.figures.inside.structures import structure
from tests.session.scripted import made_step


def test_the_picture_runs_from_the_embedding_through_one_layer_to_the_softmax() -> None:
    kinds = [part.kind for part in model_map.parts(structure(), None, 0)]
    assert kinds == [
        "embedding", "norm", "attention", "norm", "mlp", "final norm", "head", "softmax",
    ]  # fmt: skip
    other = [part.kind for part in model_map.parts(structure(), None, 1)]
    assert other[1:4] == ["norm", "attention", "experts"]
    assert model_map.block_numbers(structure()) == [0, 1]


def test_a_part_has_the_time_of_its_own_clock_alone() -> None:
    step = replace(
        made_step(0), embedding_ms=0.5, attention_ms=np.array([2.0, 3.0], np.float32),
        mlp_ms=np.array([np.nan, 4.0], np.float32),
    )  # fmt: skip
    first = {part.kind: part.ms for part in model_map.parts(structure(), step, 0)}
    assert (first["embedding"], first["attention"], first["mlp"]) == (0.5, 2.0, None)
    assert first["norm"] is first["head"] is None
    second = {part.kind: part.ms for part in model_map.parts(structure(), step, 1)}
    assert (second["attention"], second["experts"]) == (3.0, 4.0)


def test_every_part_names_a_panel_and_stands_in_the_table() -> None:
    parts = list(model_map.parts(structure(), None, 0))
    panels = {part.panel for part in parts}
    assert panels == {"stream", "lens", "attention", "block", "next-token"}
    rows = list(model_map.table(parts))
    assert rows[3] == ("attention", "attn", 0, "ln1", True, "8", 16, 64, "")
