"""A text that is longer than what may be read at once: what the cache keeps of it."""
