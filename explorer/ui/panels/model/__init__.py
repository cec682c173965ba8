"""The model panel."""
