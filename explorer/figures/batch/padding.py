"""A padded batch in figures and words: what was fed, where it is read, and what a mistake did."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.figures.batch.token_grid import Cell, GridBlock, GridChart, GridLine, Mood, Share
from explorer.figures.text.characters import elide
from explorer.figures.text.tokens import written
from explorer.trace.batch import BatchRequest, BatchResult, BatchRow, Mistake, Ranked, Reading
from explorer.trace.step import Token
from explorer.wording import exact_percent, percent

SHOWN = 3  # tokens of each distribution
_LONGEST = 14  # characters of a token in its box
LAST_SLOT = "[:, -1]"
PAD = "pad"  # in place of the padding token's own text, which may be long

TITLES: dict[Mistake, str] = {
    "readout": "Read the last slot, logits[:, -1]",
    "positions": "Pass no position ids",
    "mask": "Pass no attention mask (all ones)",
}
BREAKS: dict[Mistake, str] = {
    "readout": "The answer is taken from the last slot, whatever it holds. With right padding that "
    "is a padding slot in every shorter row.",
    "positions": "The model then numbers the slots, padding included. With left padding a prompt "
    "no longer starts at position 0.",
    "mask": "Padding is then read like text by every token that comes after it.",
}


def blocks(result: BatchResult) -> tuple[GridBlock, ...]:
    """One a row: tokens, mask, positions and readout, then three distributions."""
    return tuple(_block(result, number, row) for number, row in enumerate(result.rows, 1))


def _block(result: BatchResult, number: int, row: BatchRow) -> GridBlock:
    last = len(row.tokens) - 1
    charts = (
        _chart("run alone", "alone", "plain", row.alone, "What the prompt gives by itself."),
        _read("at its last token", "here", row.at_last_real, result.tolerance),
        _read(f"at {LAST_SLOT}", LAST_SLOT, row.at_last_slot, result.tolerance),
    )
    return GridBlock(
        title=f"Prompt {number}: {verdict_words(row)}, max |Δ logit| "
        f"{row.max_abs_diff_vs_alone:.2g}",
        mood="good" if row.verdict == "right" else "bad",
        lines=(
            GridLine("tokens", tuple(_token(row, slot) for slot in range(last + 1))),
            GridLine(
                "mask",
                tuple(_bit(row, slot) for slot in range(last + 1)),
                "1 = may be read by later tokens, 0 = hidden from them",
            ),
            GridLine(
                "position",
                tuple(_position(row, slot) for slot in range(last + 1)),
                "The number that tells the model how far along a token is",
            ),
            GridLine("read", tuple(_mark(row, slot) for slot in range(last + 1))),
        ),
        charts=charts,
        notes=_notes(row),
    )


def verdict_words(row: BatchRow) -> str:
    """The verdict; a mistake that does not show is named as such."""
    if row.immune:
        return "correct, the mistake does not show"
    return "correct" if row.verdict == "right" else row.verdict


def _token(row: BatchRow, slot: int) -> Cell:
    token = row.tokens[slot]
    kind = "a token of the prompt" if row.real[slot] else "padding"
    return Cell(
        text=elide(written(token), _LONGEST) if row.real[slot] else PAD,
        tip=f"slot {slot}: {written(token)}, id {token.id}, {kind}",
        token=token,
        mood="good" if slot == row.last_real else "bad",
        framed=slot == row.readout,
    )


def _bit(row: BatchRow, slot: int) -> Cell:
    bit = row.attention_mask[slot]
    wrong = bit != row.real[slot]
    what = "may be read" if bit else "is hidden"
    tip = f"slot {slot} {what}" + (": wrong, it is padding" if wrong else "")
    return Cell(str(bit), tip, mood="bad" if wrong else "plain" if bit else "muted")


def _position(row: BatchRow, slot: int) -> Cell:
    position = row.position_ids[slot]
    if not row.real[slot]:
        tip = f"slot {slot} is padding: position {position} only fills the place"
        return Cell(str(position), tip, mood="muted")
    due = sum(row.real[:slot])
    tip = f"slot {slot} is at position {position}"
    if position != due:
        tip += f", but it is token {due} of its prompt"
    return Cell(str(position), tip, mood="plain" if position == due else "bad")


def _mark(row: BatchRow, slot: int) -> Cell | None:
    last = len(row.tokens) - 1
    if slot == row.last_real == last:
        tip = "Its last token is in the last slot: both ways of reading agree."
        return Cell(f"▲ here = {LAST_SLOT}", tip, mood="good")
    if slot == row.last_real:
        return Cell("▲ here", "Read here: the answer to this prompt.", mood="good")
    if slot == last:
        tip = f"logits{LAST_SLOT} reads here: padding, not the end of this prompt."
        return Cell(f"▲ {LAST_SLOT}", tip, mood="bad")
    return None


def _read(title: str, short: str, reading: Reading, tolerance: float) -> GridChart:
    same = reading.max_abs_diff <= tolerance
    sign = "✓" if same else f"✕ Δ {reading.max_abs_diff:.2g}"
    tip = f"slot {reading.slot}: max |Δ logit| {reading.max_abs_diff:.3g} against the row alone"
    mood: Mood = "good" if same else "bad"
    return _chart(f"{title} {sign}", f"{short} {sign[0]}", mood, reading.top, tip)


def _chart(title: str, short: str, mood: Mood, top: tuple[Ranked, ...], tip: str) -> GridChart:
    shares = tuple(
        Share(written(one.token), one.probability, percent(one.probability)) for one in top[:SHOWN]
    )
    more = "\n".join(f"{written(one.token)}  {exact_percent(one.probability)}" for one in top)
    return GridChart(title, short, mood, shares, f"{tip}\n{more}")


def _notes(row: BatchRow) -> tuple[tuple[str, str], ...]:
    if len(row.generated) < 2 and len(row.generated_alone) < 2:
        return ()
    goes_on = " ".join(map(written, row.generated))
    if row.generated == row.generated_alone:
        return (("goes on", f"{goes_on}   (as it does alone)"),)
    return (("goes on", goes_on), ("alone", " ".join(map(written, row.generated_alone))))


def finding(result: BatchResult) -> str:
    """What this batch shows, in plain sentences with its figures."""
    if result.request.wrong:
        return _with_mistakes(result)
    whole = f"every row equals itself alone (max |Δ logit| {_worst(result):.2g})"
    inside = [row for row in result.rows if row.last_real != len(row.tokens) - 1]
    if not any(0 in row.real for row in result.rows):
        return f"All rows are equally long, so there is no padding, and {whole}."
    if not inside:
        return (
            "Padding on the left: every row ends with its own last token, so "
            f"logits{LAST_SLOT} reads the right slot in every row, and {whole}."
        )
    off = max(inside, key=_tells)
    ends = f"{len(inside)} of {len(result.rows)} rows {'ends' if len(inside) == 1 else 'end'}"
    return (
        f"Padding on the right: {ends} in padding. logits{LAST_SLOT} reads the last slot, so there "
        f"it gets what follows padding: {_instead(result, off, off.at_last_slot)} Read at its last "
        f"token, {whole}."
    )


def _tells(row: BatchRow) -> tuple[bool, float]:
    """The best example is the row whose answer changes, and was surest."""
    right, wrong = row.alone[0], row.at_last_slot.top[0]
    return right.token.id != wrong.token.id, right.probability


def _instead(result: BatchResult, row: BatchRow, reading: Reading) -> str:
    number = result.rows.index(row) + 1
    wrong, right = reading.top[0], row.alone[0]
    if wrong.token.id == right.token.id:
        return (
            f"prompt {number} is off by {reading.max_abs_diff:.3g} in the logits, though its first "
            f"choice stays {_quoted(right.token)}."
        )
    return (
        f"prompt {number} answers {_quoted(wrong.token)} ({percent(wrong.probability)}) instead of "
        f"{_quoted(right.token)} ({percent(right.probability)})."
    )


def _quoted(token: Token) -> str:
    """For sentences: in quotes, and kept from turning the reading order around."""
    return f"'\u2068{written(token)}\u2069'"


def _with_mistakes(result: BatchResult) -> str:
    made = " and ".join(_lower(TITLES[mistake]) for mistake in result.request.wrong)
    broken = [row for row in result.rows if row.verdict != "right"]
    if not broken:
        return (
            f"Wrong on purpose: {made}. No row shows it here: every one equals itself alone "
            f"(max |Δ logit| {_worst(result):.2g})."
        )
    worst = max(broken, key=lambda row: row.max_abs_diff_vs_alone)
    read = worst.at_last_real if worst.readout == worst.last_real else worst.at_last_slot
    later = read.max_abs_diff <= result.tolerance
    words = "it shows from the second step on." if later else _instead(result, worst, read)
    return (
        f"Wrong on purpose: {made}. {len(broken)} of {len(result.rows)} rows differ from "
        f"themselves alone, by up to {worst.max_abs_diff_vs_alone:.3g} in the logits: {words}"
    )


def _lower(title: str) -> str:
    return title[0].lower() + title[1:]


def _worst(result: BatchResult) -> float:
    return max(row.max_abs_diff_vs_alone for row in result.rows)


def effect_words(result: BatchResult, mistake: Mistake) -> str:
    """What one mistake by itself does to this batch, measured at the prefill."""
    gaps = [row.effects[mistake] for row in result.rows]
    moved = sum(gap > result.tolerance for gap in gaps)
    start = f"Measured, padded on the {result.request.padding}: "
    if moved:
        return f"{start}{moved} of {len(gaps)} rows move, by up to {max(gaps):.3g} in the logits."
    words = f"{start}no row moves (at most {max(gaps):.2g}), so it does no harm here."
    later = result.request.wrong == (mistake,) and any(r.verdict != "right" for r in result.rows)
    return words + (" It does in the steps after the prefill." if later else "")


def padding_words(result: BatchResult) -> str:
    """The padding token and where it comes from."""
    return f"Padding token: {written(result.pad)} (id {result.pad.id}). {result.pad_note}"


def made_with(result: BatchResult) -> str:
    """What the results are of: prompts, side, extra slots, steps, mistakes, model."""
    asked = result.request
    prompts, steps = len(asked.prompts), asked.steps
    parts = [
        f"padding {asked.padding}",
        f"extra {asked.extra}",
        "1 step" if steps == 1 else f"{steps} steps",
        "1 prompt" if prompts == 1 else f"{prompts} prompts",
        *(["chat"] if asked.chat else []),
        *(f"wrong {mistake}" for mistake in asked.wrong),
        result.model,
    ]
    return ", ".join(parts)


def same_batch(one: BatchRequest, other: BatchRequest) -> bool:
    """True if both give the same results; whether the loss is counted changes none of them."""
    return _what_counts(one) == _what_counts(other)


def _what_counts(asked: BatchRequest) -> tuple[object, ...]:
    wrong = frozenset(asked.wrong)
    return asked.prompts, asked.padding, asked.extra, asked.steps, wrong, asked.chat


def table(result: BatchResult) -> Iterator[tuple[object, ...]]:
    """Every slot of every row as plain values, a header first."""
    yield "prompt", "slot", "id", "text", "real", "attention_mask", "position_id", "read"
    for number, row in enumerate(result.rows, 1):
        slots = zip(row.tokens, row.real, row.attention_mask, row.position_ids, strict=True)
        for slot, (token, real, mask, position) in enumerate(slots):
            text = written(token)
            yield number, slot, token.id, text, real, mask, position, slot == row.readout
