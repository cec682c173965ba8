"""The padding panel."""
