"""What one run of a model was: frozen data, read-only arrays, and its file format.

Axes, as they are named everywhere in this project:

T    slots of the sequence a pass reads (tokens, padding included)
Q    query rows of one attention call: the slots that this pass reads
K    key columns of that call: Q plus what the cache still holds
V    vocabulary entries, as wide as the model's head
L    decoder layers
H    query heads of a layer, H_kv its key/value heads
d    model width, d_h the width of one head

A *slot* is a place in the sequence as it was fed, padding included; a *position* is the number
the model was given for it.  Nothing in this room needs torch, Qt or the model.
"""
