"""The sampling panel."""
