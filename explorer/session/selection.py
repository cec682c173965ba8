"""What is looked at: as it was asked for, and what that means in the run on screen."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.figures.attention import map_blocks
from explorer.figures.attention.map_request import HeadInStep
from explorer.trace.comparison import Comparison, is_first
from explorer.trace.step import Step
from explorer.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is looked at; shared by all panels, so that hovering in one lights up the others."""

    step: int | None = None  # None = the latest
    layer: int = 0
    head: int = 0
    query: int | None = None  # slot; None = the readout of the selected step
    key: int | None = None  # slot under the cursor, if any
    token_id: int | None = None  # a row of the next-token chart under the cursor


@dataclass(frozen=True, slots=True)
class Shown(HeadInStep):
    """The selection resolved: every index lies within the run on screen."""

    query: int  # slot whose row is read
    key: int | None  # slot under the cursor
    other: Comparison | None  # the same step's other side, if it has run

    @property
    def layers(self) -> int:
        """L, layers without attention included."""
        return map_blocks.layer_count(self.trace, self.step)

    def heads_of(self, layer: int) -> int:
        """H of a layer; the most that any layer has where it has none of its own."""
        return _heads(self.trace, self.step, layer)

    @property
    def chosen_id(self) -> int | None:
        """The token that the step chose, if its own position is looked at."""
        step = self.last_pass
        return step.draw.token_id if self.query == step.readout else None

    @property
    def sides(self) -> tuple[Step | None, Step | None]:
        """The step with the mask and without it, in float32 and as it is, or without
        interventions and with them.

        None where that has not run.
        """
        sides = self.last_pass, None if self.other is None else self.other.step
        first = is_first(self.trace.request, "mask" if self.other is None else self.other.of)
        return sides if first else sides[::-1]


def resolve(trace: Trace, step: int, selection: Selection, other: Comparison | None) -> Shown:
    """What is shown of this step; a model opened later may have fewer layers or heads."""
    layer = min(selection.layer, map_blocks.layer_count(trace, step) - 1)
    most = _heads(trace, step, layer)
    query = trace.steps[step].readout if selection.query is None else selection.query
    return Shown(
        trace,
        step,
        layer,
        min(selection.head, max(most - 1, 0)),
        min(query, trace.read_slots(step) - 1),
        selection.key,
        other if other is not None and other.fits(trace, step) else None,
    )


def _heads(trace: Trace, step: int, layer: int) -> int:
    records = trace.steps[step].layers
    heads = records[layer].heads if layer < len(records) else 0
    return heads or max((record.heads for record in records), default=1)
