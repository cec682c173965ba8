"""Words of the glossary on screen: dotted, of the same size as plain ones, and described."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QCheckBox, QLabel, QLineEdit, QWidget

from explorer.ui.glossary.labels import TermBox, TermLabel, known, term_of
from explorer.ui.kit.elided import ElidedLabel
from explorer.ui.kit.term_elided import TermElided
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import HIGH_CONTRAST, LIGHT, Theme
from tests.ui.painted import pixels


def made(kind: str, term: str) -> QWidget:
    if kind == "label":
        return TermLabel("Temperature", term)
    if kind == "box":
        return TermBox("Greedy", term)
    label = TermElided(term) if term else ElidedLabel()
    label.setText("Layer 1 · head 2")
    return label


@pytest.fixture(params=[LIGHT, HIGH_CONTRAST], ids=lambda theme: theme.name)
def theme(qapp: QApplication, request: pytest.FixtureRequest) -> Iterator[Theme]:
    apply(qapp, request.param)
    yield request.param
    apply(qapp, LIGHT)


@pytest.mark.parametrize("kind", ["label", "box", "elided"])
@pytest.mark.parametrize("leftward", [False, True])
def test_dots_lie_under_the_words_and_change_nothing_else(
    theme: Theme, kind: str, leftward: bool
) -> None:
    plain, dotted = made(kind, ""), made(kind, "temperature")
    for widget in (plain, dotted):
        if leftward:
            widget.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    assert dotted.sizeHint() == plain.sizeHint()
    assert dotted.minimumSizeHint() == plain.minimumSizeHint()
    for widget in (plain, dotted):
        widget.resize(220, widget.sizeHint().height())
    differ = (pixels(plain) != pixels(dotted)).reshape(plain.height(), 220, -1).any(axis=2)
    rows, columns = np.nonzero(differ)
    words = dotted.words_area()  # type: ignore[attr-defined]
    assert words.left() <= columns.min() <= words.left() + 2
    assert words.right() - 3 <= columns.max() <= words.right() + 1
    assert np.ptp(rows) <= 1
    assert rows.min() > words.center().y()


def test_a_screen_reader_hears_the_explanation_with_the_word_and_its_control(
    qapp: QApplication,
) -> None:
    text = known().terms["seed"].text
    label, field = TermLabel("Seed", term="seed"), QLineEdit()
    field.setToolTip("The same seed gives the same tokens.")
    label.setBuddy(field)
    assert label.accessibleDescription() == text
    assert field.accessibleDescription() == f"The same seed gives the same tokens. {text}"
    assert term_of(field) == (field, "seed")


def test_a_word_that_is_in_no_glossary_is_a_plain_label(qapp: QApplication) -> None:
    for label in (TermLabel("Colour"), TermLabel("Colour", term="no such term")):
        label.resize(label.sizeHint())
        plain = QLabel("Colour")
        plain.resize(label.size())
        assert (pixels(label) == pixels(plain)).all()
        assert term_of(label) is None
    assert TermBox("Chat").sizeHint() == QCheckBox("Chat").sizeHint()
