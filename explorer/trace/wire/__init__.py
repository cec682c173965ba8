"""Frames between the engine and its client: what is asked, what is answered, how it is packed, and
what of it is valid, in a file too."""
