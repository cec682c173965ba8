"""Two sessions side by side: what is done to one, and what the other does with it.  No Qt."""
