"""Text to tokens and back, exactly: tokenizers of every kind, raw bytes, chat templates."""
