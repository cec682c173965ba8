"""A random four-bit .gguf in the shape of a model of a billion parameters, written in parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np

from tests.llama_engine.tiny_vocabulary import add_byte_level

LAYERS, WIDTH, HEADS, KEY_HEADS, HEAD, HIDDEN, VOCABULARY = 16, 2048, 32, 8, 64, 8192, 128_256
CONTEXT = 131_072
_BLOCK, _BLOCK_BYTES = 32, 18  # of Q4_0: a float16 scale, then 32 numbers of four bits
_SPREAD = 4.61  # standard deviation of the numbers -8 to 7
_ROWS = 1 << 14  # of a matrix made at once


def write(path: Path, seed: int = 0) -> Path:
    """Llama 3.2 1B's shape: 1.24 billion parameters in 0.7 GB, never whole in memory."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("random 1B")
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(500_000.0)
    add_byte_level(writer, start=False, size=VOCABULARY)
    shapes = dict(_shapes())
    for name, shape in shapes.items():
        four_bits = len(shape) > 1
        size = shape[0] * _row_bytes(shape) if four_bits else 4 * shape[0]
        kind = gguf.GGMLQuantizationType.Q4_0 if four_bits else gguf.GGMLQuantizationType.F32
        writer.add_tensor_info(name, shape, np.dtype(np.float32), size, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    draw = np.random.default_rng(seed)
    with path.open("ab") as file:
        for shape in shapes.values():
            file.write(bytes(-file.tell() % gguf.GGUF_DEFAULT_ALIGNMENT))
            for part in _values(shape, draw):
                file.write(part)
    return path


def _shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "token_embd.weight", (VOCABULARY, WIDTH)
    yield "output_norm.weight", (WIDTH,)
    for number in range(LAYERS):
        for name, shape in {
            "attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "attn_q": (HEADS * HEAD, WIDTH),
            "attn_k": (KEY_HEADS * HEAD, WIDTH), "attn_v": (KEY_HEADS * HEAD, WIDTH),
            "attn_output": (WIDTH, HEADS * HEAD), "ffn_gate": (HIDDEN, WIDTH),
            "ffn_up": (HIDDEN, WIDTH), "ffn_down": (WIDTH, HIDDEN),
        }.items():  # fmt: skip
            yield f"blk.{number}.{name}.weight", shape


def _row_bytes(shape: tuple[int, ...]) -> int:
    return shape[-1] // _BLOCK * _BLOCK_BYTES


def _values(shape: tuple[int, ...], draw: np.random.Generator) -> Iterator[bytes]:
    """A tensor's bytes, in parts: ones for a norm, else random blocks."""
    if len(shape) == 1:
        yield np.ones(shape, np.float32).tobytes()
        return
    scale = np.float16(1.3 / (_SPREAD * np.sqrt(shape[-1])))
    ends = np.stack([scale, -scale]).view(np.uint8).reshape(2, 2)
    for start in range(0, shape[0], _ROWS):
        rows = min(_ROWS, shape[0] - start)
        part = draw.integers(0, 256, (rows, shape[-1] // _BLOCK, _BLOCK_BYTES), np.uint8)
        part[..., :2] = ends[draw.integers(0, 2, part.shape[:2])]  # of either sign: a mean of 0
        yield part.tobytes()
