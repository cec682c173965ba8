"""The pages of the timings panel."""
