"""The command line: `warpjit ...` and `python -m warpjit ...`.

    warpjit isa list --target sm_90a --dtype bf16      see `cli.isa`
    warpjit cache ls                                   see `cli.cache`

Each family of commands is a `Group` in a file of its own, and stands in `GROUPS`. Results go to stdout; a mistake is
answered with one sentence on stderr and exit status 2.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from warpjit.cli.cache import CACHE
from warpjit.cli.command import Group, parser_of
from warpjit.cli.isa import ISA
from warpjit.errors import WarpjitError

__all__ = ["GROUPS", "main"]

GROUPS: tuple[Group, ...] = (ISA, CACHE)
"""Every family of commands."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the command line: does what `arguments` (default: the process's) say, and returns the exit status."""
    chosen = parser_of("warpjit", GROUPS).parse_args(arguments)
    try:
        status = chosen.command(chosen)
        sys.stdout.flush()
    except WarpjitError as error:
        print(f"warpjit: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, `head` for example, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is flushed at exit
        status = 0
    return status or 0
