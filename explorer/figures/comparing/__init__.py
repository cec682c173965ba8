"""Two whole runs beside each other: which of their tokens belong together, where they part.

No Qt, no torch.  What compares one run with itself under another mask or without interventions is
in `prediction` and `attention`.
"""
