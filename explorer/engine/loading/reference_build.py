"""A model's weights in a decoder of `explorer.reference`, opened like any model of transformers.

The build computes everything: this wraps it in the calls that transformers' models have.  Its
attention goes through transformers' registry, so that it is recorded where every model's is, and
its masks are transformers' wherever padding or the causal switch decides; else they are its own.
Its source is read anew at each opening: whoever edits a line and opens the model again sees it.
"""

from __future__ import annotations

import importlib
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, GenerationMixin, PreTrainedModel
from transformers.masking_utils import create_causal_mask
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from explorer import disk, reference
from explorer.engine.errors import BadInput
from explorer.trace.training.settings import Build

_MODULES = ("masks", "readout", "modern", "llama_layout", "encoder", "primitives", "gpt2_layout")


def rebuilt(model: Any, build: Build, name: str) -> Any:
    """`model`, one of transformers', as a reference build with the very same weights.

    BadInput with one sentence if its layout is not the build's, or the build's source has a fault.
    """
    try:
        source = {part: _read_anew(part) for part in _MODULES}
        make = _modern if build == "modern" else _primitives
        made = make(model, source)
    except ValueError as error:
        raise BadInput(
            f"{name} can't be opened in the reference build {build}: {error}. Open it without "
            f"“reference:{build}:”, or choose another model."
        ) from error
    except MemoryError:
        raise
    except Exception as error:  # the source is the user's to edit
        fault = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadInput(
            f"The reference build {build} has a fault ({fault[:300]}). Correct its file in "
            "explorer/reference, and open the model again.",
            traceback.format_exc(),
        ) from error
    made.generation_config = model.generation_config
    return made.eval().requires_grad_(False)


def _module(name: str) -> Any:
    return importlib.import_module(f"{reference.__name__}.{name}")


def _read_anew(name: str) -> Any:
    """The module as its file is now; it stays as it was if that has a fault."""
    module = _module(name)
    path = Path(module.__file__)
    code = compile(source_of(path), path.name, "exec")
    before = dict(vars(module))
    try:
        exec(code, vars(module))
    except BaseException:
        vars(module).clear()
        vars(module).update(before)
        raise
    return module


def source_of(path: Path) -> str:
    """The text of a source file."""
    return disk.read_text(path)


def _modern(model: Any, source: dict[str, Any]) -> ReferenceModel:
    config = source["llama_layout"].config_of(model.config.to_dict())
    with torch.device("meta"):
        body = _calls_of(source["modern"].Decoder)(config)
    body.load_state_dict(model.model.state_dict(), assign=True)
    return ReferenceModel(model.config, body, model.lm_head)


def _primitives(model: Any, source: dict[str, Any]) -> ReferenceModel:
    layout = source["gpt2_layout"]
    config = layout.config_of(model.config.to_dict())
    with torch.device("meta"):
        body = _calls_of(source["primitives"].Transformer)(config)
    body.load_state_dict(layout.turned(model.transformer.state_dict()), assign=True)
    return ReferenceModel(model.config, body, model.lm_head)


def eager_attention_forward(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float,
    dropout: float = 0.0,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Attention written out, for the registry: (B, T, H, d) and the weights (B, H, T, S)."""
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.mT * scaling
    if attention_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attention_mask, torch.finfo(scores.dtype).min)
    else:
        scores = scores + attention_mask
    weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
    return (weights @ value).transpose(1, 2), weights


def _registered(
    module: Any,
    config: Any,
    attentions: list[Tensor | None],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
) -> Tensor:
    """What a build calls for attention: the function that is registered with transformers.

    The weights (B, H, T, S) go to `attentions`, where the function gives any.
    """
    function = ALL_ATTENTION_FUNCTIONS.get_interface(
        config._attn_implementation, eager_attention_forward
    )
    mask = mask[..., -key.shape[2] :]  # of a cache that has dropped tokens
    scaling = query.shape[-1] ** -0.5
    output, weights = function(module, query, key, value, mask, dropout=0.0, scaling=scaling)
    attentions.append(weights)
    return output.transpose(1, 2)


class ReferenceModel(PreTrainedModel, GenerationMixin):
    """A body of a reference build and an output head, called as transformers' models are."""

    base_model_prefix = "model"
    _supports_sdpa = True
    _supports_attention_backend = True

    def __init__(self, config: Any, body: Any, head: Any) -> None:
        super().__init__(config)
        self.model = body
        self.lm_head = head
        if config.tie_word_embeddings:
            self.lm_head.weight = self.get_input_embeddings().weight
        body.run_by = config
        self._attentions: list[Tensor | None] = []  # of the last pass, one a layer
        for number, layer in enumerate(_layers(body)):
            attention = getattr(layer, "self_attn", None) or layer.attn
            attention.num_key_value_groups = _groups(config)
            attention.is_causal, attention.layer_idx = True, number
            attention.eager_attention_forward = eager_attention_forward
            attention.attend = partial(_registered, attention, config, self._attentions)

    def get_input_embeddings(self) -> Any:
        return getattr(self.model, "embed_tokens", None) or self.model.wte

    def get_output_embeddings(self) -> Any:
        return self.lm_head

    def get_decoder(self) -> Any:
        return self.model

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        cache: Any = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        output_attentions: bool = False,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        """Arguments and output are those of transformers' causal language models."""
        self._attentions.clear()
        done = self.model(input_ids, attention_mask, position_ids, cache, use_cache)
        hidden = done.last_hidden_state
        kept = logits_to_keep
        if isinstance(kept, int):
            hidden = hidden[:, -kept:] if kept else hidden
        else:
            hidden = hidden[:, kept]
        weights = tuple(self._attentions) if output_attentions else None
        self._attentions.clear()
        return CausalLMOutputWithPast(
            logits=self.lm_head(hidden), cache=done.cache, attentions=weights
        )


def _layers(body: Any) -> Any:
    return body.layers if hasattr(body, "layers") else body.h


def _groups(config: Any) -> int:
    heads = config.num_attention_heads
    return heads // (getattr(config, "num_key_value_heads", None) or heads)


def _calls_of(body: type[Any]) -> type[Any]:
    """The body of a build with transformers' arguments; its own forward does the work."""

    class ReferenceBody(body):
        run_by: Any  # the config of transformers

        def forward(
            self,
            input_ids: Tensor,
            attention_mask: Tensor | None = None,
            position_ids: Tensor | None = None,
            cache: Any = None,
            use_cache: bool | None = None,
        ) -> BaseModelOutputWithPast:
            if use_cache and cache is None:
                cache = DynamicCache(config=self.run_by)
            start = 0 if cache is None else cache.get_seq_length()
            masks = _module("masks")
            if position_ids is None:
                position_ids = masks.position_ids(input_ids, start)
            weight = next(self.parameters())
            mask = create_causal_mask(
                config=self.run_by,
                inputs_embeds=weight.new_empty(*input_ids.shape, 1),
                attention_mask=attention_mask,
                cache=cache,
                position_ids=position_ids,
            )
            if mask is None:
                mask = masks.causal_mask(input_ids, start)
            hidden = super().forward(input_ids, position_ids, mask, cache)
            return BaseModelOutputWithPast(last_hidden_state=hidden, cache=cache)

    ReferenceBody.__name__ = f"Reference{body.__name__}"
    return ReferenceBody
