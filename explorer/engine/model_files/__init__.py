"""What is in a model folder: config, weight files, sizes, identity. No weights are loaded here."""
