"""What all commands of the cache share: which directory they are about, and its entries."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from warpjit import config
from warpjit.store import contents, default_root
from warpjit.store.contents import Item

SHORT = 12
"""Digits of a key in a table."""


def add_directory(parser: ArgumentParser) -> None:
    parser.add_argument("--dir", help="the cache's directory (default: the one that kernels use)")


def root_of(chosen: Namespace) -> Path:
    """The directory that a command is about. CacheError: there is none, or it cannot be trusted."""
    named = Path(chosen.dir).expanduser().absolute() if chosen.dir else default_root(config.read())
    return contents.checked_root(named)


def entries(root: Path) -> list[Item]:
    """The entries that this version of the store reads."""
    return [each for each in contents.items(root) if each.current]
