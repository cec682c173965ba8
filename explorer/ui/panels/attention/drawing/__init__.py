"""Drawing a mask of one's own: the tool's choices, and what its strokes change in the next run."""
