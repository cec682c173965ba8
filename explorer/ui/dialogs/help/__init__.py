"""Help: the card of a term, the page of all terms, the page of all keys, and the guide."""
