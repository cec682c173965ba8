"""Commands on a saved run: no engine, no model."""
