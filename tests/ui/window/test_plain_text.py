"""Names, tokens and errors are text, whatever they hold: every label, tip, entry and title."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QTextDocumentFragment
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QLabel,
    QTabBar,
    QToolTip,
    QWidget,
)

from explorer.trace.card import Capability, Check, SelfCheck
from explorer.trace.found_models import Offer
from explorer.trace.step import Token
from explorer.trace.wire import messages as m
from tests.hostile import ACTS, MARKUP, TEXT, WORD, poisoned
from tests.session.scripted import PROMPT, card, stepped
from tests.trace.batches import result, row
from tests.ui.dialogs.test_model_picker import FOUND
from tests.ui.dialogs.test_model_picker import row as model_row
from tests.ui.panels.test_model import RECIPE
from tests.ui.stage import WindowStage

LONGEST = 400  # letters without a break, such as a whole path in a tip
Text = tuple[QWidget | QAction, str]


def fill(stage: WindowStage, text: str) -> None:
    """Put the text wherever one can come from outside."""
    window, session = stage.window, stage.session
    window._memory.add_recent(f"/models/{text}")
    window.files.recentChanged.emit()
    session.start_engine()
    session.open_model(f"/models/tiny{text}")
    session.set_prompt(text[:2000])
    known = card(
        source="from files", bos_policy="none", pad_note="none", warnings=("careful",),
        capabilities=(Capability(name="undo", offered=False, words="not here"),),
    )  # fmt: skip
    stage.say(m.Loaded(run=stage.engine.last(m.Load).run, card=poisoned(known, text)))
    session.step(3)
    run = stage.engine.last(m.Advance).run
    stage.say(m.Prompted(run=run, tokens=tuple(_named(token, text) for token in PROMPT)))
    for index in range(3):
        made = stepped(run, index)
        top = tuple(_named(token, text) for token in made.step.top)
        step = replace(made.step, top=top, note=text)
        stage.say(m.Stepped(run=run, step=step, token=_named(made.token, text)))
    stage.say(m.Finished(run=run, reason="end token"))
    check = Check(name=text, passed=False, measured=1.0, tolerance=0.5, note=text)
    run = stage.engine.last(m.CheckTrace).run
    stage.say(m.Checked(run=run, check=check), m.Finished(run=run, reason="done"))
    session.select(step=1)
    session.force(20)
    session.rename_branch(1, text)
    for dock in window.docks.docks:
        window.docks.bring_up(dock.place.id)
    stage.paint()
    recipe = {**RECIPE, "model": text, "recipe": [text], "kv_bytes_per_token": {text: 3}}
    stage.say(m.Facts(run=stage.engine.last(m.Inspect).run, facts=recipe))
    run_batch(stage, text)
    open_dialogs(stage, text)
    fail(stage, text)
    stage.until_settled()


def _named(token: Token, text: str) -> Token:
    return msgspec.structs.replace(token, raw=token.raw + text.encode())


def run_batch(stage: WindowStage, text: str) -> None:
    panel = stage.window.docks.bring_up("padding")
    panel.run_button.click()  # type: ignore[attr-defined]
    asked = stage.engine.last(m.RunBatch)
    done = poisoned(result(row(2), row(4), request=asked.batch), text)
    stage.say(m.Batched(run=asked.run, result=done))


def open_dialogs(stage: WindowStage, text: str) -> None:
    window = stage.window
    window.choose_model()
    found = {
        **FOUND,
        "models": [model_row(f"m{text}", 1000, source=text, dtype=text, architecture=text)],
        "folders": [f"/{text}"],
        "offline": "",
    }
    stage.say(m.Facts(run=stage.engine.last(m.FindModels).run, facts=found))
    window.download_model()
    stage.session.downloads.look(f"someone/{text}")
    offer = Offer(repo=f"someone/{text}", form=text, forms=((text, 3), ("b", 4)), bytes=7)
    facts = msgspec.to_builtins(offer)
    stage.say(m.Facts(run=stage.engine.last(m.LookOnHub).run, facts=facts))
    window.topbar._fill_menu()


def fail(stage: WindowStage, text: str) -> None:
    stage.session.open_model(f"/models/own{text}")
    run = stage.engine.last(m.Load).run
    stage.say(m.Failed(run=run, sentence=text, own_code=(f"{text}.py",)))
    stage.session.open_model(f"/models/no{text}")
    stage.say(m.Failed(run=stage.engine.last(m.Load).run, sentence=f"No: {text}", details=text))


def texts(window: QWidget) -> Iterator[Text]:
    """Everything written, or told on hover, of a window and all that belongs to it."""
    for widget in (window, *window.findChildren(QWidget)):
        widget.ensurePolished()
        yield widget, widget.toolTip()
        yield widget, widget.windowTitle()
        yield widget, widget.accessibleName()
        yield widget, widget.accessibleDescription()
        if isinstance(widget, QLabel):
            yield widget, _read(widget)
        elif isinstance(widget, QAbstractButton):
            yield widget, widget.text()
        elif isinstance(widget, QTabBar):
            yield from ((widget, widget.tabText(i)) for i in range(widget.count()))
        elif isinstance(widget, QAbstractItemView) and widget.model() is not None:
            yield from ((widget, text) for text in _items(widget))
        for action in widget.actions():
            yield action, action.text()
            yield action, action.toolTip()


def _read(label: QLabel) -> str:
    """The letters that a label shows."""
    if label.textFormat() == Qt.TextFormat.PlainText:
        return label.text()
    assert label.property("look") == "rich", f"{label.text()!r} may be drawn as HTML"
    return QTextDocumentFragment.fromHtml(label.text()).toPlainText()


def _items(view: QAbstractItemView) -> Iterator[str]:
    model = view.model()
    for row_ in range(min(model.rowCount(), 50)):
        for column in range(model.columnCount()):
            for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
                yield str(model.index(row_, column).data(role) or "")


def test_one_endless_word_widens_nothing(stage: WindowStage) -> None:
    fill(stage, "x")
    least, width = stage.window.minimumSizeHint().width(), stage.window.width()
    fill(stage, WORD)
    assert stage.window.minimumSizeHint().width() <= max(least, 1280)
    assert stage.window.width() == width
    for widget, text in texts(stage.window):
        longest = max(map(len, re.split(r"\s", text)))
        assert longest <= LONGEST, (widget, text[:80])


@pytest.fixture(scope="module")
def full(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WindowStage]:
    """Its users only read it; a window of one's own beside it would take longer to build."""
    stage = WindowStage(qapp, tmp_path_factory.mktemp("full"))
    fill(stage, TEXT)
    yield stage
    stage.close()


def test_every_text_shows_its_letters_and_none_acts(full: WindowStage) -> None:
    named = [text for _, text in texts(full.window) if "catnip" in text]
    assert len(named) > 40
    assert not [text for text in named if "<b>catnip<br>" not in text]
    for _, text in texts(full.window):
        assert not ACTS.search(text.replace("\t", "")), repr(text)  # a tab before a menu's keys


def test_buttons_and_entries_keep_their_ampersand(full: WindowStage) -> None:
    window = full.window
    named = [
        *(button.text() for button in window.findChildren(QAbstractButton)),
        *(action.text() for action in window.findChildren(QAction)),
        *(bar.tabText(i) for bar in window.findChildren(QTabBar) for i in range(bar.count())),
    ]
    assert sum("R&&D" in text for text in named) >= 3
    assert not [text for text in named if "R&D" in text]


def test_a_tip_is_plain_text(full: WindowStage, qapp: QApplication) -> None:
    QToolTip.showText(full.window.mapToGlobal(QPoint(5, 5)), MARKUP, full.window)
    tips = [w for w in qapp.topLevelWidgets() if w.metaObject().className() == "QTipLabel"]
    assert tips
    for tip in tips:
        assert isinstance(tip, QLabel)
        assert tip.textFormat() == Qt.TextFormat.PlainText
    QToolTip.hideText()


def test_the_figures_of_the_light_are_shown_as_letters(
    full: WindowStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = Check(name=TEXT, passed=False, measured=1.0, tolerance=0.5, note=TEXT)
    light = full.window.status.light
    light.show_check(SelfCheck(passed=False, checks=(check,)), running=False, possible=True)
    shown: list[str] = []
    monkeypatch.setattr(
        "explorer.ui.frame.status.QWhatsThis.showText",
        lambda _at, text, _widget: shown.append(text),
    )
    light._show_figures()
    assert shown[0].startswith("<p>")
    assert MARKUP in QTextDocumentFragment.fromHtml(shown[0]).toPlainText()
