"""Frames between the engine and its client: what is asked, what is answered, and how it is
packed."""
