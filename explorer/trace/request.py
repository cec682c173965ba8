"""What the user asks for: what changes the forward pass, and what only picks a token."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from explorer import smollm2
from explorer.trace.chat import Message
from explorer.trace.interventions.context_policy import USUAL, ContextPolicy
from explorer.trace.interventions.kinds import Cells, Interventions, Silence

Side = Literal["left", "right"]
Dtype = Literal["float32", "bfloat16", "float16"]
Form = Literal["", "as-is", "float32"]
"""How a .gguf file is opened: "as-is" by llama.cpp, "float32" converted; "" = the usual one."""
CacheType = Literal["f16", "f32", "bf16", "q8_0", "q5_0", "q4_0"]
"""What llama.cpp keeps keys in; values stay float16."""
MOST_GPU_LAYERS = 9999
"""What may be asked for; llama.cpp opens no model with so many layers."""
MOST_SEED = 2**63 - 1
Link = Literal["penalty", "temperature", "top_k", "top_p", "min_p"]

ORDER: tuple[Link, ...] = ("penalty", "temperature", "top_k", "top_p", "min_p")
"""The links of the sampling chain in transformers' order."""


def usual_form(file: Path) -> Form:
    """How a .gguf file is opened where nobody says: as it is.

    But SmolLM2, which the lessons are about, in float32: padding, attribution and patches
    are shown there only.
    """
    return "float32" if file.name == smollm2.GGUF else "as-is"


TYPED: dict[str, Any] = {"messages": (), "template_args": "", "input_ids": ()}
"""The fields of a RunRequest whose prompt is what the user types."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How a token is picked from the model's logits; it never changes the logits."""

    greedy: bool = True
    temperature: float = 1.0  # 0 means greedy
    top_k: int = 0  # 0 = off
    top_p: float = 1.0  # 1 = off
    min_p: float = 0.0  # 0 = off; share of the best token's probability that others must reach
    repetition_penalty: float = 1.0  # 1 = off
    order: tuple[Link, ...] = ORDER
    seed: int = 0

    @property
    def takes_best(self) -> bool:
        """True if the most probable token is taken and no number is drawn."""
        return self.greedy or self.temperature == 0


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that changes a forward pass."""

    model: str = ""
    prompt: str = ""
    chat: bool = False  # the prompt is one user message, put through the chat template
    special_as_text: bool = False  # "<|im_end|>" in the prompt stays letters, no control token
    # A conversation in place of `prompt`, which then holds the last message, to be shown.
    messages: tuple[Message, ...] = ()
    template_args: str = ""  # more names for the chat template: a JSON object
    input_ids: tuple[int, ...] = ()  # in place of `prompt`: tokens, taken as they are
    start_token: bool | None = None  # True: with one; False: without; None: as the tokenizer has it
    position_offset: int = 0  # the first token's position is so much further on
    causal_mask: bool = True
    cache: bool = True
    padding: Side | None = None
    pad: int = 0  # padding slots on that side
    dtype: Dtype = "float32"  # of no effect on a file that is opened as it is; the device neither
    device: str = "cpu"
    cache_type_k: CacheType = "f16"  # of a file that is opened as it is
    gpu_layers: int = 0  # of such a file: how many llama.cpp puts on a GPU, from the last one back
    form: Form = ""
    max_tokens: int = 0  # new tokens at most; 0 = no limit but the context
    capture_every: int = 1  # record the attention of layers 0, n, 2n, … only; 1 = of all
    interventions: Interventions = ()  # in the order in which they were made; the last one counts
    context: ContextPolicy = USUAL

    @property
    def typed(self) -> bool:
        """True if `prompt` is what is read."""
        return not (self.messages or self.input_ids)

    @property
    def keeps_beginnings(self) -> bool:
        """True if equal beginnings of two prompts have equal keys and values in this run."""
        means = (isinstance(one, Silence) and one.by == "mean" for one in self.interventions)
        return not any(means)

    @property
    def has_prompt(self) -> bool:
        """True if there is anything to read."""
        return bool(self.prompt or not self.typed)

    @property
    def sees_later(self) -> bool:
        """True if some token may attend to a later one."""
        return not self.causal_mask or any(one.sees_later for one in self._cells)

    @property
    def source(self) -> tuple[object, ...]:
        """All that decides the prompt's tokens, but for the model: equal ones have the same."""
        return (
            self.prompt,
            self.chat,
            self.special_as_text,
            self.messages,
            self.template_args,
            self.input_ids,
            self.start_token,
            self.position_offset,
            self.context if self.context.name == "drop-turns" else None,
        )

    @property
    def policy_clash(self) -> str:
        """What in it goes with no model under its context policy; empty if nothing."""
        policy, padding = self.context, self.padding if self.pad else None
        if policy.keeps_last and not self.causal_mask:
            return (
                "A sliding window needs the causal mask. Switch the mask on, or choose another "
                "context policy."
            )
        if policy.sinks and padding:
            return (
                "Sinks can't be combined with padding: the first slots may be padding. Switch one "
                "of them off."
            )
        if policy.keeps_last and padding == "right":
            return (
                "A sliding window can't be combined with right padding, which would take up room "
                "in it. Pad on the left, or switch one of them off."
            )
        return ""

    @property
    def changes(self) -> Interventions:
        """What its passes change in the model: the context policy first, then the interventions."""
        return (*self.context.cells, *self.interventions)

    @property
    def _cells(self) -> list[Cells]:
        return [one for one in self.changes if isinstance(one, Cells)]

    @property
    def uses_cache(self) -> bool:
        """A cache is only valid under the causal mask: without it, old keys change.

        What is allowed may lie outside a window, whose keys a cache forgets.
        """
        allows = any(one.effect == "allow" for one in self._cells)
        return self.cache and not self.sees_later and not allows

    @property
    def cache_reason(self) -> str:
        """Why the cache is on or off, as one plain sentence."""
        if not self.causal_mask:
            return (
                "off (without the causal mask, each new token changes all earlier keys and values)"
            )
        if self.sees_later:
            return "off (a token may attend to a later one, which changes its keys and values)"
        if self.cache and not self.uses_cache:
            return "off (an allowed cell may need a key that a cache with a window has dropped)"
        return "on" if self.cache else "off (switched off for this run)"


class Stops(msgspec.Struct, frozen=True, kw_only=True):
    """When a run ends by itself; changes no pass, so a trace goes on under other rules.

    Only tokens picked in this run count: an end token or a string in the prompt stops nothing.
    """

    end_tokens: bool = True  # any of the model's own
    strings: tuple[str, ...] = ()
    tokens: int = 0  # new tokens at most; 0 = no limit but the context
