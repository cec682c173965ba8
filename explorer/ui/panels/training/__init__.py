"""The training panel: a small model learns while its curves and attention maps are drawn."""
