"""Versions of libraries on the engine's machine that differ are named, both of them."""

from __future__ import annotations

import numpy as np

from explorer.session.connection import other_versions


def test_what_differs_is_named_with_both_versions() -> None:
    said = other_versions.difference({"numpy": "1.0", "unknown-library": "3"})
    assert said == (
        f"The engine's machine has numpy 1.0 (here {np.__version__}): numbers may differ a little."
    )


def test_the_same_versions_are_not_worth_a_word() -> None:
    assert other_versions.difference({"numpy": np.__version__}) == ""
