"""The tokens that a run asks for: a text, one message in the chat template, or a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from explorer.engine.errors import BadInput
from explorer.engine.text.encoding import Encoded, ModelTokenizer
from explorer.trace.chat import Message
from explorer.trace.request import RunRequest
from explorer.trace.wire.messages import Tokenize, Tokens


def encoded(tokenizer: ModelTokenizer, request: RunRequest, context: int) -> Encoded:
    """The prompt of a run without its padding, on a model of this context (0 = not stated).

    BadInput if it has no tokens, or a conversation's last turn alone takes more than may be read.
    """
    found = _encoded(tokenizer, request, context)
    if found.problem and not found.tokens:
        raise BadInput(found.problem)
    return found


def live(tokenizer: ModelTokenizer, asked: Tokenize, context: int) -> Tokens:
    """The answer about a text that is being typed; what is wrong with it is said in words."""
    answer = Tokens(run=asked.run, text=asked.request.prompt, tokens=())
    try:
        found = _encoded(tokenizer, asked.request, context)
    except BadInput as error:
        return msgspec.structs.replace(answer, problem=error.sentence)
    return msgspec.structs.replace(
        answer,
        tokens=found.tokens,
        problem=found.problem,
        note=found.note,
        parts=found.parts,
        turns=found.turns,
    )


def without_oldest(messages: Sequence[Message], kept: Sequence[int]) -> list[int]:
    """`kept` without its oldest turn, system messages left; empty if it is the last one.

    A turn is a message of the user with the answers to it; the first one begins with the first
    message that is no system message.
    """
    said = [i for i in kept if messages[i].role != "system"]
    later = [i for i in said[1:] if messages[i].role == "user"]
    return [i for i in kept if i not in said or i >= later[0]] if later else []


def _fitting(tokenizer: ModelTokenizer, request: RunRequest, most: int) -> Encoded:
    """A conversation without its oldest turns; BadInput if the last one alone is too long.

    System messages stay.  A turn of the user goes with the answers to it, so that roles alternate
    as before.
    """
    kept = list(range(len(request.messages)))  # by their places in the whole conversation
    while True:
        messages = tuple(request.messages[i] for i in kept)
        found = _as_asked(tokenizer, msgspec.structs.replace(request, messages=messages))
        if len(found.tokens) <= most:
            break
        kept = without_oldest(request.messages, kept)
        if not kept:
            raise BadInput(
                f"The last turn takes {len(found.tokens):,} tokens, and at most {most:,} fit. "
                "Shorten it."
            )
    gone = len(request.messages) - len(kept)
    if not gone:
        return found
    turned = [
        turn if turn.message is None else msgspec.structs.replace(turn, message=kept[turn.message])
        for turn in found.turns
    ]
    words = f"{gone} messages were left out: the oldest, to fit in {most:,} tokens."
    return replace(found, note=_joined(words, found.note), turns=tuple(turned))


def _with_start(tokenizer: ModelTokenizer, found: Encoded, wanted: bool) -> Encoded:
    """With or without the start token in front, and a remark where it changes nothing."""
    start = tokenizer.start_id
    if start is None:
        raise BadInput("This model has no start token to add or to leave out.")
    tokens, name = found.tokens, tokenizer.token(start).text
    there = bool(tokens) and tokens[0].id == start
    if there == wanted:
        words = f"The prompt {'already begins' if there else 'does not begin'} with {name}."
        return replace(found, note=_joined(found.note, words))
    by = 1 if wanted else -1
    moved = [turn.moved(by) for turn in found.turns]
    turns = tuple(turn for turn in moved if turn.last_slot >= 0)
    tokens = (tokenizer.token(start), *tokens) if wanted else tokens[1:]
    return replace(found, tokens=tokens, parts=None, turns=turns)


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _encoded(tokenizer: ModelTokenizer, request: RunRequest, context: int) -> Encoded:
    if request.messages and request.context.name == "drop-turns":
        most = request.context.limit(context - request.position_offset if context else 0)
        if most:
            return _fitting(tokenizer, request, most)
    return _as_asked(tokenizer, request)


def _as_asked(tokenizer: ModelTokenizer, request: RunRequest) -> Encoded:
    found = _as_written(tokenizer, request)
    if request.start_token is None:
        return found
    return _with_start(tokenizer, found, request.start_token)


def _as_written(tokenizer: ModelTokenizer, request: RunRequest) -> Encoded:
    if request.input_ids:
        return Encoded(tuple(tokenizer.token(i) for i in request.input_ids))
    if request.messages:
        return tokenizer.encode_messages(request.messages, request.template_args)
    return tokenizer.encode(request.prompt, request.chat, request.special_as_text)
