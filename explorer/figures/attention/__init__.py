"""Attention maps, arcs and heads of a run, as arrays ready to draw."""
