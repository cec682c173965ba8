"""What this machine has: memory, how fast it reads it, a ceiling on it, and the process that
started us."""
