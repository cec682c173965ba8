"""Charts with two numeric axes."""
