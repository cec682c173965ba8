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
    "readout": "Read the last position, logits[:, -1]",
    "positions": "Pass no position ids",
    "mask": "Pass no attention mask (all ones)",
}
BREAKS: dict[Mistake, str] = {
    "readout": "The answer is read at the last position. With right padding that is a padding "
    "token in every shorter row.",
    "positions": "Padding is then numbered like text. With left padding a prompt no longer starts "
    "at position 0.",
    "mask": "Every later token then attends to the padding as if it were text.",
}


def blocks(result: BatchResult) -> tuple[GridBlock, ...]:
    """One a row: tokens, mask, positions and readout, then three distributions."""
    return tuple(_block(result, number, row) for number, row in enumerate(result.rows, 1))


def _block(result: BatchResult, number: int, row: BatchRow) -> GridBlock:
    last = len(row.tokens) - 1
    charts = (
        _chart(
            "run alone", "alone", "plain", row.alone, "The prompt run on its own, without padding."
        ),
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
                "1: later tokens may attend to it. 0: it is masked.",
            ),
            GridLine(
                "position",
                tuple(_position(row, slot) for slot in range(last + 1)),
                "Position id: tells the model where the token is in the text",
            ),
            GridLine("read", tuple(_mark(row, slot) for slot in range(last + 1))),
        ),
        charts=charts,
        notes=_notes(row),
    )


def verdict_words(row: BatchRow) -> str:
    """The verdict; a mistake that does not show is named as such."""
    if row.immune:
        return "correct (the mistake has no effect)"
    return "correct" if row.verdict == "right" else row.verdict


def _token(row: BatchRow, slot: int) -> Cell:
    token = row.tokens[slot]
    kind = "a token of the prompt" if row.real[slot] else "padding"
    return Cell(
        text=elide(written(token), _LONGEST) if row.real[slot] else PAD,
        tip=f"position {slot}: {written(token)}, id {token.id}, {kind}",
        token=token,
        mood="good" if slot == row.last_real else "bad",
        framed=slot == row.readout,
    )


def _bit(row: BatchRow, slot: int) -> Cell:
    bit = row.attention_mask[slot]
    wrong = bit != row.real[slot]
    what = "attended" if bit else "masked"
    tip = f"position {slot}: {what}" + (" (wrong: it is padding)" if wrong else "")
    return Cell(str(bit), tip, mood="bad" if wrong else "plain" if bit else "muted")


def _position(row: BatchRow, slot: int) -> Cell:
    position = row.position_ids[slot]
    if not row.real[slot]:
        tip = f"padding: position id {position} has no effect"
        return Cell(str(position), tip, mood="muted")
    due = sum(row.real[:slot])
    tip = f"position id {position}"
    if position != due:
        tip += f" (should be {due})"
    return Cell(str(position), tip, mood="plain" if position == due else "bad")


def _mark(row: BatchRow, slot: int) -> Cell | None:
    last = len(row.tokens) - 1
    if slot == row.last_real == last:
        tip = "The last token is in the last position: both readings agree."
        return Cell(f"▲ here = {LAST_SLOT}", tip, mood="good")
    if slot == row.last_real:
        return Cell("▲ here", "The answer to this prompt is read here.", mood="good")
    if slot == last:
        tip = f"logits{LAST_SLOT} reads here: padding, not the end of the prompt."
        return Cell(f"▲ {LAST_SLOT}", tip, mood="bad")
    return None


def _read(title: str, short: str, reading: Reading, tolerance: float) -> GridChart:
    same = reading.max_abs_diff <= tolerance
    sign = "✓" if same else f"✕ Δ {reading.max_abs_diff:.2g}"
    tip = (
        f"position {reading.slot}: max |Δ logit| {reading.max_abs_diff:.3g} from the prompt "
        "run alone"
    )
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
        return (("continues", f"{goes_on}   (same as alone)"),)
    return (("continues", goes_on), ("alone", " ".join(map(written, row.generated_alone))))


def finding(result: BatchResult) -> str:
    """What this batch shows, in plain sentences with its figures."""
    if result.request.wrong:
        return _with_mistakes(result)
    whole = f"every row matches its prompt run alone (max |Δ logit| {_worst(result):.2g})"
    inside = [row for row in result.rows if row.last_real != len(row.tokens) - 1]
    if not any(0 in row.real for row in result.rows):
        return f"All prompts have the same length, so there is no padding. {_upper(whole)}."
    if not inside:
        return (
            "Left padding: every row ends with its own last token, so "
            f"logits{LAST_SLOT} reads the right position. {_upper(whole)}."
        )
    off = max(inside, key=_tells)
    ends = f"{len(inside)} of {len(result.rows)} rows {'ends' if len(inside) == 1 else 'end'}"
    return (
        f"Right padding: {ends} in padding. There logits{LAST_SLOT} reads a padding position: "
        f"{_instead(result, off, off.at_last_slot)} Read at its last token, {whole}."
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
            f"the logits of prompt {number} are off by {reading.max_abs_diff:.3g}, but its top "
            f"token is still {_quoted(right.token)}."
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
            f"Deliberate mistake: {made}. It has no effect here: every row matches its prompt run "
            f"alone (max |Δ logit| {_worst(result):.2g})."
        )
    worst = max(broken, key=lambda row: row.max_abs_diff_vs_alone)
    read = worst.at_last_real if worst.readout == worst.last_real else worst.at_last_slot
    later = read.max_abs_diff <= result.tolerance
    words = "the effect starts with the second token." if later else _instead(result, worst, read)
    return (
        f"Deliberate mistake: {made}. {len(broken)} of {len(result.rows)} rows differ from their "
        f"prompts run alone, by up to {worst.max_abs_diff_vs_alone:.3g} in the logits: {words}"
    )


def _upper(words: str) -> str:
    return words[0].upper() + words[1:]


def _lower(title: str) -> str:
    return title[0].lower() + title[1:]


def _worst(result: BatchResult) -> float:
    return max(row.max_abs_diff_vs_alone for row in result.rows)


def effect_words(result: BatchResult, mistake: Mistake) -> str:
    """What one mistake by itself does to this batch, measured at the prefill."""
    gaps = [row.effects[mistake] for row in result.rows]
    moved = sum(gap > result.tolerance for gap in gaps)
    start = f"Measured with {result.request.padding} padding: "
    if moved:
        return f"{start}{moved} of {len(gaps)} rows change, by up to {max(gaps):.3g} in the logits."
    words = f"{start}no row changes (at most {max(gaps):.2g}), so it does no harm here."
    later = result.request.wrong == (mistake,) and any(r.verdict != "right" for r in result.rows)
    return words + (" It does after the first token." if later else "")


def padding_words(result: BatchResult) -> str:
    """The padding token and where it comes from."""
    return f"Padding token: {written(result.pad)} (id {result.pad.id}). {result.pad_note}"


def made_with(result: BatchResult) -> str:
    """What the results are of: prompts, side, extra slots, steps, mistakes, model."""
    asked = result.request
    prompts, steps = len(asked.prompts), asked.steps
    parts = [
        f"{asked.padding} padding",
        f"extra {asked.extra}",
        "1 token" if steps == 1 else f"{steps} tokens",
        "1 prompt" if prompts == 1 else f"{prompts} prompts",
        *(["chat"] if asked.chat else []),
        *(f"mistake: {mistake}" for mistake in asked.wrong),
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
