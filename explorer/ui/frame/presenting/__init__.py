"""Presenter mode: the window on the screen of a class, and the notes of whoever presents."""
