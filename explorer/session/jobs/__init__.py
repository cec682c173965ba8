"""What the engine is asked besides steps: batches, experiments, downloads, models, live tokens."""
