"""A training run as figures: curves over its updates, and what its heads do at a point."""
