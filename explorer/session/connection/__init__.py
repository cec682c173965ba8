"""The line to an engine: its process, the frames over stdin and stdout, the log."""
