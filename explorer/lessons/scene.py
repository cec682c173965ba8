"""What the screen shows, laid out beforehand: model, prompt, settings, tokens, selection, view.

A scene is a small TOML file.  What it leaves out is as at the first start of the program, so three
lines are enough.  Figures are never part of it: they are measured when it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from explorer.lessons.screen_names import LEAST_ZOOM, MOST_ZOOM, PANELS, THEMES, refusal
from explorer.lessons.toml_lines import Document, Path, known_only, read
from explorer.sampling import SamplingError, check
from explorer.trace.batch import MOST_ROWS, BatchRequest
from explorer.trace.experiments import (
    CacheExperiment,
    DrawMany,
    Experiment,
    PrefixExperiment,
    ReadSlot,
    ScorePrompt,
    SearchSequences,
)
from explorer.trace.files.saved_view import SavedView
from explorer.trace.interventions.context_policy import USUAL, ContextPolicy
from explorer.trace.interventions.lines import read as read_intervention
from explorer.trace.request import Form, RunRequest, Sampling, Stops
from explorer.trace.training.settings import Build, Mistake, Task, TrainingSettings

VERSION = 1
MOST_TOKENS = 2_000  # that a scene may generate
MOST_PADDING = 4_096
_DRAWN = ("temperature", "top_k", "top_p", "min_p")  # set, they mean that tokens are drawn
EXPERIMENTS: dict[str, type[Experiment]] = {
    "prefix": PrefixExperiment, "search": SearchSequences, "samples": DrawMany,
    "surprisal": ScorePrompt, "cache": CacheExperiment, "position": ReadSlot,
}  # fmt: skip
_SIZES: dict[str, tuple[str, ...]] = {
    "search": ("length", "width", "passes"), "samples": ("count", "length"), "cache": ("tokens",),
    "position": ("slot",), "prefix": (), "surprisal": (), "recipe": (),
}  # fmt: skip
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]*")

ExperimentName = Literal["prefix", "search", "samples", "surprisal", "cache", "position", "recipe"]
Side = Literal["none", "left", "right"]
Place = Annotated[int, Meta(ge=0, le=1_000_000)]
Few = Annotated[int, Meta(ge=0, le=MOST_TOKENS)]
ScriptLine = Annotated[str, Meta(max_length=100_000)]  # a patch names the tokens of a text
PanelId = Annotated[str, Meta(max_length=60)]


class ForcedToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One generated token that the scene chooses in place of the model."""

    step: Few  # counted from 0, as in files: 0 is the first generated token
    token: Annotated[str, Meta(max_length=200)] | Place  # its text, or its id


class ExperimentWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One experiment on the run of the scene; a size of 0 is the experiment's usual one."""

    name: ExperimentName
    count: Annotated[int, Meta(ge=0, le=10_000)] = 0  # samples: how many
    length: Annotated[int, Meta(ge=0, le=64)] = 0  # samples, search: tokens of each
    width: Annotated[int, Meta(ge=0, le=64)] = 0  # search: sequences kept at a time
    passes: Annotated[int, Meta(ge=0, le=5_000)] = 0  # search: at most
    tokens: Annotated[int, Meta(ge=0, le=1_000)] = 0  # cache: generated each way
    slot: Place = 0  # position: the one whose keys and values are read

    @property
    def settings(self) -> dict[str, int]:
        """What it sets, by the names of the experiment's own fields."""
        sizes = ("count", "length", "width", "passes", "tokens")
        given = {name: getattr(self, name) for name in sizes if getattr(self, name)}
        return {**given, "slot": self.slot} if self.name == "position" else given


class SceneTraining(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the training lab trains; what is left out is its preset."""

    steps: Annotated[int, Meta(ge=0, le=5_000)] = 0  # updates; 0 = as many as the preset
    build: Build = "modern"
    task: Task = "copy"
    seed: Place = 0
    wrong: Annotated[tuple[Mistake, ...], Meta(max_length=4)] = ()
    beside: bool = False  # the right run, too

    @property
    def runs(self) -> tuple[TrainingSettings, ...]:
        """One, or the right one and the wrong one."""
        usual = TrainingSettings(build=self.build, task=self.task, seed=self.seed)
        right = msgspec.structs.replace(usual, steps=self.steps) if self.steps else usual
        if not self.wrong:
            return (right,)
        wrong = msgspec.structs.replace(right, wrong=self.wrong)
        return (right, wrong) if self.beside else (wrong,)


class SceneView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the window shows it; empty and 0 mean: as it is."""

    shown: Annotated[tuple[PanelId, ...], Meta(max_length=40)] = ()  # IDs of panels
    in_front: Annotated[tuple[PanelId, ...], Meta(max_length=40)] = ()
    enlarged: PanelId = ""
    theme: PanelId = ""
    zoom: float = 0.0  # of everything; 1 = 100 %
    choices: Annotated[dict[str, dict[str, str | float]], Meta(max_length=40)] = {}  # by panel


class Scene(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One state of the screen that the program can bring about by itself."""

    version: Literal[1] = 1
    model: Annotated[str, Meta(max_length=100)] = ""  # as `models` names it; empty = the open one
    form: Form = ""  # of a .gguf file: as-is or float32; empty = the usual one
    prompt: Annotated[str, Meta(max_length=100_000)] = ""
    chat: bool = False
    special_as_text: bool = False
    causal_mask: bool = True
    cache: bool = True
    interventions: Annotated[tuple[ScriptLine, ...], Meta(max_length=4096)] = ()  # a line each
    context: ContextPolicy = USUAL  # what is done about a full context
    padding: Side = "none"
    pad: Annotated[int, Meta(ge=0, le=MOST_PADDING)] = 0
    sampling: Sampling = Sampling()
    stops: Stops = Stops()
    run: Few = 1  # tokens to generate; 0 = nothing is run
    force: Annotated[tuple[ForcedToken, ...], Meta(max_length=200)] = ()
    step: Few | None = None  # looked at, counted from 0; left out = the latest
    layer: Place = 0
    head: Place = 0
    query: Place | None = None  # position in the text, counted from 0
    key: Place | None = None
    # Also run with the causal mask the other way, or without interventions.
    compare: bool | Literal["interventions"] = False
    experiments: Annotated[tuple[ExperimentWish, ...], Meta(max_length=20)] = ()
    batch: BatchRequest | None = None  # of the padding lab
    train: SceneTraining | None = None  # in the training lab
    view: SceneView = SceneView()

    @property
    def needed_form(self) -> Form:
        """The form in which a .gguf file has to be open: only float32 is padded and changed.

        Nor can llama.cpp count distances in the cache.
        """
        changed = self.interventions or self.context.moves_sinks
        converted = self.batch is not None or self.side or changed
        return self.form or ("float32" if converted else "")

    @property
    def compare_of(self) -> Literal["mask", "interventions"]:
        """What differs on the other side, if there is one."""
        return "interventions" if self.compare == "interventions" else "mask"

    @property
    def side(self) -> Literal["left", "right"] | None:
        """The padding side as a request has it."""
        return None if self.padding == "none" or not self.pad else self.padding

    def request(self, base: RunRequest) -> RunRequest:
        """The pass that the scene asks for; the rest of the model is that of `base`."""
        return msgspec.structs.replace(
            base,
            prompt=self.prompt,
            chat=self.chat,
            special_as_text=self.special_as_text,
            causal_mask=self.causal_mask,
            cache=self.cache,
            interventions=tuple(map(read_intervention, self.interventions)),
            context=self.context,
            padding=self.side,
            pad=self.pad if self.side else 0,
            max_tokens=0,
            capture_every=1,
        )

    @property
    def saved_view(self) -> SavedView:
        """The view in the form that the window puts back."""
        view = self.view
        return SavedView(
            step=self.step, layer=self.layer, head=self.head, query=self.query, key=self.key,
            compare=bool(self.compare), compare_of=self.compare_of, theme=view.theme,
            zoom=view.zoom, shown=view.shown, in_front=view.in_front,
            enlarged=view.enlarged, choices=view.choices,
        )  # fmt: skip


def read_scene(text: str, file: str) -> Scene:
    """The scene in a file's text; LessonFileError with file and line if there is none."""
    document = read(text, file)
    return scene_of(document, document.values, ())


def scene_of(
    document: Document, table: Mapping[str, Any], at: Path, places: Mapping[str, Path] = {}
) -> Scene:
    """The scene in a table of a document; `places` as in `Document.convert`."""
    values = _plain(document, table, at, places)
    scene = document.convert(values, Scene, at, places)

    def error(name: str, words: str) -> Exception:
        return document.error((*places.get(name, at), name), words)

    if scene.model and not is_model_name(scene.model):
        raise error("model", "“model” must be a model's name, such as copycat; no path.")
    try:
        check(scene.sampling)
    except SamplingError as problem:
        raise error("sampling", str(problem)) from problem
    try:
        list(map(read_intervention, scene.interventions))
    except ValueError as problem:
        raise error("interventions", str(problem)) from problem
    if scene.compare == "interventions" and not scene.interventions:
        raise error("compare", "There are no “interventions” to compare the run without.")
    if scene.pad and scene.padding == "none":
        raise error("pad", "“pad” needs “padding”: left or right.")
    steps = [one.step for one in scene.force]
    if len(set(steps)) < len(steps) or max(steps, default=-1) >= scene.run:
        raise error("force", "Each step in “force” must be below “run”, and be named once.")
    if scene.step is not None and scene.step >= max(scene.run, 1):
        raise error("step", "“step” must be below “run”: the first generated token is step 0.")
    for wish in scene.experiments:
        for size in wish.settings:
            if size not in _SIZES[wish.name]:
                raise error("experiments", f"The experiment {wish.name} has no “{size}”.")
    if scene.batch is not None:
        _require_batch(scene.batch, error)
    if unknown := _unknown_in(scene.view):
        key, words = unknown
        raise document.error((*places.get("view", at), "view", *key), words)
    return scene


def _unknown_in(view: SceneView) -> tuple[Path, str] | None:
    """The first key of a view that names what the window does not have, and what to say."""
    for key in ("shown", "in_front", "choices"):
        for number, name in enumerate(getattr(view, key)):
            if words := refusal(name, PANELS, "panel"):
                return (key, name if key == "choices" else number), words
    if view.enlarged and (words := refusal(view.enlarged, PANELS, "panel")):
        return ("enlarged",), words
    if view.theme and (words := refusal(view.theme, THEMES, "theme")):
        return ("theme",), words
    if view.zoom and not LEAST_ZOOM <= view.zoom <= MOST_ZOOM:
        return ("zoom",), f"“zoom” must be a number from {LEAST_ZOOM} to {MOST_ZOOM}."
    return None


def is_model_name(text: str) -> bool:
    """True if it names a model, and no file or folder."""
    return bool(_MODEL.fullmatch(text)) and not text.lower().endswith((".gguf", ".dxt"))


def _plain(
    document: Document, table: Mapping[str, Any], at: Path, places: Mapping[str, Path]
) -> dict[str, Any]:
    """The table with short forms written out, and unknown keys of shared structs refused."""
    values = dict(table)
    structs = {
        "sampling": Sampling, "stops": Stops, "batch": BatchRequest, "context": ContextPolicy,
    }  # fmt: skip
    for name, kind in structs.items():
        if isinstance(values.get(name), dict):
            known_only(
                document, values[name], kind.__struct_fields__, (*places.get(name, at), name)
            )
    found = values.get("view")
    view: dict[str, Any] = found if isinstance(found, dict) else {}
    for name in ("shown", "in_front"):
        if isinstance(view.get(name), str):
            words = f'“{name}” must be a list: write ["{view[name][:60]}"].'
            raise document.error((*places.get("view", at), "view", name), words)
    sampling = values.get("sampling")
    if isinstance(sampling, dict) and "greedy" not in sampling:
        drawn = any(name in sampling for name in _DRAWN)
        values["sampling"] = {**sampling, "greedy": not drawn}
    if isinstance(values.get("experiments"), list):
        named = [{"name": one} if isinstance(one, str) else one for one in values["experiments"]]
        values["experiments"] = named
    return values


def _require_batch(batch: BatchRequest, error: Any) -> None:
    size = sum(map(len, batch.prompts))
    if not 1 <= len(batch.prompts) <= MOST_ROWS or not all(batch.prompts) or size > 100_000:
        raise error("batch", f"A batch needs 1 to {MOST_ROWS} prompts, none of them empty.")
    if not (1 <= batch.steps <= 200 and 0 <= batch.extra <= 4_096):
        raise error("batch", "A batch has 1 to 200 steps and at most 4,096 extra slots.")


def write_scene(scene: Scene) -> str:
    """The scene as TOML: what differs from the first start, in the order of the fields."""
    import tomlkit

    return tomlkit.dumps({"version": VERSION, **_changes(scene, Scene())})


def _changes(value: msgspec.Struct, usual: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in value.__struct_fields__:
        mine, plain = getattr(value, name), getattr(usual, name, None)
        if mine == plain or mine is None:
            continue
        if isinstance(mine, Sampling):
            found[name] = {"greedy": mine.greedy, **_changes(mine, Sampling())}
        elif isinstance(mine, BatchRequest):
            found[name] = {
                "prompts": list(mine.prompts),
                **_changes(mine, BatchRequest(prompts=())),
            }
        elif isinstance(mine, msgspec.Struct):
            found[name] = _changes(mine, plain) if plain is not None else msgspec.to_builtins(mine)
        elif name == "experiments":
            found[name] = [{"name": one.name, **one.settings} for one in mine]
        else:
            found[name] = msgspec.to_builtins(mine)
    return found
