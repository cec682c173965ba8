"""The window: shows state, reports requests.  No tensor arithmetic, no torch."""
