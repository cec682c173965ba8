"""Is what is shown what the model did?  Tried on a dozen tokens at opening, and asked again of
a run."""
