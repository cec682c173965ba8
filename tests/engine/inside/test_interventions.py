"""What is shown of the inside of a model is of the run asked for, interventions included."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.engine.callbacks import nobody
from explorer.engine.errors import BadInput
from explorer.engine.inside import attribution, lens, residual
from explorer.engine.inside.walk import layer_walk
from explorer.trace.inside.attribution import Attribute
from explorer.trace.inside.lens import ReadLens
from explorer.trace.inside.stream import ReadStream
from explorer.trace.inside.walk import WalkLayer
from explorer.trace.interventions.kinds import Cells, Intervention, OtherRun, Patch, Scale, Silence
from explorer.trace.request import RunRequest
from tests.engine.experiments.batches import PROMPTS, runner_of

OTHER = OtherRun(tokens=tuple(5 + 7 * i % 83 for i in range(8)))
CHANGES = {
    "head": Silence(layer=1, head=2),
    "mean": Silence(layer=1, head=2, by="mean"),
    "mlp": Silence(layer=1, part="mlp"),
    "layer": Silence(layer=1, part="layer"),
    "cut": Cells(layer=1, head=0, keys=(0, 0)),
    "scale": Scale(factor=2.0),
    "patched head": Patch(layer=1, head=2, positions=(1, 3), first=2, source=OTHER),
}


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_everything_still_adds_up(kind: str, change: Intervention) -> None:
    runner = runner_of(kind)
    request = RunRequest(prompt=PROMPTS[4], interventions=(change,))
    assert lens.read(runner, ReadLens(request=request), nobody).final_gap == 0
    assert residual.read(runner, ReadStream(request=request), nobody).gap < 2e-5
    made = layer_walk.walk(runner, WalkLayer(request=request, layer=1), nobody)
    assert made.residual_gap is not None
    assert made.residual_gap < 2e-5
    assert all((stage.gap or 0) < 1e-4 for stage in made.stages)
    found = attribution.attribute(runner, Attribute(request=request), nobody)
    assert found.gap < 1e-4 * max(1.0, abs(found.wanted))
    silent = {(part.kind, part.head) for part in found.parts if part.layer == 1 and part.value == 0}
    assert (("head", 2) in silent) == (change == CHANGES["head"])
    assert (("mlp", None) in silent) == (change in (CHANGES["mlp"], CHANGES["layer"]))
    assert (("attention", None) in silent) == (change == CHANGES["layer"])


@pytest.mark.parametrize("part", ["mlp", "stream"])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_what_comes_from_another_run_is_no_sum_of_this_ones_parts(kind: str, part: Any) -> None:
    runner = runner_of(kind)
    patch = Patch(layer=1, part=part, positions=(2, 2), first=3, source=OTHER)
    request = RunRequest(prompt=PROMPTS[4], interventions=(patch,))
    assert lens.read(runner, ReadLens(request=request), nobody).final_gap == 0
    with pytest.raises(BadInput, match="of layer 1 is patched in this run"):
        residual.read(runner, ReadStream(request=request), nobody)
    with pytest.raises(BadInput, match="of layer 1 is patched in this run"):
        attribution.attribute(runner, Attribute(request=request), nobody)
    with pytest.raises(BadInput, match="of layer 1 is patched in this run"):
        layer_walk.walk(runner, WalkLayer(request=request, layer=1), nobody)
    other = layer_walk.walk(runner, WalkLayer(request=request, layer=0), nobody)
    assert other.residual_gap is not None
    assert other.residual_gap < 2e-5
