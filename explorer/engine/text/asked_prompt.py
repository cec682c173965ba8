"""The tokens that a run asks for: a text, one message in the chat template, or a conversation."""

from __future__ import annotations

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
    )


def _encoded(tokenizer: ModelTokenizer, request: RunRequest) -> Encoded:
    if request.messages:
        return tokenizer.encode_messages(request.messages, request.template_args)
    return tokenizer.encode(request.prompt, request.chat, request.special_as_text)
