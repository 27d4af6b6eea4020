"""The command line: `warpjit ...` and `python -m warpjit ...`.

    warpjit isa list --target sm_90a --dtype bf16      see `cli.isa`
    warpjit cache ls                                   see `cli.cache`

Each family of commands is a `Group` in a file of its own, and stands in `FAMILIES`; only the one that is asked for is
loaded. Results go to stdout; a mistake is answered with one sentence on stderr and exit status 2.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from warpjit.cli.command import Group, parser_of
from warpjit.errors import WarpjitError

__all__ = ["FAMILIES", "groups", "main"]

FAMILIES = {"isa": "ISA", "cache": "CACHE"}
"""Every family of commands: the file of its name, and what it is called there."""


def groups(arguments: Sequence[str]) -> tuple[Group, ...]:
    """The family that the first word names; all where it names none, for the help and the complaint."""
    first = next((word for word in arguments if not word.startswith("-")), "")
    names = [first] if first in FAMILIES else list(FAMILIES)
    return tuple(getattr(importlib.import_module(f"warpjit.cli.{name}"), FAMILIES[name]) for name in names)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the command line: does what `arguments` (default: the process's) say, and returns the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    chosen = parser_of("warpjit", groups(words)).parse_args(words)
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
