"""Attention maps, the atlas of all heads, arcs: pictures of many cells, painted by look-up
tables."""
