"""A training run as data: its settings, and the figures of each update."""
