"""The parts of a layer: seen in the order in which they compute, with what each one reads."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from explorer.engine.callbacks import nobody
from explorer.engine.errors import BadInput
from explorer.engine.inside import structure
from explorer.engine.inside.walk import layer_walk
from explorer.trace.inside.structure import BlockPart, ModelStructure, ReadStructure
from explorer.trace.inside.walk import WalkLayer
from explorer.trace.request import RunRequest
from tests.engine import architectures
from tests.engine.tiny import runner_on


def looked_at(kind: str) -> ModelStructure:
    runner = runner_on(architectures.tiny(kind))
    return structure.read(runner, ReadStructure(request=RunRequest()), nobody)


def line(part: BlockPart) -> tuple[str, str, bool]:
    return part.kind, part.source or part.reads, part.adds


def test_a_llama_block_is_two_norms_and_two_parts_in_a_row() -> None:
    found = looked_at("llama")
    (block,) = found.blocks
    assert block.layers == tuple(range(found.layers))
    assert [line(part) for part in block.parts] == [
        ("norm", "entered", False),
        ("attention", "input_layernorm", True),
        ("norm", "stream", False),
        ("mlp", "post_attention_layernorm", True),
    ]
    assert found.norm is not None
    assert (found.tied, found.stream_reason) == (False, "")


def test_a_norm_after_a_part_is_what_adds() -> None:
    parts = looked_at("gemma2").blocks[0].parts
    assert [line(part) for part in parts[1:3]] == [
        ("attention", "input_layernorm", False),
        ("norm", "self_attn", True),
    ]


@pytest.mark.parametrize(
    ("kind", "reads"), [("gpt_neox", "post_attention_layernorm"), ("cohere", "input_layernorm")]
)
def test_parallel_parts_read_the_stream_as_it_entered(kind: str, reads: str) -> None:
    parts = looked_at(kind).blocks[0].parts
    assert "stream" not in {part.reads for part in parts}
    assert parts[-1].kind == "mlp"
    assert parts[-1].source == reads


def test_layers_of_two_kinds_are_two_blocks() -> None:
    found = looked_at("qwen3_next")
    assert [block.layers for block in found.blocks] == [(0, 2), (1, 3)]
    assert [block.parts[1].kind for block in found.blocks] == ["mixer", "attention"]
    assert {block.parts[3].kind for block in found.blocks} == {"experts"}
    assert found.block_of(3) is found.blocks[1]


def test_parameters_of_the_parts_are_those_of_the_model() -> None:
    runner = runner_on(architectures.tiny("llama"))
    found = structure.read(runner, ReadStructure(request=RunRequest()), nobody)
    inside = sum(
        part.parameters * len(block.layers) for block in found.blocks for part in block.parts
    )
    assert found.norm is not None
    assert found.head is not None
    outside = found.embedding.parameters + found.norm.parameters + found.head.parameters
    assert inside + outside == sum(one.numel() for one in runner.model.parameters())


def test_layers_that_attend_several_times_are_not_drawn_as_one_stack() -> None:
    runner = runner_on(architectures.tiny("hrm_text"))
    card = msgspec.structs.replace(runner.loaded.card, layers=32)  # as its config counts
    runner.loaded = dataclasses.replace(runner.loaded, card=card)
    with pytest.raises(BadInput, match="attend several times"):
        structure.read(runner, ReadStructure(request=RunRequest()), nobody)
    with pytest.raises(BadInput, match="counts 32 layers"):
        layer_walk.walk(runner, WalkLayer(request=RunRequest(prompt="5 6"), layer=17), nobody)
