"""What a run takes: time of each pass, bytes of the KV cache, measured or estimated (and said
which)."""
