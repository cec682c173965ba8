"""Cells as the bytes of a Jupyter notebook (nbformat 4.5), which is JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from explorer.notebooks.script import ScriptCell


def notebook(cells: Sequence[ScriptCell]) -> bytes:
    """A notebook without results, UTF-8."""
    document = {
        "cells": [_cell(number, cell) for number, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8") + b"\n"


def _cell(number: int, cell: ScriptCell) -> dict[str, Any]:
    told: dict[str, Any] = {
        "cell_type": cell.kind,
        "id": f"cell-{number}",
        "metadata": {},
        "source": cell.text.strip("\n").splitlines(keepends=True),
    }
    return told if cell.kind == "markdown" else {**told, "execution_count": None, "outputs": []}
