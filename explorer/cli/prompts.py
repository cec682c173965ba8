"""What a command is to read: a text, a file, a conversation."""

from __future__ import annotations

import argparse
import json
import re
from typing import Any

from explorer import disk
from explorer.cli.errors import CommandError
from explorer.session.jobs import prompt_list
from explorer.session.jobs.live_tokens import encoding_problem
from explorer.trace.chat import Message

_INPUTS = ("input_ids", "attention_mask", "position_ids")
_MOST_MESSAGES = 1000
_MOST_IDS = 1 << 20
_MOST_PROMPTS = 10_000
_MESSAGE = '[{"role": "user", "content": "…"}]'


def prompt_fields(arguments: argparse.Namespace) -> dict[str, Any]:
    """The fields of a RunRequest that say what is read; CommandError for what can't be."""
    ids = getattr(arguments, "input_ids", None)
    if ids is not None:
        return {"input_ids": _input_ids(arguments, ids)}
    messages = getattr(arguments, "messages", None)
    told = getattr(arguments, "template_args", None)
    if told is not None and not (messages or arguments.chat):
        raise CommandError(
            "--template-args is for a chat template. Use it with --messages or --chat."
        )
    if messages is not None:
        conversation = read_messages(messages)
    elif told is not None:
        conversation = (Message("user", _prompt(arguments)),)
    else:
        return {"prompt": _prompt(arguments), "chat": arguments.chat}
    return {
        "prompt": conversation[-1].content,
        "chat": True,
        "messages": conversation,
        "template_args": _template_args(told),
    }


def _prompt(arguments: argparse.Namespace) -> str:
    """The prompt as text; CommandError if it is empty or no text.  A message may be empty."""
    text = _text(arguments)
    if not text and not arguments.chat:
        raise CommandError("The prompt is empty: give at least one character.")
    return text


def _text(arguments: argparse.Namespace) -> str:
    if arguments.prompt is not None:
        problem = encoding_problem(arguments.prompt)
        if problem:
            raise CommandError(problem)
        return str(arguments.prompt)
    return read_text(arguments.prompt_file)


def read_text(name: str) -> str:
    """A UTF-8 file; CommandError if it can't be read."""
    try:
        return disk.read_text(name)
    except disk.TextError as error:
        raise CommandError(str(error)) from error


def read_json(name: str, text: str) -> Any:
    """What a JSON file holds; CommandError naming `name` if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{name} is not valid JSON ({error}).") from error


def read_messages(name: str) -> tuple[Message, ...]:
    """The conversation in a file; CommandError naming what is wrong with it."""
    return as_messages(name, read_json(name, read_text(name)))


def as_messages(name: str, found: Any) -> tuple[Message, ...]:
    """A conversation as JSON has it; CommandError, with `name` for where it is from."""
    if not isinstance(found, list) or not found:
        raise CommandError(f"{name} holds no messages. Write a list such as {_MESSAGE}.")
    if len(found) > _MOST_MESSAGES:
        raise CommandError(f"{name} has {len(found):,} messages. At most {_MOST_MESSAGES:,} fit.")
    return tuple(_message(name, number, one) for number, one in enumerate(found, 1))


def _message(name: str, number: int, one: Any) -> Message:
    where = f"Message {number} of {name}"
    if not isinstance(one, dict) or not one.keys() >= {"role", "content"}:
        raise CommandError(f"{where} needs a role and a content. Write it as in {_MESSAGE}.")
    if more := sorted(one.keys() - {"role", "content"}):
        raise CommandError(f"{where} has {more[0]!r}, which can't be given. Leave it out.")
    for field in ("role", "content"):
        if not isinstance(one[field], str):
            raise CommandError(f"The {field} of message {number} of {name} must be a text.")
        if problem := encoding_problem(one[field]):
            raise CommandError(f"{where}: {problem.replace('the prompt', f'its {field}')}")
    if not re.fullmatch(r"\S{1,64}", one["role"]):
        raise CommandError(f"{where} has no usable role. Use a word such as user or system.")
    return Message(one["role"], one["content"])


def _input_ids(arguments: argparse.Namespace, given: str) -> tuple[int, ...]:
    """Token ids, written out or in a file; CommandError for what is none."""
    if arguments.chat or arguments.template_args is not None:
        raise CommandError("--input-ids are taken as they are. Leave out --chat, --template-args.")
    where, text = "--input-ids", given
    if not re.fullmatch(r"[\d,\s]*", given):
        where, text = given, read_text(given)
    numbers = text.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    if not numbers:
        raise CommandError(f"{where} names no token. Write ids such as 12,7,44.")
    if wrong := next((one for one in numbers if not re.fullmatch(r"\d{1,9}", one)), None):
        raise CommandError(f"{where}: {wrong[:40]!r} is no token id. Write ids such as 12,7,44.")
    if len(numbers) > _MOST_IDS:
        raise CommandError(f"{where} has {len(numbers):,} ids. At most {_MOST_IDS:,} fit.")
    return tuple(map(int, numbers))


def read_prompts(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The same fields for each prompt of the file of --prompts: texts, or conversations.

    One text a line, or a JSON list of texts and of lists of messages.
    """
    name = arguments.prompts
    try:
        found = prompt_list.entries(name, read_text(name))
    except prompt_list.PromptListError as error:
        raise CommandError(str(error)) from error
    if not 1 <= len(found) <= _MOST_PROMPTS:
        raise CommandError(f"{name} has {len(found):,} prompts. Write 1 to {_MOST_PROMPTS:,}.")
    return [_entry(arguments, name, number, one) for number, one in enumerate(found, 1)]


def _entry(arguments: argparse.Namespace, name: str, number: int, one: Any) -> dict[str, Any]:
    if isinstance(one, str):
        told = {"prompt": one, "prompt_file": None, "messages": None, "input_ids": None}
        try:
            return prompt_fields(argparse.Namespace(**{**vars(arguments), **told}))
        except CommandError as error:
            raise CommandError(f"Prompt {number} of {name}: {error}") from error
    conversation = as_messages(f"prompt {number} of {name}", one)
    return {
        "prompt": conversation[-1].content,
        "chat": True,
        "messages": conversation,
        "template_args": _template_args(arguments.template_args),
    }


def read_inputs(name: str) -> dict[str, tuple[tuple[int, ...], ...]]:
    """input_ids, and attention_mask and position_ids where they are given, of a JSON file."""
    found = read_json(name, read_text(name))
    if not isinstance(found, dict) or "input_ids" not in found:
        raise CommandError(f'{name} must hold an object such as {{"input_ids": [[5, 6]]}}.')
    if more := sorted(found.keys() - set(_INPUTS)):
        raise CommandError(f"{name} has {more[0]!r}, which is no input. Use {', '.join(_INPUTS)}.")
    for field, rows in found.items():
        if not isinstance(rows, list) or not all(
            isinstance(row, list) and all(type(one) is int and 0 <= one < 2**31 for one in row)
            for row in rows
        ):
            raise CommandError(
                f"{field} in {name} must be a list of rows of whole numbers from 0 up."
            )
    return {field: tuple(map(tuple, rows)) for field, rows in found.items()}


def _template_args(text: str | None) -> str:
    """A JSON object as text; CommandError if it is none."""
    if text is None:
        return ""
    if problem := encoding_problem(text):
        raise CommandError(problem.replace("the prompt", "--template-args"))
    if not isinstance(read_json("--template-args", text), dict):
        raise CommandError('--template-args must be a JSON object, such as {"tools": []}.')
    return text
