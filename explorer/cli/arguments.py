"""The arguments of every command, in one place (design: section 8)."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, get_args

from explorer import __version__
from explorer.cli.errors import CommandError
from explorer.trace.request import MOST_GPU_LAYERS, CacheType
from explorer.trace.training.settings import BUILDS, MISTAKES, TASKS, TrainingSettings

PROGRAM = "decoder-explorer"
TRAINED = TrainingSettings()  # what `train` does where nothing is said


class _Removed(argparse.Action):
    """An option of earlier versions: using it is refused in its own words."""

    def __call__(self, *_: object) -> NoReturn:
        raise CommandError(
            "--mode was removed: one mode was no faster on every machine, the other changed the "
            "model's numbers. Leave the option out; every run now uses the model's own computation."
        )


class Parser(argparse.ArgumentParser):
    """argparse, but bad use is one sentence, not a page."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.add_argument("--mode", action=_Removed, nargs="?", help=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message[:1].upper()}{message[1:]}; see `{self.prog} --help`.")

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse's own would say nothing of a full disk."""
        stream = file or sys.stderr
        if stream is not None:
            stream.write(message)
            stream.flush()


@dataclass(frozen=True)
class Command:
    """One command: its help line, its arguments, and the module whose `run` does it."""

    name: str
    words: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    room: str = ""  # the folder of its module, with a dot

    def parser(self) -> Parser:
        parser = Parser(f"{PROGRAM} {self.name}", description=self.words, allow_abbrev=False)
        self.add_arguments(parser)
        return parser

    def run(self, arguments: argparse.Namespace) -> int:
        if getattr(arguments, "max_memory", None):
            if arguments.device != "auto":
                raise CommandError("--max-memory is for a model that is opened with --device auto.")
            arguments.device = f"auto:{arguments.max_memory}"
        module: Any = importlib.import_module(
            f"explorer.cli.commands.{self.room}{self.name.replace('-', '_')}"
        )
        return int(module.run(arguments))


def desktop_parser() -> Parser:
    """The parser without a command: the desktop program."""
    width = max(map(len, COMMANDS))
    lines = [f"  {c.name:<{width}}  {c.words}" for c in COMMANDS.values()]
    parser = Parser(
        PROGRAM,
        description="Watch a decoder-only language model generate, one pass at a time.",
        epilog="commands:\n" + "\n".join(lines) + f"\n\n`{PROGRAM} COMMAND --help` says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=f"{PROGRAM} [MODEL | FILE.dxt] [--prompt TEXT] [--engine COMMAND]\n"
        f"       {PROGRAM} COMMAND …",
        allow_abbrev=False,
    )
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL | FILE.dxt",
        help="a model folder, a .gguf file, a name from `models`, or a saved session",
    )
    parser.add_argument("--prompt", metavar="TEXT", help="the prompt to begin with")
    parser.add_argument("--lesson", metavar="NAME", help="open a lesson: its name or its file")
    _form(parser)
    _engine(parser)
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    return parser


def _model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a folder (config.json + safetensors), a .gguf file, a name from `models`, "
        "copycat or smollm2",
    )


def _engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        metavar="COMMAND",
        help="run the engine by this command, such as "
        "'ssh gpu-box /path/to/.venv/bin/decoder-explorer engine'",
    )


def _form(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as",
        dest="form",
        choices=("as-is", "float32"),
        default="",
        help="how to open a .gguf file: as it is, run by llama.cpp, or converted to float32 "
        "(default as-is; for smollm2 float32)",
    )


def _llama(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache-type-k",
        choices=get_args(CacheType),
        default="f16",
        help="what llama.cpp keeps keys in, for a .gguf file run as it is (default f16; values "
        "are kept in f16)",
    )
    parser.add_argument(
        "--gpu-layers",
        type=_number(int, 0, "a whole number from 0 up", MOST_GPU_LAYERS),
        default=0,
        metavar="N",
        help="layers that llama.cpp puts on a GPU, for a .gguf file run as it is, where its build "
        "can; not tested yet (default 0)",
    )


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def _prompt(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """The prompt's options; what is returned takes others in their place."""
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT", help="the prompt, as raw text")
    prompt.add_argument("--prompt-file", metavar="F", help="a UTF-8 file that is the prompt")
    parser.add_argument("--chat", action="store_true", help="send the prompt in the chat template")
    return prompt


def _prompts_of_trace(parser: argparse.ArgumentParser) -> None:
    prompt = _prompt(parser)
    prompt.add_argument(
        "--messages",
        metavar="FILE.json",
        help="a conversation, [{role, content}], for the chat template; if the assistant has the "
        "last word, the model goes on with it",
    )
    prompt.add_argument(
        "--input-ids",
        metavar="IDS|FILE",
        help="token ids, as 12,7,44 or in a file, taken as they are",
    )
    prompt.add_argument(
        "--prompts",
        metavar="FILE",
        help="many prompts, one after the other: one text a line, or a JSON list of texts and of "
        "lists of messages; with --json one object a line",
    )
    parser.add_argument(
        "--reuse-prefix",
        choices=("on", "check"),
        help="with --prompts: of a prompt that begins as the one before, read the rest alone; "
        "check: read it whole as well, and compare",
    )
    start = parser.add_mutually_exclusive_group()
    for option, kept, words in (
        ("--add-bos", True, "put the start token in front"),
        ("--no-bos", False, "leave the start token out"),
    ):
        start.add_argument(option, dest="start_token", action="store_const", const=kept, help=words)
    parser.add_argument(
        "--position-offset",
        type=_INDEX,
        default=0,
        metavar="N",
        help="count positions from N on (default 0)",
    )
    parser.add_argument(
        "--template-args",
        metavar="JSON",
        help="what else to tell the chat template, such as "
        "'{\"enable_thinking\": false}' or tools; with --messages or --chat",
    )


def _dtype(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--dtype", choices=("float32", "bfloat16", "float16"), help="default float32")
    add("--device", metavar="D", help="cpu (the default), cuda, mps, … or auto: over GPUs, memory "
        "and, where the model does not fit, the disk")  # fmt: skip
    add("--max-memory", metavar="SIZE", type=_limit, help="with --device auto: main memory that "
        "weights may take, such as 200MB (default: most of what is free)")  # fmt: skip


def _machine(parser: argparse.ArgumentParser) -> None:
    _dtype(parser)
    _form(parser)
    _llama(parser)
    _engine(parser)


_MOST_SIZE = 2**50  # bytes
_MOST = 2**63 - 1  # what travels to an engine


def _number(kind: type, least: float, words: str, most: int = _MOST) -> Callable[[str], Any]:
    """An argparse type with a sentence of its own."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not value >= least:
            raise argparse.ArgumentTypeError(f"{text[:80]!r} is not {words}")
        if kind is int and value > most:
            limit = "2^63 - 1" if most == _MOST else f"{most:,}"
            raise argparse.ArgumentTypeError(f"{text[:80]!r} is too large: at most {limit}")
        return value

    return parse


_COUNT = _number(int, 1, "a whole number from 1 up")
_INDEX = _number(int, 0, "a whole number from 0 up")
_REAL = _number(float, float("-inf"), "a number")


def _trace(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _model(parser)
    _prompts_of_trace(parser)
    add(
        "--steps",
        type=_COUNT,
        required=True,
        metavar="N",
        help="number of tokens (passes); the first pass is the prefill",
    )
    add("--out", metavar="FILE.dxt", help="save the run")
    _json(parser)
    add("--top", type=_COUNT, metavar="K", help="list the K most likely tokens of each step")
    add(
        "--reference",
        metavar="FILE.npy",
        help="your own logits, (steps, vocabulary): where does the run part from them?",
    )
    add("--greedy", action="store_true", help="choose the most likely token (the default)")
    add("--temperature", type=_REAL, metavar="T", help="0 = greedy")
    add("--top-k", type=_INDEX, metavar="K", help="0 = off")
    add("--top-p", type=_REAL, metavar="P", help="1 = off, 0 keeps one token")
    add("--min-p", type=_REAL, metavar="P", help="0 = off")
    add("--repetition-penalty", type=_REAL, metavar="R", help="1 = off; also works with --greedy")
    add(
        "--model-defaults",
        action="store_true",
        help="use the model's generation_config; other given settings override it",
    )
    add("--seed", type=_INDEX, default=0, metavar="S", help="default 0")
    add("--no-causal-mask", action="store_true", help="let tokens attend to later tokens")
    _interventions(parser)
    add(
        "--context-policy",
        choices=("refuse", "drop-turns", "window", "sinks"),
        help="what to do about a long text: refuse it, drop a conversation's oldest turns, attend "
        "to the last tokens alone, or to the first and the last; positions stay those of the "
        "text, but after dropped turns they are counted again",
    )
    add(
        "--window",
        type=_COUNT,
        metavar="N",
        help="tokens kept by the policy, sinks included (for refuse and drop-turns the model's "
        "context if left out)",
    )
    add("--sinks", type=_COUNT, metavar="N", help="first tokens that are kept (default 4)")
    add(
        "--sink-distances",
        choices=("text", "cache"),
        help="how far away the sinks are: as in the text (default), or counted in the cache, so "
        "that a run may go on past the model's context",
    )
    add("--no-cache", action="store_true", help="recompute the whole text at every step")
    add("--padding", choices=("left", "right"), help="pad on this side …")
    add("--pad", type=_INDEX, metavar="N", help="… with this many padding tokens")
    add(
        "--capture-every",
        type=_COUNT,
        default=1,
        metavar="N",
        help="record the attention of every N-th layer only (default 1)",
    )
    _machine(parser)


def _interventions(parser: argparse.ArgumentParser) -> None:
    """Repeatable, and kept in the order in which they are given: of two, the later one counts."""
    for option, place, reader, words in (
        ("--silence", "L.H|L.H=mean|L.mlp|L", "silence", "zero a head, an MLP or a layer, or set "
         "a head to its mean over the prompt; repeatable"),
        ("--cut", "L.H:q<-k", "cut", "cut cells of attention; * is all, 3-5 a range; "
         "q-1 the key before; repeatable"),
        ("--allow", "L.H:q<-k", "allow",
         "allow cells that a mask or an earlier --cut hides; repeatable"),
        ("--restore", "L.H:q<-k", "restore",
         "undo an earlier --cut or --allow for some cells; repeatable"),
        ("--scale", "L.H:X", "scale", "multiply attention scores by X; repeatable"),
        ("--patch", "L.H|L.mlp|L:p<-FILE.dxt", "patch",
         "at position p (* is all, 3-5 a range), take the output of a head, of an MLP or of the "
         "stream after layer L from a saved run of the same model; '4 of FILE.dxt' is another "
         "position of it; repeatable"),
    ):  # fmt: skip
        parser.add_argument(
            option,
            metavar=place,
            dest="interventions",
            action="append",
            default=[],
            type=_intervention(reader),
            help=words,
        )


def _intervention(kind: str) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        from explorer.trace.interventions import lines  # numpy, which no help text needs

        try:
            if kind == "patch":
                from explorer.cli import patch_sources

                return lines.read_patch(text, patch_sources.source_in)
            return lines.READERS[kind](text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error

    return parse


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.dxt", help="a saved run")


def _show(parser: argparse.ArgumentParser) -> None:
    _file(parser)
    _json(parser)


def _attention(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _file(parser)
    add("--layer", type=_INDEX, required=True, metavar="L")
    add("--head", type=_INDEX, required=True, metavar="H")
    add("--step", type=_INDEX, default=0, metavar="S", help="default 0")
    add("--out", required=True, metavar="FILE.npy|.csv|.png")


def _heads(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _file(parser)
    by = parser.add_mutually_exclusive_group()
    by.add_argument(
        "--by",
        choices=("induction", "previous", "first", "entropy"),
        default="induction",
        help="order by the mean weight on the token after an earlier copy, on the token before, on "
        "the first token, or by the spread of the rows (default induction)",
    )
    by.add_argument("--query", type=_INDEX, metavar="Q", help="order by what position Q reads …")
    add("--key", type=_INDEX, metavar="K", help="… from position K")
    add("--step", type=_INDEX, metavar="S", help="the pass (default: the last)")
    add("--top", type=_COUNT, metavar="N", help="print the first N heads only")
    _json(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for side in ("left", "right"):
        add(side, metavar=side.upper(), help="a saved run (.dxt), or a model as for `trace`")
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="TEXT", help="the prompt of each model")
    prompt.add_argument("--prompt-file", metavar="F", help="a UTF-8 file that is the prompt")
    for side in ("left", "right"):
        add(f"--chat-{side}", action="store_true", help=f"use the chat template on the {side}")
    for side in ("left", "right"):
        add(
            f"--dtype-{side}",
            choices=("float32", "bfloat16", "float16"),
            help=f"of the model on the {side} (default float32)",
        )
    for side in ("left", "right"):
        add(
            f"--as-{side}",
            choices=("as-is", "float32"),
            help=f"how to open a .gguf file on the {side}",
        )
    add("--steps", type=_COUNT, metavar="N", help="tokens that each model continues by (default 1)")
    _json(parser)
    _engine(parser)


def _batch(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _model(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--prompts",
        metavar="FILE",
        help="UTF-8, one prompt per line, or a JSON list of strings; 1 to 16 prompts",
    )
    what.add_argument(
        "--inputs",
        metavar="FILE.json",
        help="your own {input_ids, attention_mask, position_ids}, rows of one length: which of "
        "them is wrong?",
    )
    add("--padding", choices=("left", "right"), help="the side, for --prompts")
    add(
        "--steps",
        type=_COUNT,
        default=1,
        metavar="N",
        help="number of passes (default 1, the prefill)",
    )
    add(
        "--wrong",
        choices=("positions", "mask", "readout"),
        help="a deliberate mistake: no position ids, no mask, or read the last position",
    )
    add("--chat", action="store_true", help="send each prompt in the chat template")
    _dtype(parser)
    _form(parser)
    _json(parser)
    _engine(parser)


def _of_model(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    _json(parser)
    _engine(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    _of_run(parser)
    _dtype(parser)


def _of_run(parser: argparse.ArgumentParser) -> None:
    _of_model(parser)
    _form(parser)
    _llama(parser)
    _interventions(parser)


def _bench(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _of_run(parser)
    _dtype(parser)
    add("--out", metavar="FILE", help="save the results, as JSON")
    add("--against", metavar="FILE", help="compare with results saved earlier")
    add("--no-window", action="store_true", help="skip the measurements of the window")


def _inside(parser: argparse.ArgumentParser) -> None:
    """What every command has that looks into one run."""
    _model(parser)
    _prompt(parser)
    parser.add_argument(
        "--steps",
        type=_INDEX,
        default=0,
        metavar="N",
        help="first continue the prompt by N tokens, greedily (default 0)",
    )
    parser.add_argument(
        "--slot",
        type=_INDEX,
        metavar="S",
        help="look at this position, counted from 0 (default: the last)",
    )
    _json(parser)
    _machine(parser)


def _lens(parser: argparse.ArgumentParser) -> None:
    _inside(parser)
    parser.add_argument(
        "--top", type=_COUNT, default=5, metavar="K", help="tokens per cell (default 5)"
    )


def _layer(parser: argparse.ArgumentParser) -> None:
    _inside(parser)
    parser.add_argument("--layer", type=_INDEX, required=True, metavar="L", help="counted from 0")


def _attribute(parser: argparse.ArgumentParser) -> None:
    _inside(parser)
    add = parser.add_argument
    add("--token", type=_INDEX, metavar="ID", help="whose logit (default: the model's favourite)")
    add("--against", type=_INDEX, metavar="ID", help="take apart the lead over this token instead")


def _train(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--build", choices=BUILDS, default=TRAINED.build, help=f"default {TRAINED.build}")
    add(
        "--task",
        default=TRAINED.task,
        metavar="TASK | FILE",
        help=f"{', '.join(TASKS)}, or a text file to continue (default {TRAINED.task})",
    )
    add(
        "--wrong",
        action="append",
        choices=MISTAKES,
        default=[],
        help="make this mistake while training; may be repeated",
    )
    for name, words in (
        ("layers", "layers"),
        ("width", "width of the residual stream"),
        ("heads", "attention heads per layer"),
        ("steps", "updates"),
    ):
        default = getattr(TRAINED, name)
        add(
            f"--{name}",
            type=_COUNT,
            default=default,
            metavar="N",
            help=f"{words} (default {default:,})",
        )
    add(
        "--rate",
        type=_REAL,
        default=TRAINED.rate,
        metavar="R",
        help="highest learning rate (default 3e-3)",
    )
    add("--seed", type=_INDEX, default=TRAINED.seed, metavar="S", help="default 0")
    add("--out", metavar="FOLDER", help="save the trained model in this new folder")
    _json(parser)
    _engine(parser)


def _plan(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    parser.epilog = (
        "--json has model, architecture, parameters, tokens, batch, dtype, weights_bytes, "
        "cache_bytes, cache_bytes_per_layer [{layer, kind, bytes}], activation_bytes, "
        "captured_bytes {dtype/policy: bytes}, total_bytes, step_bound {bytes_read, "
        "bytes_per_second, seconds, bandwidth}, splits [{split, possible, reason, seconds}], "
        "devices [{device, split, layers [first, one after the last], weights_bytes, "
        "cache_bytes, ..., fits}], not_known [sentences]. What is not known is null."
    )
    add(
        "model",
        metavar="MODEL",
        help="as for `trace`, or a config.json without weights, or GPT-1, GPT-2 or GPT-3",
    )
    add("--tokens", type=_COUNT, required=True, metavar="N", help="tokens of each sequence")
    add("--batch", type=_COUNT, default=1, metavar="B", help="sequences (default 1)")
    add("--dtype", choices=("float32", "bfloat16", "float16"), default="float32",
        help="of weights and cache (default float32)")  # fmt: skip
    add("--gpus", type=_COUNT, default=0, metavar="N", help="GPUs (default: this machine, none)")
    add("--gpu-memory", type=_size, default=0, metavar="G", help="memory of each, such as 80GB")
    add(
        "--bandwidth",
        type=_size,
        default=0,
        metavar="B",
        help="memory bandwidth of each device in bytes per second, such as 2TB (default: measured "
        "on this machine, or not known of GPUs)",
    )
    _json(parser)
    _engine(parser)


def _size(text: str) -> int:
    """Bytes: 200MB, 80 GB, 24GiB; a bare number is gigabytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKMGT]?)(i?)(B?)\s*", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is no size: write it like 80GB or 200MB")
    number, prefix, binary, unit = found.groups()
    power = "kmgt".index(prefix.lower()) + 1 if prefix else 0 if unit else 3
    size = int(float(number) * (1024 if binary else 1000) ** power)
    if not 0 < size <= _MOST_SIZE:
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is no size that memory can have")
    return size


def _limit(text: str) -> str:
    """A size as it is written after `auto:`."""
    _size(text)
    found = re.sub(r"\s", "", text)
    return found if found.endswith("B") else f"{found}{'B' if found[-1].isalpha() else 'GB'}"


def _models(parser: argparse.ArgumentParser) -> None:
    _json(parser)
    _engine(parser)


def _lesson(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "lesson",
        nargs="?",
        metavar="NAME | FILE",
        help="a lesson of the program, a lesson folder or a lesson.toml",
    )
    parser.add_argument("--list", action="store_true", help="list the lessons of the program")
    parser.add_argument(
        "--check",
        action="store_true",
        help="show every scene without a window and measure every figure; exit 1 if one can't be "
        "had",
    )
    _form(parser)
    _json(parser)
    _engine(parser)


def _llama_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--can-use-gpu",
        action="store_true",
        help="only say whether llama.cpp can put layers on a GPU here",
    )


def _nothing(parser: argparse.ArgumentParser) -> None:
    pass


COMMANDS = {
    command.name: command
    for command in (
        Command("trace", "Run a model for some steps and show or save what happened.", _trace),
        Command("show", "Show the contents of a saved run.", _show, "saved."),
        Command(
            "attention", "Write the attention map of one head of a saved run.", _attention, "saved."
        ),
        Command("heads", "List the heads of a saved run by what they do.", _heads, "saved."),
        Command("compare", "Compare two runs: saved ones, or one prompt on two models.", _compare),
        Command("batch", "Run padded prompts as a batch and compare with each one alone.", _batch),
        Command("check", "Self-check on a fixed prompt; exit 1 if a check fails.", _check),
        Command("lens", "What the model would say after each of its layers (logit lens).", _lens),
        Command("layer", "What one layer computes for one token, stage by stage.", _layer),
        Command("attribute", "Which heads and MLPs made a token's logit what it is.", _attribute),
        Command("inspect", "Architecture and parameter count, from the config alone.", _of_model),
        Command("plan", "Memory that a model would take, here or on GPUs, by its config.", _plan),
        Command("models", "List local models: size, and whether they fit in memory.", _models),
        Command("train", "Train a small decoder on a task, rightly or with mistakes.", _train),
        Command("bench", "Measure how much recording slows a model down.", _bench),
        Command("lesson", "Open a lesson, list the lessons, or measure all its figures.", _lesson),
        Command("engine", "The engine's process; speaks frames over stdin/stdout.", _nothing),
        Command(
            "llama-engine", "The engine's own process for .gguf files as they are.", _llama_engine
        ),
    )
}
