"""The parts of the padding panel."""
