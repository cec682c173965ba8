"""The logit lens panel: what the model would say after each layer."""
