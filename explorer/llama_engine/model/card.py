"""The model card of an open .gguf file, from its metadata and llama.cpp's own figures."""

from __future__ import annotations

from typing import Any

from gguf import LlamaFileType

from explorer.engine.gguf.header import Header
from explorer.engine.model_files.identity import of_file
from explorer.llama_engine.binding.library import PACKAGE, VERSION
from explorer.llama_engine.model.model import LlamaModel
from explorer.trace.card import ModelCard

SOURCE = "llama.cpp, as it is"
GPU_UNTESTED = (
    "Layers of this model run on a GPU. The program has not been tested with that: check a run "
    "before you rely on it."
)
_CONTROL = 3  # of tokenizer.ggml.token_type
_SAMPLING = {
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "penalty_repeat": "repetition_penalty",
}


def model_card(model: LlamaModel, cache_type_k: str = "f16") -> ModelCard:
    """Everything but what the self-test finds out: capabilities, layer kinds, cache bytes."""
    header, library, handle = model.header, model.library, model.handle
    heads = _most(header, "attention.head_count") or int(library.llama_model_n_head(handle))
    hidden = int(library.llama_model_n_embd(handle))
    layers = int(library.llama_model_n_layer(handle))
    return ModelCard(
        name=model.path.stem,
        path=str(model.path),
        architecture=header.architecture,
        source=SOURCE,
        stored_dtype=header.stored,
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        kv_heads=_most(header, "attention.head_count_kv") or heads,
        head_dim=_most(header, "attention.key_length") or (hidden // heads if heads else 0),
        vocab_size=model.vocab_size,
        context=int(library.llama_model_n_ctx_train(handle)),
        parameters=int(library.llama_model_n_params(handle)),
        dtype=weight_type(header),
        device="cpu",
        cache_type_k=cache_type_k,
        gpu_layers=model.gpu_layers,
        eos_ids=_end_tokens(model),
        pad_id=model.tokenizer.pad_token_id,
        pad_note="The model's own padding token." if model.tokenizer.pad_token_id else "",
        bos_policy=model.tokenizer.bos_policy,
        has_chat_template=model.tokenizer.has_chat_template,
        missing_bytes=model.tokenizer.missing_bytes,
        generation_defaults=_recommended(header),
        fingerprint={"config": "", "weights": [of_file(model.path)]},
        versions={PACKAGE: VERSION, "llama.cpp": library.llama_version().decode()},
        warnings=(GPU_UNTESTED,) if model.gpu_layers else (),
    )


def weight_type(header: Header) -> str:
    """What the file calls its quantisation, such as Q4_K_M; else its parts by share."""
    stated = header.metadata.get("general.file_type")
    try:
        name = LlamaFileType(stated).name
    except ValueError:
        return header.stored
    short = name.removeprefix("MOSTLY_").removeprefix("ALL_")
    return header.stored if short == "GUESSED" else short


def _most(header: Header, name: str) -> int:
    """A number of the architecture, the largest where layers differ; 0 if it is not stated."""
    stated = header.metadata.get(f"{header.architecture}.{name}")
    values = stated if isinstance(stated, list) else [stated]
    return max((v for v in values if isinstance(v, int)), default=0)


def _end_tokens(model: LlamaModel) -> tuple[int, ...]:
    """Ids that llama.cpp ends a generation with."""
    kinds = model.header.metadata.get("tokenizer.ggml.token_type")
    control = [i for i, kind in enumerate(kinds or ()) if kind == _CONTROL]
    stated = model.library.llama_vocab_eos(model.vocab)
    asked = dict.fromkeys([stated, *control])
    return tuple(
        i
        for i in asked
        if 0 <= i < model.vocab_size and model.library.llama_vocab_is_eog(model.vocab, i)
    )


def _recommended(header: Header) -> dict[str, Any]:
    """The sampling settings that the file's makers ship; shown, never applied unasked."""
    found = {
        ours: value
        for theirs, ours in _SAMPLING.items()
        if isinstance(value := header.metadata.get(f"general.sampling.{theirs}"), int | float)
    }
    return {"do_sample": True, **found} if found else {}
