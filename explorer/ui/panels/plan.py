"""Plan: the memory that a model takes here or on GPUs, from its config alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtWidgets import QHeaderView, QLineEdit, QPushButton, QWidget

from explorer.figures.cost import model_plan as figures
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.cost.model_plan import MOST_BATCH, MOST_GPUS, DevicePlan, ModelPlan
from explorer.trace.wire.messages import PlanModel
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.column_chart import ColumnChart, Columns, Part
from explorer.ui.canvases.charts.marks import LegendEntry
from explorer.ui.kit import forms
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.panel import Panel, View
from explorer.wording import bytes_text, short_bytes

_DTYPES = ("float32", "bfloat16", "float16")
_MOST_SPIN, _MOST_MEMORY, _MOST_SPEED = 10_000_000, 100_000, 100_000
_COLOURS = ("final", "decode", "recompute", "rest")  # of weights, cache, activations, captured
_WIDTHS = {"model": 150, "tokens": 92, "batch": 64, "gpus": 60, "memory": 70, "speed": 74}
"""Pixels at a zoom of 1."""


class PlanPanel(Panel):
    """Needs no model to be open: a config.json is enough."""

    ID = "plan"
    BESIDE = "attention"
    TITLE = QT_TRANSLATE_NOOP("PlanPanel", "Plan")
    EXPLANATION = QT_TRANSLATE_NOOP(
        "PlanPanel", "Memory that a model takes here or on GPUs, computed from its config"
    )
    NEEDS = ("model_plan", "model_plan_problem", "planning", "opened", "status.activity")

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._shown: ModelPlan | None = None
        self.model = QLineEdit()
        self.model.setAccessibleName(self.tr("Model to plan for"))
        self.model.setToolTip(
            self.tr("A model's name, folder or .gguf file, a config.json, or GPT-1, GPT-2, GPT-3")
        )
        self.model.returnPressed.connect(self._run)
        self.tokens = forms.spin(self.tr("Tokens of each sequence"), 1, _MOST_SPIN, 1024)
        self.tokens.setGroupSeparatorShown(True)
        self.batch = forms.spin(self.tr("Sequences in the batch"), 1, MOST_BATCH, 1)
        self.gpus = forms.spin(self.tr("GPUs; 0 = this machine"), 0, MOST_GPUS, 0)
        self.memory = forms.spin(self.tr("Memory of each GPU in GB"), 1, _MOST_MEMORY, 24)
        self.speed = forms.spin(
            self.tr("Memory bandwidth of each GPU in GB/s; 0 = not known"), 0, _MOST_SPEED, 0
        )
        self.dtype = ComboBox()
        self.dtype.addItems(_DTYPES)
        self.dtype.setAccessibleName(self.tr("Number format of weights and cache"))
        self.button = QPushButton(self.tr("Plan"))
        self.button.clicked.connect(self._run)
        self.gpus.valueChanged.connect(self._show_gpus)
        self.row = forms.row(
            (self.tr("model"), self.model), (self.tr("tokens"), self.tokens),
            (self.tr("batch"), self.batch), ("", self.dtype), (self.tr("GPUs"), self.gpus),
            (self.tr("GB each"), self.memory), (self.tr("GB/s"), self.speed), ("", self.button),
        )  # fmt: skip
        self.words = forms.words()
        along, up = (
            Axis(self.tr("device"), whole=True),
            Axis(self.tr("memory"), short_bytes, binary=True),
        )
        self.chart = ColumnChart(theme, along, up, self._tip)
        self.chart.setAccessibleName(self.tr("Memory of each device, by part"))
        self.table = forms.table(self.tr("Memory of each device"), len(self._heads()))
        fitted = QHeaderView.ResizeMode.ResizeToContents
        self.table.horizontalHeader().setSectionResizeMode(fitted)
        self.content.addLayout(self.row)
        self.content.addWidget(self.words)
        self.content.addWidget(self.table, 1)
        self.content.addWidget(self.chart, 2)
        self._show_gpus()

    def _heads(self) -> list[str]:
        return [
            self.tr("device"), self.tr("fits"), self.tr("total"), self.tr("weights"),
            self.tr("cache"), self.tr("activations"), self.tr("captured"), self.tr("layers"),
        ]  # fmt: skip

    # -- showing

    def draw(self, new: State) -> None:
        if not self.model.text() and new.opened:
            self.model.setText(new.opened[0].model)
        self.button.setEnabled(not new.planning and new.status.activity not in ("starting", "lost"))
        self._narrow()
        plan = new.model_plan
        if plan is not self._shown:
            self._shown = plan
            self._draw()
        if new.planning:
            self.words.setText(self.tr("Working out the plan…"))
        elif new.model_plan_problem:
            self.words.setText(new.model_plan_problem)
        else:
            self.words.setText(self._sentences())
        self.table.setVisible(plan is not None)
        self.chart.setVisible(plan is not None)
        self.show_content()

    def _show_gpus(self) -> None:
        for spin in (self.memory, self.speed):
            spin.setEnabled(self.gpus.value() > 0)

    def _sentences(self) -> str:
        plan = self._shown
        if plan is None:
            return self.tr("Choose a model and press Plan. Its weights are not needed.")
        total = figures.UNKNOWN if plan.total_bytes is None else bytes_text(plan.total_bytes)
        said = [
            f"{figures.headline(plan)}.",
            self.tr("In all {0}; KV cache: {1}.").format(
                total, figures.cache_kinds(plan) or figures.UNKNOWN
            ),
            figures.bound(plan),
            *filter(None, map(figures.split_bound, plan.splits)),
            *(one.reason for one in plan.splits if one.reason),
            *plan.not_known,
        ]
        return " ".join(said)

    def _draw(self) -> None:
        plan = self._shown
        devices = () if plan is None else plan.devices
        rows = [figures.device_row(one) for one in devices]
        cells = [
            (_name(one), fits, total, *parts, layers)
            for one, (_, layers, *parts, total, fits) in zip(devices, rows, strict=True)
        ]
        forms.fill(self.table, self._heads(), cells)
        names = (self.tr("weights"), self.tr("cache"), self.tr("activations"), self.tr("captured"))
        parts = [
            Part(name, np.array([float(_parts(one)[i]) for one in devices]), _COLOURS[i])
            for i, name in enumerate(names)
        ]
        room = next((one.memory_bytes for one in devices if one.memory_bytes), None)
        on_gpus = plan is not None and bool(plan.splits)
        self.chart.set_columns(
            Columns(
                np.array([float(sum(_parts(one))) for one in devices]),
                parts=parts,
                level=float(room) if room and on_gpus else None,
                level_words=self.tr("memory of a GPU"),
                first=1,
                named={float(i): _name(one) for i, one in enumerate(devices, 1)},
                legend=[
                    LegendEntry(name, colour) for name, colour in zip(names, _COLOURS, strict=True)
                ],
            )
        )

    def _tip(self, place: int) -> str:
        assert self._shown is not None
        one = self._shown.devices[place]
        weights, cache, activations, captured = map(short_bytes, _parts(one))
        return self.tr(
            "{0}, {1} split: weights {2}, cache {3}, activations {4}, captured {5}"
        ).format(one.device, one.split, weights, cache, activations, captured)

    def _narrow(self) -> None:
        for name, wide in _WIDTHS.items():
            getattr(self, name).setFixedWidth(round(wide * unit(self)))

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._narrow()

    # -- wishes

    def _run(self) -> None:
        gpus = self.gpus.value()
        self.session.models.plan(
            PlanModel(
                model=self.model.text().strip(),
                tokens=self.tokens.value(),
                batch=self.batch.value(),
                dtype=self.dtype.currentText(),
                gpus=gpus,
                gpu_memory=self.memory.value() * 10**9 if gpus else 0,
                bytes_per_second=self.speed.value() * 1e9 if gpus else 0.0,
            )
        )

    # -- export

    def views(self) -> Mapping[str, View]:
        if self._shown is None:
            return {}
        return {self.tr("Memory of each device"): View(self.chart, self._rows)}

    def _rows(self) -> Iterator[Sequence[object]]:
        yield ("split", "device", "first_layer", "last_layer", "weights_bytes", "cache_bytes",
               "activation_bytes", "captured_bytes", "total_bytes", "fits")  # fmt: skip
        for one in () if self._shown is None else self._shown.devices:
            yield (one.split, one.device, one.layers[0], one.layers[1] - 1, one.weights_bytes,
                   one.cache_bytes, one.activation_bytes, one.captured_bytes, one.total_bytes,
                   one.fits)  # fmt: skip


def _name(device: DevicePlan) -> str:
    """ "tensor GPU 0"; "this machine" where nothing is shared out."""
    return device.device if device.split == "whole" else f"{device.split} {device.device}"


def _parts(device: DevicePlan) -> tuple[int, int, int, int]:
    """Weights, cache, activations, captured; what is not known counts as nothing."""
    return (
        device.weights_bytes,
        device.cache_bytes or 0,
        device.activation_bytes or 0,
        device.captured_bytes,
    )
