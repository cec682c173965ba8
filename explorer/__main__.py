"""`python -m explorer` is the program `decoder-explorer`."""

import sys

from explorer.cli import main

if __name__ == "__main__":
    sys.exit(main())
