"""The pages of the KV cache panel."""
