"""The command line: `decoder-explorer`, with or without a command.

Every command but `engine` reaches the engine through `session.connection.remote`, so that none of
them loads torch in this process.  What a command needs is imported when it runs: --help stays
quick.
"""

try:
    from explorer.cli.dispatch import main
except KeyboardInterrupt:  # Ctrl-C in the first tenths of a second
    raise SystemExit(130) from None

__all__ = ["main"]
