"""The conversation that the prompt is, turn by turn, and the answer that a run has given."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from explorer.trace.chat import ChatTurn, Message
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace

USER, ASSISTANT = "user", "assistant"
ROLES = ("system", USER, ASSISTANT, "tool")
"""Roles that are offered; templates may refuse some of them."""


def messages_of(request: RunRequest) -> tuple[Message, ...]:
    """The messages of a chat prompt, one at least; none of raw text."""
    if request.messages:
        return request.messages
    return (Message(USER, request.prompt),) if request.chat else ()


def left_out(request: RunRequest, prompt: Sequence[ChatTurn]) -> frozenset[int]:
    """Which messages the prompt of these turns has no place for, under a limit: the oldest."""
    if request.context.name != "drop-turns" or not prompt:
        return frozenset()
    said = [i for i, message in enumerate(request.messages) if message.role != "system"]
    there = {turn.message for turn in prompt}
    first = next((i for i in said if i in there), 0)
    return frozenset(i for i in said if i < first)


def answer_of(request: RunRequest, trace: Trace | None) -> str | None:
    """What a run generated after this conversation, up to its first control token.

    None if it is no run of it, or nothing was generated.
    """
    if trace is None or trace.request != request or not trace.chosen:
        return None
    said = []
    for token in trace.chosen:
        if token.special:
            break
        said.append(token.raw)
    text = b"".join(said)
    # The run may end within a character: what there is of that is no text yet.
    return codecs.getincrementaldecoder("utf-8")("replace").decode(text)


def with_answer(request: RunRequest, trace: Trace | None) -> tuple[Message, ...]:
    """The conversation with the answer as its last message; what was begun is finished by it."""
    answer = answer_of(request, trace)
    messages = messages_of(request)
    if answer is None or not messages:
        return messages
    if messages[-1].role == ASSISTANT:
        return replaced(messages, len(messages) - 1, content=messages[-1].content + answer)
    return (*messages, Message(ASSISTANT, answer.strip()))


def replaced(
    messages: Sequence[Message], index: int, role: str | None = None, content: str | None = None
) -> tuple[Message, ...]:
    """The same messages, one with another role or content."""
    old = messages[index]
    new = Message(old.role if role is None else role, old.content if content is None else content)
    return (*messages[:index], new, *messages[index + 1 :])


def added(messages: Sequence[Message], after: int) -> tuple[Message, ...]:
    """One more behind this place, empty, of whoever speaks next."""
    role = ASSISTANT if messages[after].role == USER else USER
    return (*messages[: after + 1], Message(role, ""), *messages[after + 1 :])


def removed(messages: Sequence[Message], index: int) -> tuple[Message, ...]:
    """All but one; the last that is left stays."""
    return (*messages[:index], *messages[index + 1 :]) if len(messages) > 1 else tuple(messages)


def moved(messages: Sequence[Message], index: int, by: int) -> tuple[Message, ...]:
    """One of them earlier or later by so many places, as far as there are some."""
    rest = [*messages[:index], *messages[index + 1 :]]
    place = min(max(index + by, 0), len(rest))
    return (*rest[:place], messages[index], *rest[place:])
