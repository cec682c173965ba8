"""One token through the layers: the probability of the final choice, entropy and KL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from PySide6.QtWidgets import QWidget

from explorer.figures.inside import lens as figures
from explorer.figures.inside.lens import LensColumn, LensColumns
from explorer.figures.text.tokens import written
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.marks import Figure, Line, Paint
from explorer.ui.look.theme import Theme
from explorer.ui.panel.layer_charts import LayerCharts
from explorer.ui.panels.lens import words
from explorer.wording import exact_percent, in_unit, information, round_percent, unit


class LensCharts(LayerCharts):
    """Probabilities on the left, entropy and KL on the right."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._known = LensColumns()
        self._column: LensColumn | None = None

    def names(self) -> tuple[str, str]:
        return self.tr("Probability by layer"), self.tr("Entropy and KL by layer")

    def show_column(
        self, known: LensColumns, column: LensColumn | None, headline: str, marked: int | None
    ) -> None:
        """Draw one token; `marked` is the row that is selected."""
        self._known, self._column = known, column
        self.show_rows(known.rows, column, headline, marked)

    def first(self, column: LensColumn, marked: int | None) -> Figure:
        lines = (
            Line(self.tr("final choice"), self.places, column.final_share.astype(np.float64),
                 Paint("prefill"), 2.0, "round"),
            Line(self.tr("best of the row"), self.places, column.shares[:, 0].astype(np.float64),
                 Paint("raw"), 1.2, "ring"),
        )  # fmt: skip
        return self.figure(lines, Axis(self.tr("probability"), round_percent), (0.0, 1.06), marked)

    def second(self, column: LensColumn, marked: int | None) -> Figure:
        scale = in_unit(figures.nats(1.0))
        lines = (
            Line(self.tr("entropy"), self.places, column.entropy_bits * scale, Paint("decode"),
                 2.0, "round"),
            Line(self.tr("KL to the final row"), self.places, column.kl_bits * scale,
                 Paint("recompute"), 2.0, "square"),
        )  # fmt: skip
        top = max(float(line.y.max(initial=0.0)) for line in lines) or 1.0
        up = Axis(self.tr("information"), lambda value: f"{value:g} {unit()}")
        return self.figure(lines, up, (0.0, top * 1.06), marked)

    def first_tip(self, row: int) -> str:
        column = self._column
        assert column is not None
        best, share = self._known.top(column, row)[0]
        return self.tr("{0}: final choice {1}, best {2} {3}").format(
            words.row_words(self._known.rows[row]),
            exact_percent(float(column.final_share[row])),
            written(best), exact_percent(share),
        )  # fmt: skip

    def second_tip(self, row: int) -> str:
        column = self._column
        assert column is not None
        return self.tr("{0}: entropy {1}, KL {2}").format(
            words.row_words(self._known.rows[row]),
            information(figures.nats(float(column.entropy_bits[row]))),
            information(figures.nats(float(column.kl_bits[row]))),
        )

    def table(self) -> Iterator[Sequence[object]]:
        """Every row of the token that is shown."""
        yield "row", "final_probability", "final_rank", "entropy_bits", "kl_to_final_bits"
        column = self._column
        for row, name in enumerate(() if column is None else self._known.rows):
            assert column is not None
            yield (
                name, float(column.final_share[row]), int(column.final_rank[row]),
                float(column.entropy_bits[row]), float(column.kl_bits[row]),
            )  # fmt: skip
