"""The window: shows state, reports wishes.  No tensor arithmetic, no torch."""
