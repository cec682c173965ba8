"""A run as a script: plain transformers and torch do the same again, from tokens to the last draw.

The script is in cells, each with a line that says what it does, so that a notebook is made of the
same.  It reads the whole text at every step: slower than a cache, with the same numbers.
"""

from __future__ import annotations

import pprint
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from explorer import __version__
from explorer.notebooks import model_place
from explorer.notebooks import script_parts as parts
from explorer.notebooks.model_place import ModelPlace
from explorer.trace.card import ModelCard
from explorer.trace.interventions.kinds import Cells, Scale, Silence, brief
from explorer.trace.request import Sampling
from explorer.trace.trace import Trace

TOP = 20  # tokens named at each step
_WIDTH = 96  # letters of a line
_SILENCE = re.compile(r"silence \d+(\.\d+)?")  # a head or a layer
_KINDS = {"full": "full_attention", "sliding": "sliding_attention"}


class ScriptError(ValueError):
    """Why a run can't be written as a script, in one sentence with a next step."""


@dataclass(frozen=True, slots=True)
class ScriptCell:
    """One cell: text for a reader, or Python."""

    kind: Literal["markdown", "code"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnScreen:
    """What of a run is looked at: the script shows the same map and step."""

    step: int = 0
    layer: int = 0
    head: int = 0
    query: int | None = None  # slot; None = the readout of the step


def python(cells: list[ScriptCell]) -> str:
    """The cells as one script, with the marks that editors know cells by."""
    told = [_as_comment(cell.text) if cell.kind == "markdown" else cell.text for cell in cells]
    return "\n".join(part if part.endswith("\n") else part + "\n" for part in told)


def cells(trace: Trace, card: ModelCard, seen: OnScreen) -> list[ScriptCell]:
    """The script of a run; `card` knows where the model is (an empty path: the reader fills it in).

    ScriptError if plain transformers can't do the same, or nothing has run.
    """
    if not trace.steps:
        raise ScriptError("There is no run yet. Press Step, then try again.")
    if any(step.left_out for step in trace.steps):
        raise ScriptError(
            "Turns were left out while this answer was written, which a few lines of plain "
            "transformers don't do. Choose a higher limit, press Step, then try again."
        )
    return list(_cells(trace, card, seen))


def _cells(trace: Trace, card: ModelCard, seen: OnScreen) -> Iterator[ScriptCell]:
    place = model_place.of(card.path, _one_line(trace.model_name))
    for title, source in _chapters(trace, place, seen):
        yield ScriptCell("markdown", title)
        yield ScriptCell("code", source)


def _chapters(trace: Trace, place: ModelPlace, seen: OnScreen) -> Iterator[tuple[str, str]]:
    yield _heading(trace, place), parts.IMPORTS
    asked = place.assignment + _prompt(trace) + _settings(trace) + _look(trace, seen)
    yield "## What was run\nThe model, the prompt and the settings of the run.", asked
    words = "## The model\nWith eager attention, which returns its maps."
    yield words, _load(trace, place)
    if trace.request.changes:
        words = "## Interventions\nWhat the run changes in the model. Places are counted from 0."
        yield words, _interventions(trace)
    yield "## Tokens", _tokens(trace)
    words = "## One pass\nThe mask, the positions, and the model called once."
    yield words, f"{_mask(trace)}\n\n{parts.FORWARD}"
    yield "## Sampling\nEach setting in its order, then one random number.", parts.SAMPLING
    yield "## Generation\nOne pass and one token at each step.", parts.GENERATE
    yield "## Result\nThe last line is the same as JSON.", parts.REPORT
    yield "## Pictures\nThey need matplotlib.", parts.PLOT


def _heading(trace: Trace, place: ModelPlace) -> str:
    versions = trace.card.versions
    more = ", and for the .gguf file accelerate and gguf" if place.is_gguf else ""
    named = ", ".join(f"{name} {versions[name]}" for name in sorted(versions))
    made_with = f" with {named}." if named else "."
    told = [
        "# A run of Decoder Explorer, repeated with plain transformers",
        f"Model {_one_line(trace.model_name)}, {len(trace.steps)} generated tokens. "
        f"Recorded by Decoder Explorer {__version__}{made_with}",
        f"It needs numpy, torch, transformers 5.24 or newer{more}.",
    ]
    return "\n".join(told)


def _one_line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())


def _as_comment(text: str) -> str:
    title, *rest = text.splitlines()
    return "\n".join([f"# %% {title.lstrip('# ')}", *(f"# {line}" for line in rest)])


# -- the settings


def _prompt(trace: Trace) -> str:
    request = trace.request
    pads = [token.id for token in trace.prompt if token.origin == "padding"]
    ids = [token.id for token in trace.prompt if token.origin != "padding"]
    lines = [_named("PROMPT", request.prompt), _named("PROMPT_IDS", ids)]
    if pads:
        lines.append(f"PAD, PAD_ID = {len(pads)}, {pads[0]}  # on the {request.padding}\n")
    return "".join(lines) + f"FIRST_POSITION = {_first_position(trace)}\n"


def _first_position(trace: Trace) -> int:
    """The number that the model was given for the first real token."""
    first = next(i for i, token in enumerate(trace.prompt) if token.origin != "padding")
    step = trace.steps[0]
    read = max(first, step.first_slot)  # slots before may have been in the cache
    return step.position_ids[read - step.first_slot] - (read - first)


def _settings(trace: Trace) -> str:
    different: list[Sampling] = []
    which = []
    for step in trace.steps:
        if step.sampling not in different:
            different.append(step.sampling)
        which.append(different.index(step.sampling))
    told = [msgspec.to_builtins(sampling) for sampling in different]
    told = [{**one, "order": list(one["order"])} for one in told]
    of = f"[0] * {len(which)}\n" if len(different) == 1 else f"{_wrapped(which)}\n"
    forced = {step.index: step.draw.token_id for step in trace.steps if step.draw.how == "forced"}
    return (
        f"STEPS = {len(trace.steps)}\n"
        + _named("SAMPLING", told)
        + f"SAMPLING_OF = {of}"
        + f"FORCED = {forced}  # step: the token that you chose\n"
    )


def _look(trace: Trace, seen: OnScreen) -> str:
    step = min(seen.step, len(trace.steps) - 1)
    slots = trace.read_slots(step)
    query = trace.steps[step].readout if seen.query is None else min(seen.query, slots - 1)
    return (
        f"STEP, LAYER, HEAD, QUERY = {step}, {seen.layer}, {seen.head}, {query}"
        f"  # on screen, counted from 0\nTOP = {TOP}\n"
    )


def _named(name: str, value: object) -> str:
    return f"{name} = {_wrapped(value)}\n"


def _wrapped(value: object) -> str:
    """The value as Python writes it, in lines that can be read."""
    short = repr(value)
    if len(short) < _WIDTH - 16:
        return short
    if isinstance(value, str):
        return f"(\n{_indented(pprint.pformat(value, width=_WIDTH - 4))}\n)"
    return pprint.pformat(value, width=_WIDTH, compact=True, sort_dicts=False)


def _indented(text: str) -> str:
    """A string that pprint broke into pieces, without its brackets."""
    bare = text.removeprefix("(").removesuffix(")")
    return "\n".join(f"    {line.strip()}" for line in bare.splitlines())


# -- the parts that depend on them


AS_IT_IS = (
    "# llama.cpp made this run, on the weights as the file stores them. transformers converts\n"
    "# them to float32, so probabilities differ a little, and a close choice may, too.\n"
)


def _load(trace: Trace, place: ModelPlace) -> str:
    gguf = ", gguf_file=GGUF_FILE" if place.is_gguf else ""
    return (
        (AS_IT_IS if trace.request.form == "as-is" else "")
        + f"tokenizer = AutoTokenizer.from_pretrained(MODEL{gguf})\n"
        "model = AutoModelForCausalLM.from_pretrained(\n"
        f"    MODEL{gguf}, dtype=torch.{trace.request.dtype}, "
        'attn_implementation="eager"\n).eval()\n'
    )


def _interventions(trace: Trace) -> str:
    """As tuples, in their order, and the code that carries them out; ScriptError for others."""
    silenced, silent, cells, scales = [], [], [], []
    if trace.request.context.moves_sinks:
        raise ScriptError(
            "Plain transformers can't count distances in the cache. Count them in the text, press "
            "Step, then try again."
        )
    for one in trace.request.changes:
        line = str(one)
        if isinstance(one, Silence) and _SILENCE.fullmatch(line):
            if one.part == "head":
                silenced.append((one.layer, one.head))
            else:
                silent.append(one.layer)
        elif isinstance(one, Cells) and line.startswith(("cut ", "allow ")):
            allowed = line.startswith("allow ")
            cells.append((one.layer, one.head, one.queries, one.keys, one.back, allowed))
        elif isinstance(one, Scale):
            scales.append((one.layer, one.head, one.factor))
        else:
            raise ScriptError(
                f"Plain transformers can't be given '{brief(one)}' in a few lines. "
                "Take it back, press Step, then try again."
            )
    told = ""
    if silenced or cells or scales:
        told += "# None = all; cells: layer, head, queries, keys, how far back, allowed\n"
        told += _named("SILENCED", silenced) + _named("CELLS", cells) + _named("SCALES", scales)
        told += f"\n\n{parts.CHANGED_ATTENTION}"
    if silent:
        told += "\n\n" if told else ""
        told += f"LAYERS, SILENT = {trace.card.layers}, {silent}\n\n\n{parts.SILENT_LAYERS}"
    return told


def _tokens(trace: Trace) -> str:
    request = trace.request
    how = parts.TOKENIZE_LETTERS if request.special_as_text else parts.TOKENIZE_TEXT
    padding = {"left": parts.PAD_LEFT, "right": parts.PAD_RIGHT}
    padded = any(token.origin == "padding" for token in trace.prompt)
    if request.typed:
        how = (parts.TOKENIZE_CHAT if request.chat else how) + parts.COMPARE_TOKENS
    else:
        how = parts.GIVEN_TOKENS
    return how + (padding[request.padding] if padded and request.padding else "")


def _mask(trace: Trace) -> str:
    if trace.request.causal_mask:
        return parts.CAUSAL_MASK
    return f"WINDOWS = {_windows(trace.card)}  # per kind of layer; 0 = none\n\n\n{parts.OPEN_MASK}"


def _windows(card: ModelCard) -> dict[str, int]:
    """The sliding window of each kind of layer, by transformers' name for the kind."""
    kinds = card.layer_kinds or ("full",)
    windows = card.windows or (0,) * len(kinds)
    found: dict[str, set[int]] = {}
    for kind, window in zip(kinds, windows, strict=True):
        found.setdefault(kind, set()).add(window)
    if any(kind not in _KINDS or len(sizes) > 1 for kind, sizes in found.items()):
        raise ScriptError(
            "This model mixes kinds of attention for which plain transformers takes no mask "
            "from outside. Turn the causal mask on, then try again."
        )
    return {_KINDS[kind]: next(iter(sizes)) for kind, sizes in found.items()}
