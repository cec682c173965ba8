"""A padded batch and its loss, as rows of tokens and sentences."""
