""".gguf files: their header, what it states, and the conversion to a float32 model folder."""
