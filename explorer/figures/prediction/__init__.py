"""The next token: distributions, sampling stages, surprisal, branches, masked beside unmasked."""
