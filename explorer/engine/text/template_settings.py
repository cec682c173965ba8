"""Which of a model's chat templates is used, and what it can be told beside the messages."""

from __future__ import annotations

import json
from typing import Any

from jinja2 import Environment, meta, nodes
from jinja2.exceptions import TemplateError, TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.parser import Parser

from explorer.engine.errors import BadInput

NAME = "chat_template"  # the argument that chooses one of several
_OURS = {"messages", "add_generation_prompt", "raise_exception", "strftime_now"}


class AssistantPart(Extension):
    """`{% generation %}` marks what an assistant wrote; it changes no text."""

    tags = {"generation"}  # noqa: RUF012 - jinja's own declaration

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


EXTENSIONS = ("jinja2.ext.loopcontrols", AssistantPart)


def read_arguments(text: str) -> dict[str, Any]:
    """The JSON object in `text`; BadInput if it is none.  Empty text is an empty object."""
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The template arguments are not valid JSON ({error}).") from error
    if not isinstance(found, dict):
        raise BadInput('The template arguments must be a JSON object, such as {"tools": []}.')
    return found


def chosen(template: Any, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The template's text, and the arguments that are for it; BadInput where one does not fit.

    `template`: a text, or several by name, as a dict or as a list of {name, template}.
    """
    rest = {name: value for name, value in arguments.items() if name != NAME}
    source = _source(template, arguments.get(NAME), bool(rest.get("tools")))
    known = names_read(source) if rest else set()
    unknown = [name for name in rest if name not in known]
    if unknown:
        reads = f"It reads {', '.join(sorted(known))}." if known else "It reads none."
        raise BadInput(f"This model's chat template reads no argument {unknown[0]!r}. {reads}")
    return source, rest


def _source(template: Any, wanted: Any, with_tools: bool) -> str:
    several = _by_name(template)
    if several is None:
        if wanted is not None:
            raise BadInput("This model has one chat template. Leave out 'chat_template'.")
        return str(template)
    names = ", ".join(several)
    if wanted is None:  # as transformers chooses
        wanted = "tool_use" if with_tools and "tool_use" in several else "default"
        if wanted not in several:
            raise BadInput(
                f"This model has several chat templates and none is the default. Choose one of "
                f'{names} by the template argument "chat_template".'
            )
    if not isinstance(wanted, str) or wanted not in several:
        raise BadInput(f"This model has no chat template {wanted!r}. It has {names}.")
    return several[wanted]


def _by_name(template: Any) -> dict[str, str] | None:
    if isinstance(template, dict):
        return {str(name): str(source) for name, source in template.items()}
    if isinstance(template, list):
        return {str(one["name"]): str(one["template"]) for one in template}
    return None


def names_read(source: str) -> set[str]:
    """What a template looks up beside the messages and the model's own tokens."""
    found = meta.find_undeclared_variables(_parsed(source))
    return {name for name in found - _OURS if not name.endswith(("_token", "_tokens"))}


def writes_date(source: str) -> bool:
    """True if a template asks what day it is."""
    return "strftime_now" in meta.find_undeclared_variables(_parsed(source))


def _parsed(source: str) -> nodes.Template:
    environment = Environment(trim_blocks=True, lstrip_blocks=True, extensions=EXTENSIONS)
    try:
        return environment.parse(source)
    except (TemplateSyntaxError, RecursionError) as error:
        raise BadInput(f"This model's chat template has a mistake: {error}.") from error


def refusal(error: Exception) -> str:
    """In words, why a template gave no text for these messages; empty if it does not say."""
    if type(error) is TemplateError:  # what a template raises by itself
        return (
            f"This model's chat template refuses these messages: {str(error).rstrip('.')}. "
            "Change their roles or their order."
        )
    if isinstance(error, TemplateError) and "is undefined" in str(error):
        return (
            f"This model's chat template lacks something ({error}). Give it as a template argument."
        )
    return ""
