"""`python -m warpjit`: the command line."""

import sys

from warpjit.cli import main

if __name__ == "__main__":
    sys.exit(main())
