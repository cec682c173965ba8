"""A model's chat template, rendered in jinja's sandbox."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NoReturn

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from explorer.engine.text.template_settings import EXTENSIONS


def render(
    template: str, messages: list[dict[str, str]], opened: bool, named: dict[str, Any]
) -> str:
    """Messages as `template` writes them; `named`: bos_token and the like, and what it is given.

    `opened`: ready for an answer.  Whatever the template raises comes out.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=EXTENSIONS
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    compiled = environment.from_string(template)
    usual = {"tools": None, "documents": None}  # as transformers has it
    told = {**usual, **named, "messages": messages, "add_generation_prompt": opened}
    return compiled.render(told)


def _to_json(value: Any, indent: int | None = None, **_: Any) -> str:
    """As text, not as HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)
