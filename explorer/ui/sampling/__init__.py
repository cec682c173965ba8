"""The parts of the sampling panel: the chain as a table with its curves, and every token."""
