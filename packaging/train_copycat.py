"""Makes copycat, the bundled teaching model: its vocabulary, its weights, its figures.

    python packaging/train_copycat.py [--out FOLDER]

Copycat is a small Llama-layout decoder that continues whatever was said before: shown random
tokens twice, it says the second copy. One seed settles the vocabulary, the data and the weights
(another processor may round differently). It uses one thread and takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import copycat_bpe
import numpy as np
import torch
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, LlamaForCausalLM

HERE = Path(__file__).resolve().parent
VOCABULARY = 1024
PAD_ID = VOCABULARY - 1
END_ID = VOCABULARY - 2
CONTEXT = 512


@dataclass(frozen=True)
class Stage:
    """A stretch of the training: `rows` rows of `length` tokens a step."""

    steps: int
    rows: int
    length: int
    longest: int  # the longest stretch that is copied


STAGES = (
    Stage(steps=250, rows=24, length=48, longest=24),
    Stage(steps=250, rows=14, length=96, longest=48),
    Stage(steps=250, rows=9, length=160, longest=80),
    Stage(steps=150, rows=4, length=CONTEXT, longest=250),
)
SHORT = Stage(steps=0, rows=48, length=16, longest=8)  # every third step: prompts as people type
PEAK_RATE = 3e-3
TABLE_RATE = 0.1  # of the rate of the other weights: each token is seen too seldom for more
WARM_UP = 40


def is_held_out(length: int, offset: int) -> bool:
    """Whether this length of copied stretch, or this many tokens before it, is kept for tests."""
    return length % 4 == 0 or offset % 3 == 2


# --- data: (rows, T) token ids, and where the next token can be known


def training_rows(rng: np.random.Generator, stage: Stage) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids (rows, T), and True where the token that follows can be told from those before.

    A row is: some random tokens, a stretch of random tokens, perhaps some more, and the stretch
    again and again up to the end.
    """
    rows = [_training_row(rng, stage) for _ in range(stage.rows)]
    ids = np.stack([row for row, _ in rows])
    starts = np.array([start for _, start in rows])
    known = np.arange(stage.length) >= starts[:, None]
    return torch.from_numpy(ids), torch.from_numpy(known)


def _training_row(rng: np.random.Generator, stage: Stage) -> tuple[np.ndarray, int]:
    length, offset = _stretch(rng, stage)
    room = stage.length - 2 * length - offset
    gap = int(rng.integers(0, room + 1)) if rng.random() < 0.5 else 0
    # The end token may be copied too, the pad token never is.
    tokens = rng.permutation(VOCABULARY - 1)
    stretch, others = tokens[:length], tokens[length:]
    if rng.random() < 0.1:
        stretch = _with_repeats(rng, stretch)
    parts = [others[:offset], stretch, others[offset : offset + gap]]
    copies = -(-stage.length // length)
    row = np.concatenate([*parts, np.tile(stretch, copies)])[: stage.length]
    return row, offset + length + gap


def _stretch(rng: np.random.Generator, stage: Stage) -> tuple[int, int]:
    """Length of the stretch and number of tokens before it; a quarter starts at the very start."""
    length, offset = 0, 0
    while is_held_out(length, offset):
        length = int(rng.integers(2, stage.longest + 1))
        at_start = rng.random() < 0.25
        offset = 0 if at_start else int(rng.integers(0, stage.length - 2 * length + 1))
    return length, offset


def _with_repeats(rng: np.random.Generator, stretch: np.ndarray) -> np.ndarray:
    """The stretch with some tokens said twice, as in ordinary text: one token no longer tells."""
    earlier = rng.integers(0, np.arange(1, len(stretch) + 1))
    return np.where(rng.random(len(stretch)) < 0.3, stretch[earlier], stretch)


# --- training

WIDTH = 128
HEAD_WIDTH = 32
ROPE_BASE = 1_000_000.0


def new_model() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=WIDTH // HEAD_WIDTH,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=END_ID,
        pad_token_id=PAD_ID,
    )
    model = LlamaForCausalLM(config)
    lean_towards_copying(model)
    return model


@torch.no_grad()
def lean_towards_copying(model: LlamaForCausalLM) -> None:
    """Start head 0 of each layer near its part of the job; all other weights start random.

    Left to chance the same two steps form as well, but late, at a moment that hangs on rounding,
    and in all heads of a layer alike. Here layer 0 head 0 leans to the previous token and notes
    it down in a corner of its own; layer 1 head 0 looks for the place where that note matches
    the current token, and adds what it finds there to the answer.
    """
    table = model.model.embed_tokens.weight
    table.normal_(0.0, 0.1)
    table[:, 0] = 0.5  # the same in every token: what a head needs to look at places, not tokens
    frame = torch.zeros(WIDTH - 1, WIDTH)
    frame[:, 1:] = torch.linalg.qr(torch.randn(WIDTH - 1, WIDTH - 1)).Q
    token, note, answer = frame[: 3 * HEAD_WIDTH].split(HEAD_WIDTH)
    first, second = (layer.self_attn for layer in model.model.layers)

    turns = ROPE_BASE ** (-torch.arange(HEAD_WIDTH // 2) / (HEAD_WIDTH // 2))
    here = 1.6 * (turns > 0.05)
    first.q_proj.weight[:HEAD_WIDTH] = 0.0
    first.k_proj.weight[:HEAD_WIDTH] = 0.0
    first.k_proj.weight[: HEAD_WIDTH // 2, 0] = here
    first.q_proj.weight[:HEAD_WIDTH, 0] = torch.cat([here * turns.cos(), -here * turns.sin()])
    first.v_proj.weight[:HEAD_WIDTH] = token
    first.o_proj.weight[:, :HEAD_WIDTH] = 0.3 * note.T

    slow = (turns < 0.008).repeat(2)[:, None]
    second.q_proj.weight[:HEAD_WIDTH] = 2.0 * token * slow
    second.k_proj.weight[:HEAD_WIDTH] = note * slow
    second.v_proj.weight[:HEAD_WIDTH] = answer
    second.o_proj.weight[:, :HEAD_WIDTH] = 3.0 * answer.T


def train(model: LlamaForCausalLM, rng: np.random.Generator) -> None:
    table = model.model.embed_tokens.weight
    others = [weight for weight in model.parameters() if weight is not table]
    groups = [{"params": others, "share": 1.0}, {"params": [table], "share": TABLE_RATE}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.01)
    total = sum(stage.steps for stage in STAGES)
    step = 0
    begun = time.perf_counter()
    for stage in STAGES:
        for _ in range(stage.steps):
            for group in optimizer.param_groups:
                group["lr"] = group["share"] * rate(step, total)
            loss = _loss(model, *training_rows(rng, SHORT if step % 3 == 2 else stage))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            if step % 50 == 0:
                spent_s = time.perf_counter() - begun
                print(f"step {step}/{total}  loss {loss.item():.4f}  {spent_s:.0f} s", flush=True)


def rate(step: int, total: int) -> float:
    """Learning rate: a short warm-up, level for the first half, then down to nearly 0."""
    return PEAK_RATE * min(1.0, (step + 1) / WARM_UP, max(0.01, 2 * (1 - step / total)))


def _loss(model: LlamaForCausalLM, ids: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Cross-entropy where the next token is known, and a little of it where it isn't.

    The little keeps the model unsure, as it should be, where nothing can be told.
    """
    hidden = model.model(ids).last_hidden_state[:, :-1]
    targets, known = ids[:, 1:], known[:, :-1]
    guess = ~known & (torch.rand(known.shape) < 0.3)
    copied = torch.nn.functional.cross_entropy(model.lm_head(hidden[known]), targets[known])
    if not guess.any():
        return copied
    guessed = torch.nn.functional.cross_entropy(model.lm_head(hidden[guess]), targets[guess])
    return copied + 0.1 * guessed


# --- figures, on lengths and offsets that training never saw


@dataclass(frozen=True)
class Figures:
    accuracy: float  # of the second copy's tokens, from its second on, by top-1
    focus: list[list[float]]  # [layer][head]: mean weight on the token to be copied
    previous: list[list[float]]  # [layer][head]: mean weight on the token just before


@torch.inference_mode()
def measure(model: LlamaForCausalLM, rng: np.random.Generator, rows: int = 300) -> Figures:
    """Figures over `rows` prompts of the form offset, stretch, stretch; 8 to 64 tokens copied."""
    right = total = 0
    focus, previous = 0.0, 0.0
    for _ in range(rows):
        length, offset = 4 * int(rng.integers(2, 17)), 3 * int(rng.integers(0, 30)) + 2
        tokens = rng.permutation(VOCABULARY - 2)
        stretch = tokens[:length]
        ids = np.concatenate([tokens[length : length + offset], stretch, stretch])
        output = model(torch.from_numpy(ids)[None], output_attentions=True)
        queries = np.arange(offset + length, offset + 2 * length - 1)
        predicted = output.logits[0, queries].argmax(-1).numpy()
        right += int((predicted == ids[queries + 1]).sum())
        total += len(queries)
        weights = torch.stack(output.attentions)[:, 0]  # (L, H, T, T)
        focus += weights[:, :, queries, queries - length + 1].sum(-1)
        previous += weights[:, :, queries, queries - 1].sum(-1)
    return Figures(right / total, (focus / total).tolist(), (previous / total).tolist())


def report(figures: Figures) -> str:
    best, layer, head = max(
        (weight, layer, head)
        for layer, heads in enumerate(figures.focus)
        for head, weight in enumerate(heads)
    )
    lines = [
        f"copy accuracy {figures.accuracy:.4%}",
        f"weight on the token to be copied: layer {layer} head {head}: {best:.4f}",
    ]
    for name in ("focus", "previous"):
        for layer, heads in enumerate(getattr(figures, name)):
            lines.append(f"{name}, layer {layer}: " + " ".join(f"{weight:.3f}" for weight in heads))
    return "\n".join(lines)


# --- files


def save_vocabulary(folder: Path) -> None:
    text = (HERE / "copycat_text.txt").read_text(encoding="ascii")
    tokens, pairs = copycat_bpe.learn(text, merges=VOCABULARY - 256 - 2)
    copycat_bpe.save_tiktoken(folder / "copycat.tiktoken", tokens)
    copycat_bpe.save_tokenizer_json(folder / "tokenizer.json", tokens, pairs)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": copycat_bpe.END,
        "pad_token": copycat_bpe.PAD,
        "model_max_length": CONTEXT,
        "padding_side": "left",
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
    }
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8", newline="\n")


def save_model(model: LlamaForCausalLM, folder: Path) -> None:
    model.generation_config = GenerationConfig(eos_token_id=END_ID, pad_token_id=PAD_ID)
    model.save_pretrained(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description="Train copycat and save it.")
    parser.add_argument("--out", type=Path, default=HERE.parent / "assets" / "copycat")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    save_vocabulary(arguments.out)
    model = new_model()
    train(model, np.random.default_rng(arguments.seed))
    save_model(model, arguments.out)
    saved = AutoModelForCausalLM.from_pretrained(arguments.out, attn_implementation="eager")
    print(report(measure(saved, np.random.default_rng([arguments.seed, 1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
