"""`bench`: how much slower a watched model is than an unwatched one, measured here and now."""

from __future__ import annotations

import argparse
from typing import Any

from explorer.cli.client import Client
from explorer.cli.document import print_json, print_table
from explorer.cli.engine import engine_command
from explorer.cli.errors import DONE
from explorer.trace import messages as m

_MEANING = {
    "decode_capture_over_plain": "decoding, all captured ÷ plain loop",
    "prefill_capture_over_plain": "prefill, all captured ÷ plain",
    "eager_over_ours": "eager with output_attentions ÷ ours, time",
    "eager_bytes_over_ours": "the same, bytes kept",
    "decode_over_floor": "decoding ÷ reading every weight once",
}


def run(arguments: argparse.Namespace) -> int:
    with Client(engine_command(arguments.engine)) as client:
        client.load(arguments.model)
        facts: dict[str, Any] = dict(client.facts(m.Bench()))
    document = {"model": arguments.model, **facts}
    if arguments.json:
        print_json(document)
        return DONE
    rows = []
    for name, ratio in facts["ratios"].items():
        by_length = ratio if isinstance(ratio, dict) else {"": ratio}
        rows += [(_MEANING.get(name, name), t, f"{x:.2f}") for t, x in by_length.items()]
    print_table(("ratio", "tokens", "measured"), rows, left={0})
    machine = facts["machine"]
    print(f"\n{machine['processor']}, {machine['cores']} cores, {facts['threads']} thread(s)")
    return DONE
