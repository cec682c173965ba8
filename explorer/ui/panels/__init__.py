"""One file per panel; they know nothing of each other."""
