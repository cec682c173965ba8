"""What is known of a loaded model, and the results of checks."""

from __future__ import annotations

from typing import Any

import msgspec

NOT_OFFERED = "not offered: "  # may begin the words of a capability; the reason follows


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One measured claim: `measured` must not exceed `tolerance`."""

    name: str
    passed: bool
    measured: float
    tolerance: float
    note: str = ""


class SelfCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The light in the status bar; `passed` is None until it has run."""

    passed: bool | None = None
    checks: tuple[Check, ...] = ()


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """One thing the engine offers on this model, or the reason why it does not."""

    # capture, causal_off, cache, undo, chunked_prefill, left_padding, right_padding; interventions:
    # silence_heads, cut_cells, scale_scores, silence_mlp, silence_layers, patch_heads, patch_mlp,
    # patch_stream; evict, sink_distances
    name: str
    offered: bool
    words: str  # one plain sentence for the model panel
    measured: float | None = None


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """One loaded model: sizes, end tokens, and what the self-test found to work on it."""

    name: str
    path: str
    architecture: str  # config.model_type
    source: str = ""  # what was opened: "safetensors", "from Q4_1 79 %, Q8_0 21 % (dequantised)", …
    form: str = ""  # of a .gguf file: as-is or float32, see `request.Form`; empty = no such file
    stored_dtype: str = ""  # of the weights in their files, by share; empty = not known
    layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    context: int  # positions the model was built for; 0 = not stated
    parameters: int
    dtype: str
    device: str
    cache_type_k: str = ""  # what llama.cpp keeps keys in; empty = not llama.cpp
    processes: int = 1  # that share the model (torchrun)
    gpu_layers: int = 0  # asked for on a GPU; more than there are = all
    layer_kinds: tuple[str, ...] = ()  # per layer: full, sliding, chunked, linear, …
    windows: tuple[int, ...] = ()  # per layer: sliding window in tokens, 0 = none
    kv_bytes_per_token: int = 0  # by the formula 2·L·H_kv·d_h·bytes, in the loaded dtype
    latent_width: int = 0  # numbers a layer keeps per token in place of keys and values
    eos_ids: tuple[int, ...] = ()
    pad_id: int | None = None
    pad_note: str = ""
    bos_policy: str = ""
    has_chat_template: bool = False
    missing_bytes: tuple[int, ...] = ()  # byte values that the vocabulary cannot spell
    generation_defaults: dict[str, Any] = {}
    capabilities: tuple[Capability, ...] = ()
    tested: str = ""  # the day they were found, where that was an earlier one; else empty
    fingerprint: dict[str, Any] = {}  # see trace.fingerprint
    versions: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    not_finite: int = 0  # weights that are NaN or infinite

    @property
    def layers_on_gpu(self) -> int:
        """How many of the layers are on a GPU where llama.cpp runs them."""
        return min(self.gpu_layers, self.layers)

    def offers(self, name: str) -> bool:
        """True if the self-test found `name` to work on this model."""
        return any(c.name == name and c.offered for c in self.capabilities)

    def words(self, name: str) -> str:
        """What the self-test says of one capability, or the reason why it is not offered.

        Empty if it was never tested.
        """
        found = next((c.words for c in self.capabilities if c.name == name), "")
        return found.removeprefix(NOT_OFFERED)
