"""The tokens that a run asks for: a text, one message in the chat template, or a conversation."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from explorer.engine.errors import BadInput
from explorer.engine.text.encoding import Encoded, ModelTokenizer
from explorer.trace.request import RunRequest
from explorer.trace.wire.messages import Tokenize, Tokens


def encoded(tokenizer: ModelTokenizer, request: RunRequest) -> Encoded:
    """The prompt of a run without its padding; BadInput if it has no tokens."""
    found = _encoded(tokenizer, request)
    if found.problem and not found.tokens:
        raise BadInput(found.problem)
    return found


def live(tokenizer: ModelTokenizer, request: Tokenize) -> Tokens:
    """The answer about a text that is being typed; what is wrong with it is said in words."""
    answer = Tokens(run=request.run, text=request.text, tokens=())
    try:
        found = _encoded(tokenizer, request.asked)
    except BadInput as error:
        return msgspec.structs.replace(answer, problem=error.sentence)
    return msgspec.structs.replace(
        answer,
        tokens=found.tokens,
        problem=found.problem,
        parts=found.parts,
        turns=found.turns,
    )


def source(request: RunRequest) -> tuple[object, ...]:
    """All that decides the tokens: two requests with one source have the same."""
    return (
        request.prompt,
        request.chat,
        request.special_as_text,
        request.messages,
        request.template_args,
        request.fit_tokens,
        request.input_ids,
        request.start_token,
        request.position_offset,
    )


def _fitting(tokenizer: ModelTokenizer, request: RunRequest) -> Encoded:
    """A conversation without its oldest turns; BadInput if the last one alone is too long.

    System messages stay.  A turn of the user goes with the answers to it, so that roles alternate
    as before.
    """
    kept = list(range(len(request.messages)))  # by their places in the whole conversation
    while True:
        messages = [request.messages[i] for i in kept]
        found = tokenizer.encode_messages(messages, request.template_args)
        if len(found.tokens) <= request.fit_tokens:
            break
        turns = [i for i in kept if request.messages[i].role != "system"]
        starts = [i for i in turns[1:] if request.messages[i].role == "user"]
        if not starts:
            raise BadInput(
                f"The last turn takes {len(found.tokens):,} tokens, and at most "
                f"{request.fit_tokens:,} fit. Shorten it."
            )
        kept = [i for i in kept if i not in turns or i >= starts[0]]
    gone = len(request.messages) - len(kept)
    if not gone:
        return found
    turned = [
        turn if turn.message is None else msgspec.structs.replace(turn, message=kept[turn.message])
        for turn in found.turns
    ]
    words = f"{gone} messages were left out: the oldest, to fit in {request.fit_tokens:,} tokens."
    problem = f"{words} {found.problem}".strip()
    return replace(found, problem=problem, turns=tuple(turned))


def _with_start(tokenizer: ModelTokenizer, found: Encoded, wanted: bool) -> Encoded:
    """With or without the start token in front, and a remark where it changes nothing."""
    start = tokenizer.start_id
    if start is None:
        raise BadInput("This model has no start token to add or to leave out.")
    tokens, name = found.tokens, tokenizer.token(start).text
    there = bool(tokens) and tokens[0].id == start
    if there == wanted:
        words = f"The prompt {'already begins' if there else 'does not begin'} with {name}."
        return replace(found, problem=f"{found.problem} {words}".strip())
    by = 1 if wanted else -1
    moved = [turn.moved(by) for turn in found.turns]
    turns = tuple(turn for turn in moved if turn.last_slot >= 0)
    tokens = (tokenizer.token(start), *tokens) if wanted else tokens[1:]
    return replace(found, tokens=tokens, parts=None, turns=turns)


def _encoded(tokenizer: ModelTokenizer, request: RunRequest) -> Encoded:
    found = _as_written(tokenizer, request)
    if request.start_token is None:
        return found
    return _with_start(tokenizer, found, request.start_token)


def _as_written(tokenizer: ModelTokenizer, request: RunRequest) -> Encoded:
    if request.input_ids:
        return Encoded(tuple(tokenizer.token(i) for i in request.input_ids))
    if request.messages and request.fit_tokens:
        return _fitting(tokenizer, request)
    if request.messages:
        return tokenizer.encode_messages(request.messages, request.template_args)
    return tokenizer.encode(request.prompt, request.chat, request.special_as_text)
