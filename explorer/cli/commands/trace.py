"""`trace`: run a model for some steps, then show or save what happened."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from explorer import disk
from explorer import sampling as chain
from explorer.cli.client import Client, require_possible
from explorer.cli.commands.engine import engine_command
from explorer.cli.context_policy import policy_of, require_fitting, require_room
from explorer.cli.document import (
    print_json,
    print_reuse,
    print_trace,
    reuse_document,
    trace_document,
)
from explorer.cli.errors import DONE, ENGINE_FAILED, INTERRUPTED, CommandError
from explorer.cli.patch_sources import require_same_model
from explorer.cli.prompts import prompt_fields, read_prompts
from explorer.cli.reference import compared, print_reference, read_reference, reference_document
from explorer.figures.cost import run_cost as plan_words
from explorer.figures.text import warnings
from explorer.session import capture_budget
from explorer.trace.card import ModelCard
from explorer.trace.files import dxt
from explorer.trace.interventions.kinds import Cells, Interventions, Patch, brief
from explorer.trace.request import Form, RunRequest, Sampling
from explorer.trace.step import NAMED
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from explorer.trace.wire.bounds import MOST_PADDING


def run(arguments: argparse.Namespace) -> int:
    """Everything that can be refused is refused before the engine starts."""
    if (arguments.top or 0) > NAMED:
        raise CommandError(f"--top {arguments.top} is too many: at most {NAMED} tokens are named.")
    if arguments.prompts is not None:
        return _run_many(arguments)
    if arguments.reuse_prefix:
        raise CommandError("--reuse-prefix is for --prompts: one prompt has none before it.")
    given = _given(arguments)
    request = _request(arguments, **prompt_fields(arguments))
    _sampling(given)  # refused now, if it is to be refused
    command = engine_command(arguments.engine)
    out = None if arguments.out is None else writable(arguments.out)
    name = arguments.reference
    own = None if name is None else read_reference(name)
    with Client(command) as client:
        card = client.load_for(request)
        require_same_model(request, card)
        sampling = _sampling(given, card if arguments.model_defaults else None)
        refuses = arguments.context_policy == "refuse"
        broken: UnfinishedRun | None = None
        try:
            trace = run_loaded(client, card, request, arguments.steps, sampling, refuses=refuses)
        except UnfinishedRun as unfinished:
            broken, trace = unfinished, unfinished.trace
    if out is not None:
        try:
            dxt.save(trace, out)
        except dxt.DxtError as error:
            before = f"{broken} " if broken else ""
            raise CommandError(f"{before}{error}") from error
    # If that fails, the run is saved.
    found = None if own is None or broken is not None else compared(trace, own, name)
    if arguments.json:
        # The path is of this machine: `show` has no such field, for no file holds it.
        document = {**trace_document(trace, arguments.top or 0), "path": card.path}
        more = {} if found is None else {"reference": reference_document(found)}
        why = {} if broken is None else {"error": str(broken)}
        print_json({**document, **more, **why})
    else:
        print_trace(trace, arguments.top or 0)
        if found is not None:
            print_reference(found, trace)
    if broken is not None:
        raise CommandError(f"{broken} {_kept(trace, arguments.steps, out)}", broken.code)
    return DONE


def _kept(trace: Trace, steps: int, out: Path | None) -> str:
    """What there is of a run that broke off."""
    count = f"{len(trace.steps):,} of {steps:,} steps"
    return f"{count} are above." if out is None else f"{count} were saved to {out}."


def _run_many(arguments: argparse.Namespace) -> int:
    """One start, and each prompt of a file after the other; one that fails is reported."""
    for option in ("out", "reference"):
        if getattr(arguments, option) is not None:
            raise CommandError(f"--{option} is of one run. Leave it out, or leave out --prompts.")
    given = _given(arguments)
    _sampling(given)
    requests = [_request(arguments, **fields) for fields in read_prompts(arguments)]
    code = DONE
    with Client(engine_command(arguments.engine)) as client:
        card = client.load_for(requests[0])
        require_same_model(requests[0], card)
        sampling = _sampling(given, card if arguments.model_defaults else None)
        for number, request in enumerate(requests):
            try:
                how = (client, card, request, arguments.steps, sampling)
                document = _run_one_of_many(how, number, arguments)
            except UnfinishedRun as unfinished:
                steps = trace_document(unfinished.trace, arguments.top or 0)
                document = {"prompt_index": number, **steps, "error": str(unfinished)}
                if arguments.json:
                    print_json(document, lines=True)
                else:
                    _print_one_of_many(number, unfinished.trace, arguments.top or 0)
                kept = _kept(unfinished.trace, arguments.steps, None)
                words = f"Prompt {number + 1}: {unfinished} {kept}"
                raise CommandError(words, unfinished.code) from unfinished
            except CommandError as error:
                if error.code == ENGINE_FAILED:
                    raise
                client.note(f"Prompt {number + 1}: {error}")
                document, code = {"prompt_index": number, "error": str(error)}, error.code
            if arguments.json:
                print_json(document, lines=True)
    return code


def _run_one_of_many(
    how: tuple[Client, ModelCard, RunRequest, int, Sampling],
    number: int,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """The JSON of one prompt; printed as a table, unless JSON is asked for."""
    refuses = arguments.context_policy == "refuse"
    trace = run_loaded(*how, reuse=bool(arguments.reuse_prefix), refuses=refuses)
    document = {"prompt_index": number, **trace_document(trace, arguments.top or 0)}
    if arguments.reuse_prefix == "check":
        document["reuse"] = reuse_document(trace, run_loaded(*how, refuses=refuses))
    if not arguments.json:
        _print_one_of_many(number, trace, arguments.top or 0)
        print_reuse(document.get("reuse"))
    return document


def _print_one_of_many(number: int, trace: Trace, top: int) -> None:
    print(f"\nprompt {number + 1}" if number else "prompt 1")
    print_trace(trace, top)


class UnfinishedRun(CommandError):
    """A run broke off after some steps; `trace` has them."""

    def __init__(self, why: str, code: int, trace: Trace) -> None:
        super().__init__(why, code)
        self.trace = trace


def run_loaded(
    client: Client,
    card: ModelCard,
    request: RunRequest,
    steps: int,
    sampling: Sampling,
    reuse: bool = False,
    refuses: bool = False,
) -> Trace:
    """A whole run of the model that the engine holds: prefill, decode.

    `refuses`: CommandError before the first pass if the last one would pass the limit.
    UnfinishedRun with its steps if it breaks off: the engine is lost or fails, or Ctrl-C.
    """
    require_fitting(request, card)
    client.note(warnings.settings_left_out(card, sampling))
    asked = m.Advance(request=request, steps=steps, sampling=sampling, reuse=reuse)
    trace: Trace | None = None
    why, code = "", INTERRUPTED
    try:
        for so_far in _growing(client, card, asked, refuses):
            trace = so_far
    except CommandError as error:
        if trace is None or not trace.steps:
            raise
        why, code = str(error), error.code
    except KeyboardInterrupt:
        if trace is None or not trace.steps:
            raise
        why = "Interrupted."
    if trace is None:
        raise CommandError("The engine ended the run before it started.", ENGINE_FAILED)
    if why:
        raise UnfinishedRun(why, code, trace)
    return trace


def _growing(client: Client, card: ModelCard, asked: m.Advance, refuses: bool) -> Iterator[Trace]:
    """The run as it is after each answer."""
    request, steps = asked.request, asked.steps
    trace: Trace | None = None
    for event in client.answers(asked):
        match event:
            case m.Planned():
                client.note(plan_words.sentence(event.plan))
            case m.Prompted():
                slots = len(event.tokens) + steps - 1
                _require_positions(request.interventions, slots)
                if refuses:
                    require_room(request, card, slots)
                trace = Trace(request=request, card=card, prompt=event.tokens, turns=event.turns)
                client.note(event.note)
                client.progress("prefill")
            case m.Stepped() if trace is not None:
                trace = trace.appended(event.step, event.token)
                trace = capture_budget.within(trace, capture_budget.DEFAULT_BYTES, keep=(0,))
                client.progress("step", len(trace.steps) / steps)
            case m.Finished() if trace is not None:
                trace = replace(trace, stop_reason=event.reason)
        if trace is not None:
            yield trace


def _require_positions(interventions: Interventions, slots: int) -> None:
    """CommandError naming the first cell that lies beyond the `slots` that the run reads."""
    for one in interventions:
        spans = [one.queries, one.keys] if isinstance(one, Cells) else []
        spans += [one.positions] if isinstance(one, Patch) else []
        last = max((span[1] for span in spans if span is not None), default=0)
        if last >= slots:
            raise CommandError(
                f"'{brief(one)}': there is no position {last}. "
                f"This run reads positions 0 to {slots - 1}."
            )


def writable(name: str) -> Path:
    """The path of a file to write; CommandError if that can't work."""
    path = Path(name)
    if not name:
        raise CommandError("--out is empty; name a file to write.")
    try:
        if path.is_dir():
            raise CommandError(f"{name} is a folder; name a file to write.")
        target = disk.writable(path)
        if not target.parent.is_dir():
            raise CommandError(f"There is no folder {target.parent} to write {target.name} in.")
        if not os.access(target.parent, os.W_OK):
            raise CommandError(
                f"You have no permission to write in {target.parent}. Choose another folder."
            )
    except OSError as error:
        raise CommandError(f"{name} can't be written: {disk.why(error)}.") from error
    except ValueError as error:
        raise CommandError(f"{name!r} is no file name: {error}.") from error
    return path


def _request(arguments: argparse.Namespace, **read: Any) -> RunRequest:
    """`read`: the fields that say what is read."""
    if (arguments.padding is None) != (arguments.pad is None):
        raise CommandError(
            "--padding and --pad must be used together, for example --padding left --pad 4."
        )
    if (arguments.pad or 0) > MOST_PADDING:
        raise CommandError(f"--pad {arguments.pad} is too large: at most {MOST_PADDING:,} slots.")
    return run_request(
        arguments,
        context=policy_of(arguments),
        causal_mask=not arguments.no_causal_mask,
        cache=not arguments.no_cache,
        padding=arguments.padding,
        pad=arguments.pad or 0,
        capture_every=arguments.capture_every,
        interventions=tuple(arguments.interventions),
        start_token=arguments.start_token,
        position_offset=arguments.position_offset,
        **read,
    )


def run_request(arguments: argparse.Namespace, by_torch: bool = False, **more: Any) -> RunRequest:
    """The run that the arguments of a command ask for; CommandError if it can't be asked for.

    A .gguf file is converted for what llama.cpp does not do, unless it is to be run as it is.
    """
    patched = any(isinstance(one, Patch) for one in more.get("interventions", ()))
    if not more.keys() & {"prompt", "input_ids"}:
        more |= prompt_fields(arguments)
    request = RunRequest(
        model=arguments.model,
        dtype=arguments.dtype or "float32",
        device=arguments.device or "cpu",
        cache_type_k=getattr(arguments, "cache_type_k", "f16"),
        gpu_layers=getattr(arguments, "gpu_layers", 0),
        form=form_of(arguments, by_torch or patched or bool(more.get("padding"))),
        **more,
    )
    require_possible(request)
    return request


def form_of(arguments: argparse.Namespace, by_torch: bool = False) -> Form:
    """How a .gguf file is opened; a dtype or a device is that of a converted one."""
    of_llama = [
        option
        for option, usual in (("cache_type_k", "f16"), ("gpu_layers", 0))
        if getattr(arguments, option, usual) != usual
    ]
    if of_llama:
        by_hand = getattr(arguments, "dtype", "") or getattr(arguments, "device", "")
        if by_hand or arguments.form == "float32":
            raise CommandError(
                f"--{of_llama[0].replace('_', '-')} is for a .gguf file run as it is. Leave it "
                "out, or leave out --as float32, --dtype and --device."
            )
        return "as-is"
    if not (getattr(arguments, "dtype", "") or getattr(arguments, "device", "")):
        return cast(Form, arguments.form or ("float32" if by_torch else ""))
    if arguments.form == "as-is":
        raise CommandError(
            "--as as-is can't be combined with --dtype or --device: the file decides these."
        )
    return "float32"


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    """The sampling settings that were given, by their names in Sampling.

    Greedy, unless a setting is given that only shapes what is drawn from.  The repetition penalty
    changes which token is best, so it is no reason to draw.
    """
    names = ("temperature", "top_k", "top_p", "min_p")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    if arguments.greedy and given:
        raise CommandError(
            "--greedy can't be combined with --temperature, --top-k, --top-p or --min-p."
        )
    if given or arguments.greedy:
        given["greedy"] = arguments.greedy
    if arguments.repetition_penalty is not None:
        given["repetition_penalty"] = arguments.repetition_penalty
    return {**given, "seed": arguments.seed}


def _sampling(given: dict[str, Any], card: ModelCard | None = None) -> Sampling:
    """What was given, over the settings that a model's makers ship if a card is given."""
    own = {} if card is None else chain.model_defaults(card.generation_defaults)
    sampling = Sampling(**{**own, **given})
    try:
        chain.check(sampling)
    except chain.SamplingError as error:
        whose = "The model's recommended settings can't be used: " if own else ""
        raise CommandError(f"{whose}{error}") from error
    require_possible(sampling)
    return sampling
