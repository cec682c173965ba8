"""A model's card and recipe as short rich texts, one a section; figures stay exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from explorer.figures.text import sentences
from explorer.figures.text.sentences import fitting
from explorer.trace.card import NOT_OFFERED, Capability, ModelCard
from explorer.trace.found_models import Recipe
from explorer.ui.look.theme import Theme
from explorer.wording import bytes_text

Tr = Callable[[str], str]
_GAP = 4  # pixels between paragraphs


def _letters(text: str) -> str:
    """Any text as letters of a rich one."""
    return escape(fitting(text))


def paragraphs(lines: Iterable[str]) -> str:
    """Plain sentences, one a paragraph."""
    return _stacked(_letters(line) for line in lines)


def _stacked(parts: Iterable[str]) -> str:
    return "".join(f'<p style="margin:0 0 {_GAP}px 0">{part}</p>' for part in parts)


def recipe_lines(recipe: Recipe) -> str:
    """The sentences of the recipe, the word before the first colon in bold."""
    return _stacked(_headed(line) for line in recipe.recipe)


def _headed(line: str) -> str:
    head, colon, rest = line.partition(":")
    short = colon and len(head) < 24
    return f"<b>{_letters(head)}</b>:{_letters(rest)}" if short else _letters(line)


def cache_rows(recipe: Recipe, tr: Tr) -> Iterator[Sequence[str]]:
    """KV bytes per token by dtype, and for a thousand tokens."""
    if not any(recipe.kv_bytes_per_token.values()):
        return
    yield tr("stored as"), tr("bytes per token"), tr("1,000 tokens")
    for dtype, size in recipe.kv_bytes_per_token.items():
        yield dtype, f"{size:,}", bytes_text(size * 1000)


def compare_rows(recipe: Recipe, tr: Tr) -> Iterator[Sequence[str]]:
    """The open model under its predecessors: the same design, scaled."""
    yield tr("model"), tr("year"), tr("layers"), tr("width"), tr("parameters")
    for row in recipe.compare:
        yield _row(row.name, str(row.year), row.layers, row.hidden_size, row.parameters)
    yield _row(recipe.model, "", recipe.layers, recipe.hidden_size, recipe.parameters)


def _row(name: str, year: str, layers: int, width: int, parameters: int) -> Sequence[str]:
    return name, year, f"{layers:,}", f"{width:,}", f"{parameters:,}"


def table(rows: Iterable[Sequence[str]], theme: Theme, strong_last: bool = False) -> str:
    """Cells in columns, numbers to the right; the first row is the heads."""
    rows = list(rows)
    if not rows:
        return ""
    lines = []
    for number, row in enumerate(rows):
        cells = []
        for column, text in enumerate(row):
            side = "left" if column == 0 else "right"
            shown = _letters(text)
            if number == 0:
                shown = f'<span style="color:{theme.muted}">{shown}</span>'
            elif strong_last and number == len(rows) - 1:
                shown = f"<b>{shown}</b>"
            cells.append(f'<td align="{side}" style="padding:1px 18px 1px 0">{shown}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table cellspacing=0>{''.join(lines)}</table>"


def capabilities(found: Sequence[Capability], theme: Theme, tr: Tr) -> str:
    """What the self-test found, each with a mark that is a word as well as a colour."""
    words = ((c, c.words.removeprefix(NOT_OFFERED) or c.name.replace("_", " ")) for c in found)
    return _stacked(_marked(c.offered, _sentence(what), theme, tr) for c, what in words)


def tested(card: ModelCard, tr: Tr) -> str:
    """The head of what the self-test found: when that was."""
    if card.tested:
        return tr("Features that work on this model (tested on {0}; unchanged since)").format(
            sentences.name(card.tested)
        )
    return tr("Features that work on this model (tested when it was opened)")


def _marked(good: bool, words: str, theme: Theme, tr: Tr) -> str:
    colour, mark = (theme.good, "✓") if good else (theme.danger, "✕")
    refused = tr("Not offered")
    spoken = "" if good else f"<b>{_letters(refused)}</b>: "
    return f'<span style="color:{colour}"><b>{mark}</b></span>&nbsp; {spoken}{_letters(words)}'


def _sentence(words: str) -> str:
    words = words[:1].upper() + words[1:]
    return words if words.endswith(".") else f"{words}."


def sizes(card: ModelCard, tr: Tr) -> list[str]:
    """What the card itself tells of the architecture, where the config is not known."""
    heads = tr("Attention: {0} heads of {1} numbers, {2} of keys and values.")
    lines = [
        tr("{0} layers of width {1:,}, {2:,} parameters.").format(
            card.layers, card.hidden_size, card.parameters
        ),
        heads.format(card.heads, card.head_dim, card.kv_heads) if card.heads else "",
        tr("Vocabulary: {0:,} tokens.").format(card.vocab_size),
        tr("Built for texts of up to {0:,} tokens.").format(card.context) if card.context else "",
    ]
    return [line for line in lines if line]


def token_lines(card: ModelCard, tr: Tr) -> list[str]:
    """How text becomes tokens here, and which tokens end a run."""
    ends = ", ".join(map(str, card.eos_ids))
    return [
        line
        for line in (
            card.bos_policy,
            tr("Padding: {0}").format(_sentence(card.pad_note)) if card.pad_note else "",
            tr("End tokens: {0}.").format(ends)
            if ends
            else tr("This model has no end token. A run continues until you pause it."),
            _missing(card, tr),
        )
        if line
    ]


def _missing(card: ModelCard, tr: Tr) -> str:
    if not card.missing_bytes:
        return ""
    names = ", ".join(f"0x{byte:02X}" for byte in card.missing_bytes[:24])
    more = ", …" if len(card.missing_bytes) > 24 else ""
    return tr("{0} byte values are missing from the vocabulary: {1}{2}.").format(
        len(card.missing_bytes), names, more
    )
