"""The residual stream panel: its length and direction, and what is added to it."""
