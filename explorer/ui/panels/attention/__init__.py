"""The attention panel."""
