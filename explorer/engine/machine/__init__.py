"""What this machine has: memory, how fast it reads it, a limit on it, and the process that
started us."""
