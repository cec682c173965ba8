"""Padded batches: one pass over their rows, decoding, and inputs of the user's own."""
