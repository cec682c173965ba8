"""Ten small chat templates, each with a habit that real ones have."""

from __future__ import annotations

from typing import Any

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
DEFAULT_SYSTEM = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nBe kind.<|im_end|>\n{% endif %}"
    + CHATML
)
ALTERNATING = (  # refuses a system message, and two turns of one role
    "{{ bos_token }}{% for m in messages %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate user/assistant') }}{% endif %}"
    "{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %} {{ m.content }}<|im_end|>"
    "{% endif %}{% endfor %}"
)
SYSTEM_INSIDE = (  # the system message is written into the user's first turn
    "{{ bos_token }}{% if messages[0].role == 'system' %}"
    "{% set first = messages[0].content + '\n\n' %}{% set rest = messages[1:] %}"
    "{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}"
    "{% for m in rest %}<|im_start|>{{ m.role }}\n{{ first if loop.first else '' }}"
    "{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOLS = (
    "{% if not tools %}{{ raise_exception('This model needs tools') }}{% endif %}"
    "<|im_start|>tools\n{% for t in tools %}{{ t.name }} {% endfor %}<|im_end|>\n" + CHATML
)
THINKING = (  # of earlier answers, what was thought is dropped; the new one may be told not to
    "{% for m in messages %}{% set said = m.content %}"
    "{% if '</think>' in said and not loop.last %}"
    "{% set said = said.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ said }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}"
)
USER_ONLY = (  # leaves out whatever is not the user's
    "{% for m in messages if m.role == 'user' %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
)
DATED = "<|im_start|>{{ strftime_now('%Y') }}<|im_end|>\n" + CHATML
LIST: list[dict[str, str]] = [
    {"name": "default", "template": CHATML},
    {"name": "tool_use", "template": TOOLS},
]
SHOUTING = (  # changes the text
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | upper }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEMPLATES: dict[str, Any] = {
    "plain": CHATML, "default system": DEFAULT_SYSTEM, "alternating": ALTERNATING,
    "system inside": SYSTEM_INSIDE, "tools": TOOLS, "thinking": THINKING, "user only": USER_ONLY,
    "dated": DATED, "list": LIST, "shouting": SHOUTING,
}  # fmt: skip
