"""A lesson beside the panels: its card, its questions, and what it points at on screen."""
