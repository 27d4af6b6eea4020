"""What a command is, and the parser that is made of them. Commands themselves stand in the files of their groups."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn


@dataclass(frozen=True)
class Command:
    """One command.

    name       as it is typed
    summary    a sentence for --help
    configure  adds its arguments to the parser
    run        does it: prints to stdout, raises a WarpjitError with one sentence where the input is wrong; gives the
               exit status (None: 0)
    """

    name: str
    summary: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]


@dataclass(frozen=True)
class Group:
    """Commands under one name: `warpjit isa list`, `warpjit isa show`."""

    name: str
    summary: str
    commands: tuple[Command, ...]


class _Parser(argparse.ArgumentParser):
    """Answers a mistake with one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


class _CommandParser(_Parser):
    """Takes options between positional words too: `where TEXT A --json 5 9`."""

    _mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._mixing:  # argparse's own way for mixed words comes back here
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False


def parser_of(name: str, groups: Sequence[Group]) -> argparse.ArgumentParser:
    """A parser whose result has the chosen command's `run` as `command`."""
    parser = _Parser(prog=name, description="Warp-level tensor-core kernels in Python.", allow_abbrev=False)
    families = parser.add_subparsers(metavar="COMMAND", required=True)
    for group in groups:
        family = families.add_parser(group.name, help=group.summary, description=group.summary, allow_abbrev=False)
        commands = family.add_subparsers(metavar="COMMAND", required=True, parser_class=_CommandParser)
        for command in group.commands:
            own = commands.add_parser(
                command.name, help=command.summary, description=command.summary, allow_abbrev=False
            )
            command.configure(own)
            own.set_defaults(command=command.run)
    return parser
