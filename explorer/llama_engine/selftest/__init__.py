"""Is what is shown what llama.cpp did?  Tried on a dozen tokens at opening, and asked of a run."""
