"""A training run as data: settings, the figures of each update, what is asked and told of it."""
