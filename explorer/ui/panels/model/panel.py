"""Model: how the open model is built, what works on it, and how it reads text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from explorer.figures.inside import model_map
from explorer.figures.inside.model_map import MapPart
from explorer.figures.text.sentences import fitting
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.card import ModelCard
from explorer.trace.found_models import Recipe
from explorer.trace.inside.structure import ModelStructure, ReadStructure
from explorer.ui.files import caption
from explorer.ui.glossary.labels import TermLabel
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme
from explorer.ui.panel.asking import Asking, Question
from explorer.ui.panel.how_it_runs import as_is_words, where
from explorer.ui.panel.panel import Panel, View
from explorer.ui.panels.model import card_text, part_words
from explorer.ui.panels.model.picture import ModelPicture


class ModelPanel(Panel):
    """Sections of text; asks for the recipe when it is first seen with a model."""

    ID = "model"
    BESIDE = "attention"
    TITLE = QT_TRANSLATE_NOOP("ModelPanel", "Model")
    EXPLANATION = QT_TRANSLATE_NOOP("ModelPanel", "Architecture, and the features that work on it")
    EMPTY = QT_TRANSLATE_NOOP(
        "ModelPanel",
        "Choose a model at the top left to see its architecture and features. Then "
        "type a prompt and press Step (Space).",
    )

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._card: ModelCard | None = None
        self._recipe: Recipe | None = None
        self._problem = ""
        self._open = False  # the card is of the open model, not of a saved session
        self._run = ""  # the model of the run on screen, if that is not the open one
        self._page = QWidget()
        self._column = QVBoxLayout(self._page)
        self._column.setContentsMargins(4, 0, 8, 4)
        self._column.setSpacing(2)
        self._name = QLabel()
        self._name.setProperty("look", "heading")
        self._name.setTextFormat(Qt.TextFormat.PlainText)
        self._name.setWordWrap(True)
        self._column.addWidget(self._name)
        self._parts: list[MapPart] = []
        self._structure: ModelStructure | None = None
        self._there = ("", "")  # another machine that runs the model, and its other versions
        self._asking = Asking(self, session, self._wanted)
        self.picture = ModelPicture(theme, self._part_words)
        self.picture.setAccessibleName(self.tr("The parts of the model"))
        self.picture.picked.connect(lambda row: self.wanted.emit(self._parts[row].panel))
        self.picture.layerPicked.connect(lambda layer: session.select(layer=layer))
        self.picture.layerOpened.connect(self._open_layer)
        self._no_picture = SentenceLabel(look="muted")
        self._column.addWidget(self.picture)
        self._column.addWidget(self._no_picture)
        self._column.addWidget(self.convert, 0, Qt.AlignmentFlag.AlignLeft)
        self._bodies: dict[str, tuple[QLabel, QLabel]] = {}
        for key, head in (
            ("source", TermLabel()),
            ("warnings", TermLabel(self.tr("Worth knowing"))),
            ("recipe", TermLabel(self.tr("Architecture"))),
            ("compare", TermLabel(self.tr("Other models of this kind"))),
            ("cache", TermLabel(self.tr("KV cache size"), term="kv-cache")),
            ("works", TermLabel()),
            ("tokens", TermLabel(self.tr("Tokenizer"), term="tokenizer")),
        ):
            self._bodies[key] = self._section(head)
        self._column.addStretch(1)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setWidget(self._page)
        for part in (self._page, self._area.viewport()):
            part.setAutoFillBackground(False)
        self._area.setAccessibleName(self.tr("Model card"))
        self._area.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.content.addWidget(self._area, 1)

    def _section(self, head: QLabel) -> tuple[QLabel, QLabel]:
        body = QLabel()
        head.setProperty("look", "title")
        head.setContentsMargins(0, 8, 0, 0)
        head.setWordWrap(True)
        body.setProperty("look", "rich")
        body.setWordWrap(True)
        # Lines and tables wrap where the panel ends: none may make the page wider than it is.
        body.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        body.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._column.addWidget(head)
        self._column.addWidget(body)
        return head, body

    def show_state(self, old: State | None, new: State) -> None:
        shown = (self._card, self._recipe, self._problem, self._open, self._run, self._there)
        self._open = new.card is not None
        self._card = new.card or (new.trace.card if new.trace is not None else None)
        self._recipe = new.recipe if self._open else None
        self._problem = new.recipe_problem
        self._there = (new.host, new.other_versions) if self._open else ("", "")
        other = new.trace is not None and new.other_model
        self._run = new.trace.card.name if other and new.trace is not None else ""
        now = (self._card, self._recipe, self._problem, self._open, self._run, self._there)
        if old is None or shown != now:
            self._draw()
        self._draw_picture(new)
        if self._open and self._recipe is None:
            self.session.models.describe()
        self._asking.later()

    def _open_layer(self, layer: int) -> None:
        self.session.select(layer=layer)
        self.wanted.emit("block")

    def _wanted(self, state: State) -> Question | None:
        """The parts of the model, if they are not known of this run."""
        return None if state.result_of_prompt(ModelStructure) else (ReadStructure, {})

    def _draw_picture(self, state: State) -> None:
        """The parts, or one sentence on why there are none."""
        found, shown = state.result_of_prompt(ModelStructure), state.shown
        self._structure = found
        self._parts = []
        if found is not None and shown is not None:
            step, layer = shown.trace.steps[shown.step], min(shown.layer, found.layers - 1)
            self._parts = list(model_map.parts(found, step, layer))
            title = part_words.layer_title(found, layer)
            self.picture.show_model(self._parts, model_map.block_numbers(found), layer, title)
        refused = state.refusal(ReadStructure)
        self.convert.offer(bool(refused) and found is None)
        why = refused or self.tr("Press Step (Space) to see the parts of the model as a picture.")
        self._no_picture.setText("" if found is None and state.step_index is not None
                                 and not refused else why)  # fmt: skip
        self.picture.setVisible(bool(self._parts))
        self._no_picture.setVisible(not self._parts and bool(self._no_picture.text()))

    def _part_words(self, row: int) -> tuple[str, str, str]:
        part, card, before = self._parts[row], self._card, self._parts[:row]
        assert card is not None
        whole = part_words.figures(part, card, before)
        short = part_words.figures(part, card, before, short=True)
        return part_words.name(part, card), whole, short

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._draw()

    def caption_of(self, name: str, view: View) -> str:
        card = self._card
        return caption.words("" if card is None else card.name, [name], None, "")

    def views(self) -> Mapping[str, View]:
        if self._card is None:
            return {}
        card = {self.tr("Model card"): View(self._page, self._table)}
        parts = list(self._parts)
        picture = View(self.picture, lambda: model_map.table(parts))
        return {**card, self.tr("Picture of the model"): picture} if parts else card

    def _draw(self) -> None:
        card = self._card
        if card is None:
            self.show_empty()
            return
        self._name.setText(fitting(card.name))
        self._put(
            "source",
            card_text.paragraphs([*self._run_words(), self._source(card), *self._machine()]),
        )
        self._put("warnings", card_text.paragraphs(card.warnings))
        self._bodies["works"][0].setText(card_text.tested(card, self.tr))
        self._put("works", card_text.capabilities(card.capabilities, self.theme, self.tr))
        self._put("tokens", card_text.paragraphs(card_text.token_lines(card, self.tr)))
        self._draw_recipe()
        self.show_content()

    def _draw_recipe(self) -> None:
        recipe = self._recipe
        if recipe is None:
            words = self._problem or (
                self.tr("Reading the config…") if self._open
                else self.tr("A saved session does not contain the architecture. Open its model to "
                "see it.")
            )  # fmt: skip
            as_it_is = self._card is not None and self._card.form == "as-is"
            known = card_text.sizes(self._card, self.tr) if self._card and as_it_is else []
            self._put("recipe", card_text.paragraphs([*known, words]))
            self._put("compare", "")
            self._put("cache", "")
            return
        self._put("recipe", card_text.recipe_lines(recipe))
        compare = card_text.compare_rows(recipe, self.tr)
        self._put("compare", card_text.table(compare, self.theme, strong_last=True))
        self._put("cache", card_text.table(card_text.cache_rows(recipe, self.tr), self.theme))

    def _put(self, key: str, text: str) -> None:
        head, body = self._bodies[key]
        if body.text() != text:
            body.setText(text)
        head.setVisible(bool(text) and bool(head.text()))
        body.setVisible(bool(text))

    def _run_words(self) -> list[str]:
        if not self._run:
            return []
        return [self.tr("This is the open model. The run on screen is of {0}.").format(self._run)]

    def _machine(self) -> list[str]:
        """Whose processor computes, if it is not this computer's."""
        host, differs = self._there
        if not host:
            return []
        return [self.tr("The engine runs on {0}.").format(host), *filter(None, [differs])]

    def _source(self, card: ModelCard) -> str:
        how = [card.source, card.dtype]
        if card.form == "as-is":
            how = as_is_words(card, self.tr)
        parts = [card.architecture, *how, where(card, self.tr), card.path]
        return " · ".join(part for part in parts if part)

    def _table(self) -> Iterator[Sequence[object]]:
        """Field and value; sentences in the order in which they are read."""
        card, recipe = self._card, self._recipe
        assert card is not None
        yield "field", "value"
        yield "model", card.name
        yield "architecture", card.architecture
        yield "source", card.source
        yield "form", card.form
        yield "cache_type_k", card.cache_type_k
        yield "gpu_layers", card.gpu_layers
        for line in card.warnings:
            yield "warning", line
        if recipe is not None:
            yield "parameters", recipe.parameters
            yield "parameters_rule_of_thumb", recipe.parameters_rule_of_thumb
            yield "tying_saves", recipe.tying_saves
            for dtype, size in recipe.kv_bytes_per_token.items():
                yield f"kv_bytes_per_token {dtype}", size
            for line in recipe.recipe:
                yield "recipe", line
        for one in card.capabilities:
            yield one.name, ("offered: " if one.offered else "not offered: ") + one.words
        for line in card_text.token_lines(card, self.tr):
            yield "tokens", line
