"""Everything the user can do, in one table: menus, toolbar and shortcuts are made from it."""

from __future__ import annotations

from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.menus.action import Action
from explorer.ui.menus.intervention_actions import INTERVENTION_ACTIONS
from explorer.ui.menus.side_actions import SIDE_ACTIONS
from explorer.ui.menus.undo_words import redo_text, undo_text


def _can_step(state: State) -> bool:
    return bool(state.request.model)  # a lost engine is started again by the step


def _has_steps(state: State) -> bool:
    return state.step_index is not None


def _can_save(state: State) -> bool:
    return _has_steps(state) or state.batch is not None


def _can_ask_to_save(state: State) -> bool:
    return _can_save(state) or state.busy  # while a prompt is read, it says when it can


def _in_lesson(state: State) -> bool:
    return state.lesson is not None


def _can_turn_back(state: State) -> bool:
    return state.lesson is not None and state.lesson.page > 0


def _can_switch_mask(state: State) -> bool:
    card = state.next_card
    return not state.request.causal_mask or card is None or card.offers("causal_off")


def _switch_mask(session: Session) -> None:
    session.set_causal_mask(not session.state.request.causal_mask)


MENUS = {
    "file": QT_TRANSLATE_NOOP("actions", "&File"),
    "edit": QT_TRANSLATE_NOOP("actions", "&Edit"),
    "run": QT_TRANSLATE_NOOP("actions", "&Run"),
    "interventions": QT_TRANSLATE_NOOP("actions", "&Interventions"),
    "view": QT_TRANSLATE_NOOP("actions", "&View"),
    "sides": QT_TRANSLATE_NOOP("actions", "&Side by side"),
    "lesson": QT_TRANSLATE_NOOP("actions", "&Lesson"),
    "help": QT_TRANSLATE_NOOP("actions", "&Help"),
}

ACTIONS: tuple[Action, ...] = (
    Action(
        id="choose-model",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Models on this computer…"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "All models found, with their size and whether they fit in memory"
        ),
        keys=("Ctrl+Shift+M",),
        icon="model",
        act=lambda w: w.choose_model(),
        locked_when_presenting=True,
    ),
    Action(
        id="download",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Download from the Hub…"),
        tip=QT_TRANSLATE_NOOP("actions", "Fetch a model by its name on the Hugging Face Hub"),
        icon="save",
        act=lambda w: w.download_model(),
        locked_when_presenting=True,
    ),
    Action(
        id="open-file",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Open file…"),
        tip=QT_TRANSLATE_NOOP("actions", "Open a saved session (.dxt) or a model file (.gguf)"),
        keys=("Ctrl+O",),
        icon="open",
        act=lambda w: w.acting.files.ask_file(),
        locked_when_presenting=True,
    ),
    Action(
        id="open-folder",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Open model folder…"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Open a model from a folder with config.json and safetensors"
        ),
        keys=("Ctrl+Shift+O",),
        icon="model",
        act=lambda w: w.acting.files.ask_folder(),
        locked_when_presenting=True,
    ),
    Action(
        id="reopen",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Reopen last session"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Restore the model, prompt, settings and run from when you last closed the program",
        ),
        icon="undo",
        act=lambda w: w.files.reopen_last(),
        locked_when_presenting=True,
    ),
    Action(
        id="save",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Save session…"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Save the run, its branches and the last padded batch as a .dxt file. It "
            "opens without the model.",
        ),
        keys=("Ctrl+S",),
        icon="save",
        act=lambda w: w.acting.files.ask_save(),
        enabled=_can_ask_to_save,
        line_before=True,
    ),
    Action(
        id="export-view",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Copy, save or print a panel…"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Copy or save the panel you used last as a picture, drawing, PDF or table"
        ),
        keys=("Ctrl+P",),
        icon="copy",
        act=lambda w: w.acting.docks.export(),
        enabled=_can_save,
    ),
    Action(
        id="report",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Make a report…"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Put the run, its settings and pictures into one HTML file or a PDF"
        ),
        keys=("Ctrl+Shift+P",),
        icon="save",
        act=lambda w: w.make_report(),
        enabled=_has_steps,
        line_before=True,
    ),
    Action(
        id="copy-python",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Copy as Python"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Copy a script that repeats this run with transformers alone"
        ),
        icon="copy",
        act=lambda w: w.copy_python(),
        enabled=_has_steps,
    ),
    Action(
        id="save-notebook",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Save as notebook…"),
        tip=QT_TRANSLATE_NOOP("actions", "The same script as a Jupyter notebook"),
        icon="save",
        act=lambda w: w.save_notebook(),
        enabled=_has_steps,
    ),
    Action(
        id="save-gif",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Save as GIF…"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "A moving picture of the run: map and next token, step by step"
        ),
        icon="save",
        act=lambda w: w.save_gif(),
        enabled=_has_steps,
    ),
    Action(
        id="close",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Close"),
        tip=QT_TRANSLATE_NOOP("actions", "Close the run, or the window if there is no run"),
        keys=("Ctrl+W",),
        act=lambda w: w.close_run(),
        locked_when_presenting=True,
        line_before=True,
    ),
    Action(
        id="quit",
        menu="file",
        text=QT_TRANSLATE_NOOP("actions", "Quit"),
        tip=QT_TRANSLATE_NOOP("actions", "Close the program"),
        keys=("Ctrl+Q",),
        act=lambda w: w.close(),
        locked_when_presenting=True,
    ),
    Action(
        id="undo",
        menu="edit",
        text=QT_TRANSLATE_NOOP("actions", "Undo"),
        tip=QT_TRANSLATE_NOOP("actions", "Undo the last change, step or run"),
        named=undo_text,
        keys=("Ctrl+Z",),
        icon="undo",
        act=lambda w: w.beside.undo(),
        enabled=lambda s: s.can_undo,
    ),
    Action(
        id="redo",
        menu="edit",
        text=QT_TRANSLATE_NOOP("actions", "Redo"),
        tip=QT_TRANSLATE_NOOP("actions", "Redo the change that was undone last"),
        named=redo_text,
        keys=("Ctrl+Shift+Z", "Ctrl+Y"),
        icon="redo",
        act=lambda w: w.beside.redo(),
        enabled=lambda s: s.can_redo,
    ),
    Action(
        id="copy-view",
        menu="edit",
        text=QT_TRANSLATE_NOOP("actions", "Copy picture and table"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Copy the map or chart you used last as a picture and a table"
        ),
        keys=("Ctrl+C",),
        icon="copy",
        act=lambda w: w.acting.docks.copy(),
        enabled=_can_save,
        line_before=True,
    ),
    Action(
        id="copy-text",
        menu="edit",
        text=QT_TRANSLATE_NOOP("actions", "Copy generated text"),
        tip=QT_TRANSLATE_NOOP("actions", "The tokens generated so far, as text"),
        keys=("Ctrl+Shift+C",),
        icon="copy",
        act=lambda w: w.acting.files.copy_generated(),
        enabled=_has_steps,
    ),
    Action(
        id="captions",
        menu="edit",
        text=QT_TRANSLATE_NOOP("actions", "Caption under pictures"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Add a line to copied and saved pictures: view, model and prompt",
        ),
        act=lambda w: w.preferences.toggle("captions"),
        preference="captions",
        line_before=True,
    ),
    Action(
        id="letter-keys",
        menu="edit",
        text=QT_TRANSLATE_NOOP("actions", "Single letters are shortcuts"),
        tip=QT_TRANSLATE_NOOP("actions", "Off: single keys (R, M, C, E, ?) do nothing"),
        act=lambda w: w.preferences.toggle("letter_keys"),
        preference="letter_keys",
    ),
    Action(
        id="reset",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Reset"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Delete all generated tokens and start again from the prompt"
        ),
        keys=("Home",),
        icon="reset",
        act=lambda w: w.beside.reset(),
        enabled=lambda s: s.trace is not None,
    ),
    Action(
        id="back",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Back one token"),
        tip=QT_TRANSLATE_NOOP("actions", "Look at the token before. Nothing is removed."),
        keys=("Left",),
        presenter_keys=("Shift+Left",),
        icon="back",
        act=lambda w: w.go_along(-1),
        enabled=_has_steps,
    ),
    Action(
        id="forward",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Forward one token"),
        tip=QT_TRANSLATE_NOOP("actions", "Look at the next token of the run. Nothing is computed."),
        keys=("Right",),
        presenter_keys=("Shift+Right",),
        act=lambda w: w.go_along(+1),
        enabled=_has_steps,
    ),
    Action(
        id="step",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Step"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Run one forward pass and choose one token. At an earlier token: go to the next one.",
        ),
        keys=("Space", "Ctrl+Return"),
        icon="step",
        act=lambda w: w.beside.step(),
        enabled=_can_step,
    ),
    Action(
        id="run",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Run"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Generate at the end of the run, until an end token or until you pause. From an "
            "earlier token, the view goes to the end first.",
        ),
        keys=("R",),
        icon="run",
        act=lambda w: w.run_or_pause(),
        enabled=_can_step,
        checked=lambda s: s.status.activity == "running",
        checked_text=QT_TRANSLATE_NOOP("actions", "Pause"),
        checked_icon="pause",
    ),
    Action(
        id="cut",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Cut here"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Remove the tokens after the selected one. Undo and the Branches panel bring them "
            "back.",
        ),
        keys=("Del",),
        icon="cut",
        act=lambda w: w.beside.cut(),
        enabled=lambda s: s.looks_back,
    ),
    Action(
        id="mask",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Causal mask"),
        tip=QT_TRANSLATE_NOOP("actions", "On: a token attends only to itself and earlier tokens"),
        keys=("M",),
        icon="mask",
        act=lambda w: _switch_mask(w.acting.session),
        enabled=_can_switch_mask,
        checked=lambda s: s.request.causal_mask,
        line_before=True,
    ),
    Action(
        id="cache",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "KV cache"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "On: keys and values of earlier tokens are stored, not recomputed"
        ),
        keys=("Ctrl+K",),
        icon="cache",
        act=lambda w: w.acting.session.set_cache(not w.acting.session.state.request.cache),
        enabled=lambda s: not s.request.sees_later,
        checked=lambda s: s.request.uses_cache,
    ),
    Action(
        id="reuse",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Reuse the cache in a conversation"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "On: of a new turn only the new tokens are read. Off: the whole prompt is read again.",
        ),
        act=lambda w: w.acting.session.set_reuse(not w.acting.session.state.reuse),
        enabled=lambda s: s.request.uses_cache,
        checked=lambda s: s.reuse,
    ),
    *INTERVENTION_ACTIONS,
    Action(
        id="padding-lab",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Padding lab"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Prompts of different lengths in one batch, padded left or right: what goes wrong, "
            "and why",
        ),
        icon="padding",
        act=lambda w: w.acting.docks.bring_up("padding"),
        line_before=True,
    ),
    Action(
        id="training",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Train a model"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "A small model learns to copy in about a minute, rightly or with mistakes on purpose",
        ),
        act=lambda w: w.acting.docks.bring_up("training"),
    ),
    Action(
        id="check",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Run self-check"),
        tip=QT_TRANSLATE_NOOP("actions", "Check this run against the model's own computation"),
        icon="check",
        act=lambda w: w.acting.session.run_self_check(),
        enabled=lambda s: _has_steps(s) and s.card is not None and not s.busy,
        line_before=True,
    ),
    Action(
        id="test-again",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Retest the model"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Test again which features work on this model. Results are kept until its "
            "files change.",
        ),
        icon="check",
        act=lambda w: w.acting.session.test_model_again(),
        enabled=lambda s: s.card is not None and not s.busy,
    ),
    Action(
        id="cancel",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Cancel"),
        tip=QT_TRANSLATE_NOOP("actions", "Stop what the engine is doing"),
        keys=("Ctrl+.",),
        icon="stop",
        act=lambda w: w.acting.session.cancel(),
        enabled=lambda s: s.status.activity in ("loading", "running", "checking"),
        line_before=True,
    ),
    Action(
        id="restart-engine",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Restart the engine"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Start a new engine process. Your run and prompt are kept."
        ),
        icon="engine",
        act=lambda w: w.restart_engine(),
        locked_when_presenting=True,
    ),
    Action(
        id="compare-mask",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Compare with and without the mask"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Show attention with the mask, without it, and the difference"
        ),
        keys=("C",),
        icon="mask",
        act=lambda w: w.compare_mask(),
        enabled=_has_steps,
        checked=lambda s: s.comparing and s.compare_of == "mask",
    ),
    Action(
        id="compare-forms",
        menu="run",
        text=QT_TRANSLATE_NOOP("actions", "Compare the file as it is with float32"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Run the same tokens with the weights of the .gguf file as they are and converted",
        ),
        act=lambda w: w.compare_forms(),
        enabled=lambda s: _has_steps(s) and s.trace is not None and bool(s.trace.card.form),
        checked=lambda s: s.comparing and s.compare_of == "form",
    ),
    Action(
        id="go-to-token",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Go to token…"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Find a token by number or text, or the heads that attend from one token to another",
        ),
        keys=("Ctrl+G", "Ctrl+F"),
        act=lambda w: w.go_to_token(),
        enabled=_has_steps,
    ),
    Action(
        id="nats",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Entropy and surprisal in nats"),
        tip=QT_TRANSLATE_NOOP("actions", "Off: in bits. Saved tables do not change."),
        act=lambda w: w.preferences.toggle("nats"),
        preference="nats",
    ),
    Action(
        id="zoom-in",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Larger"),
        tip=QT_TRANSLATE_NOOP("actions", "Make everything larger"),
        keys=("Ctrl++", "Ctrl+="),
        icon="zoom-in",
        act=lambda w: w.look.zoom(+1),
    ),
    Action(
        id="zoom-out",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Smaller"),
        tip=QT_TRANSLATE_NOOP("actions", "Make everything smaller"),
        keys=("Ctrl+-",),
        icon="zoom-out",
        act=lambda w: w.look.zoom(-1),
    ),
    Action(
        id="zoom-reset",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Normal size"),
        tip=QT_TRANSLATE_NOOP("actions", "Back to the normal size"),
        keys=("Ctrl+0",),
        icon="fit",
        act=lambda w: w.look.zoom(0),
    ),
    Action(
        id="enlarge",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Maximise or restore panel"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Maximise the panel you used last. Press again, or Esc, to restore it."
        ),
        keys=("F10", "E"),
        act=lambda w: w.acting.docks.enlarge(w.acting.docks.enlarged or w.acting.docks.at_hand()),
        line_before=True,
    ),
    Action(
        id="full",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Full layout"),
        tip=QT_TRANSLATE_NOOP("actions", "Show all panels and settings. Off: the simple layout."),
        keys=("F8",),
        act=lambda w: w.preferences.toggle("full"),
        preference="full",
        locked_when_presenting=True,
        line_before=True,
    ),
    Action(
        id="settings",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Hide or show prompt and settings"),
        tip=QT_TRANSLATE_NOOP("actions", "Hide the left column to give the panels more room"),
        keys=("F9",),
        act=lambda w: w.presenter.show_settings(not w.presenter.settings_shown),
    ),
    Action(
        id="presenter",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Presenter mode"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Full screen with large text, for a projector. Esc leaves it."
        ),
        keys=("F11",),
        icon="presenter",
        act=lambda w: w.presenter.toggle(),
        checked_text=QT_TRANSLATE_NOOP("actions", "Leave (F11)"),
        checked_icon="leave-presenter",
    ),
    Action(
        id="previous-panel",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Previous panel"),
        tip=QT_TRANSLATE_NOOP("actions", "Show the panel before this one"),
        keys=("Ctrl+PgUp",),
        presenter_keys=("Left", "PgUp", "Ctrl+PgUp"),
        icon="back",
        act=lambda w: w.acting.docks.turn(-1),
    ),
    Action(
        id="next-panel",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Next panel"),
        tip=QT_TRANSLATE_NOOP("actions", "Show the panel after this one"),
        keys=("Ctrl+PgDown",),
        presenter_keys=("Right", "PgDown", "Ctrl+PgDown"),
        icon="step",
        act=lambda w: w.acting.docks.turn(+1),
    ),
    Action(
        id="reset-layout",
        menu="view",
        text=QT_TRANSLATE_NOOP("actions", "Reset layout"),
        tip=QT_TRANSLATE_NOOP("actions", "Restore the default arrangement of the panels"),
        icon="layout",
        act=lambda w: w.reset_layout(),
    ),
    *SIDE_ACTIONS,
    Action(
        id="open-lesson",
        menu="lesson",
        text=QT_TRANSLATE_NOOP("actions", "Open a lesson file…"),
        tip=QT_TRANSLATE_NOOP("actions", "Open a lesson (.toml) that is not in the list"),
        icon="open",
        act=lambda w: w.lessons.ask_file(),
        locked_when_presenting=True,
    ),
    Action(
        id="next-page",
        menu="lesson",
        text=QT_TRANSLATE_NOOP("actions", "Next page"),
        tip=QT_TRANSLATE_NOOP("actions", "Go to the next page of the lesson"),
        lesson_keys=("PgDown",),
        act=lambda w: w.lessons.turn(+1),
        enabled=_in_lesson,
        line_before=True,
    ),
    Action(
        id="previous-page",
        menu="lesson",
        text=QT_TRANSLATE_NOOP("actions", "Previous page"),
        tip=QT_TRANSLATE_NOOP("actions", "Go back to the page before this one"),
        lesson_keys=("PgUp",),
        act=lambda w: w.lessons.turn(-1),
        enabled=_can_turn_back,
    ),
    Action(
        id="page-scene",
        menu="lesson",
        text=QT_TRANSLATE_NOOP("actions", "Reset this page"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Bring back this page's model, prompt, settings and panels"
        ),
        act=lambda w: w.lessons.course.restore(),
        enabled=_in_lesson,
    ),
    Action(
        id="look-here",
        menu="lesson",
        text=QT_TRANSLATE_NOOP("actions", "Look here"),
        tip=QT_TRANSLATE_NOOP("actions", "Outline what this page is about"),
        act=lambda w: w.lessons.look_here(),
        enabled=_in_lesson,
    ),
    Action(
        id="close-lesson",
        menu="lesson",
        text=QT_TRANSLATE_NOOP("actions", "Close the lesson"),
        tip=QT_TRANSLATE_NOOP("actions", "Close the lesson and restore the panels"),
        icon="close",
        act=lambda w: w.lessons.course.end(),
        enabled=_in_lesson,
    ),
    Action(
        id="save-scene",
        menu="lesson",
        text=QT_TRANSLATE_NOOP("actions", "Save scene…"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Save the model, the prompt, the settings and the panels as a small text file. "
            "Figures are measured again when it is opened",
        ),
        icon="save",
        act=lambda w: w.lessons.ask_save_scene(),
        locked_when_presenting=True,
        line_before=True,
    ),
    Action(
        id="open-scene",
        menu="lesson",
        text=QT_TRANSLATE_NOOP("actions", "Open scene…"),
        tip=QT_TRANSLATE_NOOP("actions", "Open a scene (.toml) and run what it needs"),
        icon="open",
        act=lambda w: w.lessons.ask_open_scene(),
        locked_when_presenting=True,
    ),
    Action(
        id="lessons",
        menu="help",
        text=QT_TRANSLATE_NOOP("actions", "Lessons…"),
        tip=QT_TRANSLATE_NOOP("actions", "Lessons of about ten minutes, with your own progress"),
        icon="help",
        act=lambda w: w.lessons.show_list(),
    ),
    Action(
        id="glossary",
        menu="help",
        text=QT_TRANSLATE_NOOP("actions", "Glossary"),
        tip=QT_TRANSLATE_NOOP("actions", "All terms in two lines each, with a search"),
        keys=("Ctrl+Shift+G",),
        act=lambda w: w.help.show_glossary(),
    ),
    Action(
        id="keys",
        menu="help",
        text=QT_TRANSLATE_NOOP("actions", "Keyboard shortcuts"),
        tip=QT_TRANSLATE_NOOP("actions", "All keys on one page"),
        keys=("?", "Ctrl+F1"),
        act=lambda w: w.help.show_keys(),
    ),
    Action(
        id="guide",
        menu="help",
        text=QT_TRANSLATE_NOOP("actions", "Guide"),
        tip=QT_TRANSLATE_NOOP("actions", "First steps, and what each panel shows"),
        keys=("Shift+F1",),
        act=lambda w: w.help.show_guide(),
    ),
    Action(
        id="explain",
        menu="help",
        text=QT_TRANSLATE_NOOP("actions", "What is this?"),
        tip=QT_TRANSLATE_NOOP("actions", "Explain what has the focus. Press again for the guide."),
        keys=("F1",),
        icon="help",
        act=lambda w: w.help.explain_focus(),
    ),
    Action(
        id="open-log",
        menu="help",
        text=QT_TRANSLATE_NOOP("actions", "Open log"),
        tip=QT_TRANSLATE_NOOP("actions", "Error details in a text file"),
        icon="help",
        act=lambda w: w.open_log(),
    ),
    Action(
        id="about",
        menu="help",
        text=QT_TRANSLATE_NOOP("actions", "About Decoder Explorer"),
        tip=QT_TRANSLATE_NOOP("actions", "Version and licences"),
        act=lambda w: w.about(),
    ),
)
