"""Sessions on disk: saved, autosaved, recovered."""
