"""Between the embedding and the logits: the residual stream, what is written to it, and by whom.

Nothing here knows an architecture.  What a part does is found by trying on the model itself, and
what is shown has been proved on the same pass: the lens by its last row, a layer's writes by their
sum, an attribution by the logit.  Hooks are there only while something is asked.
"""
