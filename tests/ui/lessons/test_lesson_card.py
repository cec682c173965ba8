"""A lesson beside the panels: its pages, live figures and questions, and what is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox

from explorer.lessons.figure_text import FilledPart
from explorer.lessons.lesson import load
from explorer.lessons.quantities import Quantity
from explorer.ui.dialogs.hand_in.gif_dialog import GifDialog
from explorer.ui.lessons.course import pages_seen
from explorer.ui.lessons.covers import Cover
from explorer.ui.panels.attention.panel import AttentionPanel
from tests.ui.lessons.classroom import LESSON, Classroom
from tests.ui.waiting import wait_until


@pytest.fixture
def room(qapp: QApplication, tmp_path: Path) -> Iterator[Classroom]:
    room = Classroom(qapp, tmp_path)
    yield room
    room.close()


def hidden(room: Classroom) -> frozenset[str]:
    return room.lessons.covers.ids


def test_a_page_runs_its_scene_and_shows_figures_measured_now(room: Classroom) -> None:
    room.begin()
    assert room.card.isVisible()
    assert room.card.heading.text() == "A list"
    assert "has 6 tokens" in room.card.text.words
    assert room.session.state.trace is not None
    assert len(room.session.state.trace.steps) == 1
    room.session.set_prompt(" red fish blue")
    room.session.step()
    wait_until(lambda: "has 3 tokens" in room.card.text.words)


def test_next_back_and_contents_go_through_the_pages(room: Classroom) -> None:
    room.begin()
    assert not room.card.back_button.isEnabled()
    room.card.next_button.click()
    room.until_in_place()
    assert room.card.heading.text() == "What comes next?"
    room.card.contents.menu().actions()[2].trigger()
    room.until_in_place()
    assert room.card.heading.text() == "Two layers"
    assert room.session.state.selection.layer == 1
    room.card.back_button.click()
    assert room.card.heading.text() == "What comes next?"
    room.go(2)
    room.card.next_button.click()  # Finish
    assert not room.card.isVisible()
    assert room.session.state.lesson is None


def test_page_down_and_page_up_turn_pages_while_a_lesson_is_open(room: Classroom) -> None:
    by_id = room.window.actions_table.by_id
    assert not by_id["next-page"].shortcuts()
    room.begin()
    QTest.keyClick(room.window, Qt.Key.Key_PageDown)
    assert room.lessons.course.index == 1
    QTest.keyClick(room.window, Qt.Key.Key_PageUp)
    assert room.lessons.course.index == 0
    room.window.presenter.toggle()
    keys = [key.toString() for key in by_id["next-panel"].shortcuts()]
    assert "Right" in keys
    assert "PgDown" not in keys
    room.window.presenter.toggle()
    room.lessons.course.end()
    assert not by_id["next-page"].shortcuts()


def test_what_answers_a_question_is_covered_until_it_is_answered(room: Classroom) -> None:
    room.begin()
    tokens = room.window.sequence.strip
    assert len(tokens.boxes) == 7
    room.go(1)
    question = room.card.question
    assert hidden(room) == {"next-token", "attention"}
    panels = {dock.place.id: dock for dock in room.window.docks.docks}
    assert not panels["next-token"].panel.isEnabled()  # no key reaches what is covered
    assert len(tokens.boxes) == 6  # the strip does not say it either
    assert not question.check_button.isEnabled()
    assert not question.explanation.isVisibleTo(question)
    question.field.setText("green")
    question.check_button.click()
    assert not hidden(room)
    assert panels["next-token"].panel.isEnabled()
    assert len(tokens.boxes) == 7
    assert "green" in question.predicted.text()
    assert "blue" in question.measured.text()
    assert question.explanation.isVisibleTo(question)
    (given,) = room.session.answers.rows
    assert given[0] == "Which token is the most likely?"
    assert given[1] == "green"
    assert "blue" in given[2]


def test_in_front_of_a_class_what_a_cover_says_is_whole(room: Classroom) -> None:
    room.begin()
    room.window.presenter.toggle()
    room.go(1)
    covers = [cover for cover in room.window.findChildren(Cover) if cover.isVisible()]
    assert covers
    for cover in covers:
        needed = cover.words.heightForWidth(cover.words.width())
        assert needed <= cover.words.contentsRect().height()


def test_a_right_prediction_is_called_so(room: Classroom) -> None:
    room.begin()
    room.go(1)
    question = room.card.question
    question.field.setText("blue")
    QTest.keyClick(question.field, Qt.Key.Key_Return)
    assert "As predicted" in question.verdict.text()
    room.go(2)
    assert [row.words for row in question.choices] == ["Two", "Twelve"]
    question.choices[1].button.setChecked(True)
    question.check_button.click()
    assert "Not as predicted" in question.verdict.text()
    assert "Two" in question.measured.text()


def test_a_question_can_be_skipped_and_asked_again(room: Classroom) -> None:
    room.begin()
    room.go(1)
    question = room.card.question
    question.skip_button.click()
    assert not hidden(room)
    assert "blue" in question.measured.text()
    assert not room.session.answers.rows  # nothing was predicted
    question.again_button.click()
    assert hidden(room) == {"next-token", "attention"}
    assert not question.measured.isVisibleTo(question)


def test_closing_a_lesson_uncovers_everything_and_restores_the_panels(room: Classroom) -> None:
    settings = room.window.presenter.settings_shown
    room.begin()
    room.go(1)
    room.lessons.course.end()
    assert not hidden(room)
    assert room.window.presenter.settings_shown is settings
    assert not room.card.isVisible()


def test_a_lesson_shows_all_of_the_window_and_gives_the_simple_layout_back(
    room: Classroom,
) -> None:
    if room.window.preferences.on("full"):
        room.window.preferences.toggle("full")
    assert room.window.try_this.isVisible()
    shown = [dock.place.id for dock in room.window.docks.docks if not dock.isHidden()]
    room.begin()
    assert not room.window.try_this.isVisibleTo(room.window)
    assert not room.window.preferences.on("full")
    docks = {dock.place.id: dock for dock in room.window.docks.docks}
    assert not docks["kv-cache"].isHidden()
    room.lessons.course.end()
    assert room.window.try_this.isVisible()
    assert [d.place.id for d in room.window.docks.docks if not d.isHidden()] == shown


def test_the_page_is_remembered(room: Classroom) -> None:
    room.begin()
    room.go(1)
    lesson = room.lesson()
    room.lessons.course.end()
    assert pages_seen(room.memory, lesson) == {0, 1}
    room.lessons.begin(lesson)
    assert room.card.heading.text() == "What comes next?"


def test_answers_are_kept_and_measured_again_until_one_starts_over(room: Classroom) -> None:
    room.begin()
    room.go(1)
    room.card.question.field.setText("green")
    room.card.question.check_button.click()
    lesson = room.lesson()
    room.lessons.course.end()
    (kept,) = room.session.answers.all
    room.session.answers.drop(kept.lesson, kept.page)  # as in a program that was started anew
    room.lessons.begin(lesson)
    assert room.session.answers.all == (kept,)
    room.until_in_place()
    assert room.card.heading.text() == "What comes next?"
    assert "green" in room.card.question.predicted.text()
    assert "blue" in room.card.question.measured.text()
    assert not hidden(room)
    over = room.card.contents.menu().actions()[-1]
    assert over.text() == "Start over"
    over.trigger()
    room.until_in_place()
    assert room.card.heading.text() == "A list"
    assert not room.session.answers.all
    assert pages_seen(room.memory, lesson) == {0}
    room.go(1)
    assert hidden(room) == {"next-token", "attention"}


def test_no_gif_gives_an_answer_away(room: Classroom) -> None:
    room.begin()
    room.go(1)
    room.window.save_gif()
    assert "Answer the question first" in room.session.state.error
    assert room.window.findChild(GifDialog) is None
    room.card.question.skip_button.click()
    room.window.save_gif()
    dialog = room.window.findChild(GifDialog)
    assert isinstance(dialog, GifDialog)
    dialog.close()


@pytest.mark.parametrize("target", ["cell:5,2", "panel:next-token", "head:1,0"])
def test_pointing_does_not_give_the_answer_away(room: Classroom, target: str) -> None:
    room.begin(LESSON.replace("control:temperature", target))
    room.go(1)
    wait_until(lambda: room.window.docks.settled)
    room.lessons.look_here()
    assert room.lessons.outline.target is None
    assert not room.card.look_button.isVisible()  # there is nothing to see yet
    room.card.question.skip_button.click()
    assert room.lessons.outline.target is not None
    assert room.card.look_button.isVisible()
    room.card.question.again_button.click()
    assert room.lessons.outline.target is None


def test_what_is_pointed_at_is_brought_into_sight(room: Classroom) -> None:
    room.begin(LESSON.replace("token:1", "cell:5,2").replace("head:1,0", "control:tokens"))
    panel = room.window.docks.bring_up("attention")
    assert isinstance(panel, AttentionPanel)
    panel.tools.view.setCurrentIndex(panel.tools.view.findData("arcs"))
    room.card.look_button.click()
    assert panel.tools.chosen_view == "maps"
    room.window.sequence.as_text.setChecked(True)
    room.go(2)
    wait_until(lambda: room.lessons.outline.target is room.window.sequence.strip)
    assert room.window.sequence.strip.isVisible()


def test_settings_that_a_page_points_at_are_unfolded_for_that_page(room: Classroom) -> None:
    room.begin()
    assert not room.window.presenter.settings_shown
    room.go(1)
    wait_until(lambda: room.lessons.outline.target is not None)
    assert room.window.presenter.settings_shown
    room.go(0)
    assert not room.window.presenter.settings_shown
    room.window.presenter.toggle()
    room.go(1)
    wait_until(lambda: room.lessons.outline.target is room.window.presenter.strip)
    assert not room.window.presenter.settings_shown  # for a class, the panels keep their room
    room.window.presenter.toggle()


def test_the_lesson_s_title_is_whole(room: Classroom) -> None:
    title = "A title that is a good deal longer than one line of the card can ever hold"
    room.begin(LESSON.replace('"Copying"', f'"{title}"'))
    shown = room.card.title
    assert shown.text() == title
    assert shown.height() >= shown.heightForWidth(shown.width())


def test_for_a_class_the_card_leaves_the_panels_their_room(room: Classroom) -> None:
    room.begin(LESSON.replace("The list begins", "antidisestablishmentarianism begins"))
    room.window.presenter.toggle()
    room.go(1)
    assert room.card.fontInfo().pixelSize() >= 24
    assert room.card.width() <= 0.3 * room.window.width() + 1
    assert room.card.text.minimumSizeHint().width() <= room.card.text.width()
    room.window.presenter.toggle()


def test_a_class_sees_the_panel_of_each_page_and_the_answer(room: Classroom) -> None:
    text = LESSON.replace("head:1,0", "token:1")
    text = text.replace("run = 1 }", 'run = 1, view = { shown = ["sampling"] } }')
    text = text.replace("begins again.", "begins again. " * 20)
    text = text.replace("layer = 1 }", 'layer = 1, view = { shown = ["next-token"] } }')
    room.begin(text)
    room.window.presenter.toggle()
    for page, panel in ((0, "sampling"), (2, "next-token"), (1, "sampling")):
        room.go(page)
        shown = room.window.docks.enlarged
        assert shown is not None
        assert shown.place.id == panel
    question = room.card.question
    assert question.verdict.visibleRegion().isEmpty()
    question.skip_button.click()
    wait_until(lambda: not question.verdict.visibleRegion().isEmpty())
    room.window.presenter.toggle()


def test_a_scene_that_is_cancelled_says_so_and_can_be_tried_again(room: Classroom) -> None:
    room.lessons.begin(room.lesson())
    assert room.card.progress.isVisible()
    room.card.cancel_button.click()
    wait_until(lambda: room.card.problem.isVisible())
    assert "Cancelled" in room.card.problem.text()
    assert room.card.restore_button.text() == "Try again"
    wait_until(lambda: room.session.state.status.activity in ("idle", "checking"))
    room.card.restore_button.click()
    room.until_in_place()
    assert not room.card.problem.isVisible()
    assert "has 6 tokens" in room.card.text.words


def test_one_plays_on_and_goes_back_to_the_pages_scene(room: Classroom) -> None:
    room.begin()
    room.session.step(2)
    wait_until(lambda: room.session.state.trace is not None
               and len(room.session.state.trace.steps) == 3)  # fmt: skip
    room.card.restore_button.click()
    room.until_in_place()
    assert room.session.state.trace is not None
    assert len(room.session.state.trace.steps) == 1
    room.session.undo()  # what was played is not lost
    assert len(room.session.state.trace.steps) == 3


def test_an_unsaved_run_is_asked_about_before_a_lesson(room: Classroom) -> None:
    room.session.open_model("copycat")
    wait_until(lambda: room.session.state.card is not None, 60)
    room.session.set_prompt("red fish")
    room.session.step()
    wait_until(lambda: room.session.state.unsaved)
    room.lessons.begin(room.lesson())
    box = room.window.findChild(QMessageBox, "unsaved")
    assert isinstance(box, QMessageBox)
    box.button(QMessageBox.StandardButton.Cancel).click()
    assert room.session.state.lesson is None


def test_a_lesson_s_own_run_is_not_asked_about(room: Classroom) -> None:
    room.begin()
    room.go(1)
    assert not room.window.isWindowModified()
    other = load(room.file(LESSON, "other"))
    room.lessons.course.end()
    room.lessons.begin(other)
    room.until_in_place()
    assert room.window.findChild(QMessageBox, "unsaved") is None
    room.session.step()
    wait_until(room.window.isWindowModified)
    room.lessons.begin(room.lesson())
    assert room.window.findChild(QMessageBox, "unsaved") is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = 3", "line 1"),
        (LESSON.replace("{layers}", "{__import__('os')}"), "line"),
        (LESSON.replace('model = "copycat"', 'model = "/etc/passwd"'), "line 3"),
        ("\0\0\0", "lesson.toml"),
    ],
)
def test_a_bad_lesson_file_is_refused_in_one_sentence(
    room: Classroom, text: str, words: str
) -> None:
    file = room.file(text)
    room.lessons.open_named(str(file))
    assert words in room.session.state.error
    assert "lesson.toml" in room.session.state.error
    assert not room.card.isVisible()
    assert room.session.state.lesson is None


def test_a_stranger_s_lesson_shows_its_letters_and_no_markup(room: Classroom) -> None:
    room.begin(LESSON.replace("A list", "<h1>A</h1>").replace("The prompt", "<b>The</b> prompt"))
    assert room.card.heading.text() == "<h1>A</h1>"
    assert "&lt;b&gt;The&lt;/b&gt;" in room.card.text.text()


def test_tokens_in_a_row_go_on_in_the_next_line(room: Classroom) -> None:
    text = room.card.text
    tokens = "␣small" * 40
    text.show_parts([FilledPart(tokens, Quantity(tokens), "chosen(1)")])
    assert text.minimumSizeHint().width() < room.card.minimumSizeHint().width()
    assert text.words == tokens
    assert "<b>␣small" in text.text()  # what precedes the first token stays with it


def test_hidden_tokens_are_named(room: Classroom) -> None:
    room.begin(LESSON.replace('hides = "model"', 'hides = "tokens"'))
    room.go(2)
    assert hidden(room) == {"tokens"}
    (cover,) = room.window.sequence.findChildren(Cover)
    assert cover.accessibleName().startswith("The list of tokens is hidden")


@pytest.fixture(scope="module")
def shared(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Classroom]:
    """A room in which the lesson is open already."""
    room = Classroom(qapp, tmp_path_factory.mktemp("shared"))
    room.begin()
    yield room
    room.close()


@pytest.fixture
def begun(shared: Classroom) -> Classroom:
    """That room on the first page, as after `begin`, whatever the test before did."""
    shared.lessons.fold(False)
    shared.lessons.outline.clear()
    shared.go(0)
    return shared


def test_a_figure_that_cannot_be_had_is_marked_with_its_reason(begun: Classroom) -> None:
    assert "[not known]" in begun.card.text.words
    (reason,) = begun.card.text.reasons
    assert reason
    assert reason in begun.card.text.accessibleName()


def test_the_card_folds_to_a_strip_and_back(begun: Classroom) -> None:
    begun.lessons.fold(True)
    assert not begun.card.isVisible()
    assert begun.lessons.strip.isVisible()
    begun.lessons.strip.click()
    assert begun.card.isVisible()
    assert not begun.lessons.strip.isVisible()


@pytest.mark.parametrize(("page", "name"), [(0, "token"), (1, "control"), (2, "head")])
def test_what_a_page_points_at_is_outlined(begun: Classroom, page: int, name: str) -> None:
    begun.lessons.outline.clear()
    begun.go(page)
    wait_until(lambda: begun.lessons.outline.target is not None)
    begun.lessons.outline.clear()
    begun.card.look_button.click()
    assert begun.lessons.outline.target is not None, name
    wait_until(begun.lessons.outline.isVisible)
