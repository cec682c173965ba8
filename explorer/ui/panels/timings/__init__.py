"""The timings panel."""
