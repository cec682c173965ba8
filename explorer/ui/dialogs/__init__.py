"""Windows of their own: models, the Hub, remote code, help."""
