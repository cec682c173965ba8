"""Decoders written to be read, in torch alone: edit a line, open the model, and look.

Axes: B rows of a batch, T tokens of this pass, S tokens so far (those in the cache, and T), V
vocabulary, D width of the residual stream, H query heads, K key/value heads, d width of a head, F
width of the MLP.
"""
