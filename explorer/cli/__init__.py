"""The command line: `decoder-explorer`, with or without a command.

Every command but `engine` reaches the engine through `session.remote`, so that none of them loads
torch in this process.  What a command needs is imported when it runs: --help stays quick.
"""

from explorer.cli.dispatch import main

__all__ = ["main"]
