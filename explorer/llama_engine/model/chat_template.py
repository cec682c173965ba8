"""A model's chat template, rendered in jinja's sandbox."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NoReturn

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment


def render(
    template: str, messages: list[dict[str, str]], opened: bool, named: dict[str, str]
) -> str:
    """Messages as `template` writes them; `named`: bos_token and the like.

    `opened`: ready for an answer.  Whatever the template raises comes out.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    compiled = environment.from_string(template)
    return compiled.render(messages=messages, add_generation_prompt=opened, **named)


def _to_json(value: Any, indent: int | None = None, **_: Any) -> str:
    """As text, not as HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)
