"""Questions that take passes of their own: samples, search, padded batches, the cache on and off.

Each is one function from a request to a result.  Nothing here loads a model.
"""
