"""What all commands of the cache share: which directory they are about, and its entries."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from warpjit import config
from warpjit.errors import CacheError
from warpjit.store import contents, default_root, log
from warpjit.store.contents import Item

SHORT = 12
"""Digits of a key in a table."""


def add_directory(parser: ArgumentParser) -> None:
    parser.add_argument("--dir", help="the cache's directory (default: the one that kernels use)")


def root_of(chosen: Namespace, *, may_be_new: bool = False) -> Path:
    """The directory that a command is about. CacheError: there is none, or it cannot be trusted.

    may_be_new  a directory that `--dir` names need not be there. The one that kernels use never need
    """
    settings = config.read()
    log.follow(settings.log)
    named = Path(chosen.dir).expanduser().absolute() if chosen.dir else default_root(settings)
    root = contents.checked_root(named)
    if chosen.dir and not may_be_new and not root.exists():
        raise CacheError(f"expected the directory of a kernel cache, but {root} does not exist")
    return root


def entries(root: Path) -> list[Item]:
    """The entries that this version of the store reads."""
    return [each for each in contents.items(root) if each.current]
