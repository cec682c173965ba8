"""The attribution panel: which part of the model made a logit what it is."""
