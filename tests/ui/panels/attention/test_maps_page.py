"""Where the three maps of a comparison go, and the key to their colours."""

from __future__ import annotations

import pytest

from explorer.ui.panels.attention.maps_page import in_a_row


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize(("width", "height"), [(415, 166), (415, 400), (900, 220)])
def test_every_row_of_the_key_is_inside_the_page(width: int, height: int, rows: int) -> None:
    key = 18 * rows
    found = in_a_row(width, height, room=41, title=16, key=key).key
    assert (found.height(), found.left()) == (key, 0)
    assert found.bottom() < height
