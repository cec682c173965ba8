"""One module per command; each has `run(arguments)`. What it needs is imported when it runs."""
