"""How a file is read and published, by calls of `os` alone. What is in it is `entry`'s.

Publication: the bytes go to a temporary file in the same folder, which is synced and renamed over the name; so at every
moment, also after a crash, the name holds the old bytes, the new ones, or nothing, and no lock is needed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from warpjit.store.entry import DamagedEntryError

TEMPORARY = "."
"""How the names of files begin that are not published yet."""
_BLOCK = 1 << 20
# A link is not followed, it could lead anywhere; a pipe is not waited for. Windows has neither flag.
_READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_CLOEXEC"))
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def owned_bytes(path: Path, at_most: int | None = None) -> bytes:
    """The (first) bytes of a regular file that belongs to the user. OSError, DamagedEntryError: there is none."""
    descriptor = os.open(path, _READ)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.getuid():
            raise DamagedEntryError("it is not a file of this user")
        if at_most is not None:
            return os.read(descriptor, at_most)
        blocks = []
        while block := os.read(descriptor, _BLOCK):
            blocks.append(block)
        return b"".join(blocks)
    finally:
        os.close(descriptor)


def publish(path: Path, data: bytes, *, lasting: bool = True) -> None:
    """Make `path` hold `data`. OSError: it holds what it held.

    lasting  also after a crash of the machine. Otherwise one may leave a damaged file, which is a miss: much faster for
             many files
    """
    make_private(path.parent)
    temporary = path.with_name(f"{TEMPORARY}{path.name}.{os.getpid()}.{os.urandom(6).hex()}")
    try:
        descriptor = os.open(temporary, _WRITE, 0o600)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            if lasting:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        discard(temporary)
        raise
    if lasting:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a renaming in it last. Where folders cannot be synced, a crash may lose it: a miss, no more."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def discard(path: Path) -> bool:
    """Remove a file, a link or an empty folder; whether it was there and could be."""
    try:
        os.unlink(path)
    except IsADirectoryError:
        with contextlib.suppress(OSError):
            os.rmdir(path)
            return True
        return False
    except OSError:
        return False
    return True


def make_private(folder: Path) -> None:
    """`folder` and its missing parents, each created with mode 0700 (`Path.mkdir` gives that mode to the last only)."""
    missing = []
    while not os.path.isdir(folder):
        if folder == folder.parent:
            raise _no_folder(folder)
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        if not os.path.isdir(path):
            raise _no_folder(path)


def _no_folder(path: Path) -> OSError:
    return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
