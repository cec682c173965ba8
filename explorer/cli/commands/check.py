"""`check`: the self-check on a fixed prompt."""

from __future__ import annotations

import argparse

from explorer.cli.client import Client
from explorer.cli.commands.engine import engine_command
from explorer.cli.commands.trace import form_of, run_loaded
from explorer.cli.document import print_json, print_table, self_check_document
from explorer.cli.errors import CHECK_FAILED, DONE, ENGINE_FAILED, CommandError
from explorer.cli.patch_sources import require_same_model
from explorer.figures.text import warnings
from explorer.trace.card import Check, SelfCheck
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.wire import messages as m

PROMPT = "The quick brown fox jumps over the lazy dog."
STEPS = 8


def run(arguments: argparse.Namespace) -> int:
    request = RunRequest(
        model=arguments.model,
        prompt=PROMPT,
        cache_type_k=arguments.cache_type_k,
        gpu_layers=arguments.gpu_layers,
        dtype=arguments.dtype or "float32",
        device=arguments.device or "cpu",
        form=form_of(arguments, by_torch=bool(arguments.interventions)),
        interventions=tuple(arguments.interventions),
    )
    with Client(engine_command(arguments.engine)) as client:
        card = client.load(
            request.model,
            request.dtype,
            request.device,
            form=request.form,
            cache_type_k=request.cache_type_k,
            gpu_layers=request.gpu_layers,
            test_again=True,
        )
        require_same_model(request, card)
        chosen: tuple[int, ...] = ()
        if not card.not_finite:  # else there is nothing to choose by, and the check says so
            try:
                chosen = run_loaded(client, card, request, STEPS, Sampling()).chosen_ids
            except CommandError:
                if request.device == "cpu":
                    raise
                # The check tells whether it is the device that gives no numbers.
        checks = _checks(client, m.CheckTrace(request=request, chosen=chosen))
    passed = all(check.passed for check in checks)
    document = {
        "model": arguments.model,
        **self_check_document(SelfCheck(passed=passed, checks=checks)),
        "warnings": warnings.of_run(card, Sampling()),
    }
    if arguments.json:
        print_json(document)
    else:
        _print(arguments.model, passed, checks)
    return DONE if passed else CHECK_FAILED


def _checks(client: Client, request: m.CheckTrace) -> tuple[Check, ...]:
    found: list[Check] = []
    for event in client.answers(request):
        if isinstance(event, m.Checked):
            found.append(event.check)
            client.progress(event.check.name)
    if not found:
        raise CommandError("The engine ran no check.", ENGINE_FAILED)
    return tuple(found)


def _print(model: str, passed: bool, checks: tuple[Check, ...]) -> None:
    rows = [
        (
            "passed" if check.passed else "FAILED",
            check.name,
            f"{check.measured:.3g}",
            f"{check.tolerance:.3g}",
            check.note,
        )
        for check in checks
    ]
    print_table(("", "check", "measured", "tolerance", "note"), rows, left={0, 1, 4})
    print(f"\n{model}: {'all checks passed' if passed else 'a check FAILED'}")
