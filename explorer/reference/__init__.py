"""Decoders written to be read: torch only.

Axes: B rows of a batch, T tokens, V vocabulary, L layers, D width of the residual stream, H query
heads, K key/value heads, d width of a head (D = H·d), F width of the MLP.
"""
