"""Questions about the inside of a model: one request and one result for each."""
