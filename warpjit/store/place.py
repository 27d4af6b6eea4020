"""Where the store of this user is, and whether a directory may be trusted with programs that will run."""

from __future__ import annotations

import functools
import os
import stat
import sys
from pathlib import Path

from warpjit.config import Config
from warpjit.store.files import make_private


def default_root(config: Config) -> Path | None:
    """Where the store of this user is, or None if there is no place that can be trusted.

    `config.cache_dir` if it is set; else the user's cache directory if it can be written; else a directory of the
    user's own, closed to others, under the temporary directory. A relative `cache_dir` stays where it was when it was
    first asked for, also when the process changes its directory; one in a home that nobody knows ("~") is no place.
    """
    if config.cache_dir:
        return _absolute(config.cache_dir)
    return _user_cache(config) or _temporary_cache()


@functools.cache
def _absolute(path: str) -> Path | None:
    known = os.path.expanduser(path)
    return None if known.startswith("~") else Path(os.path.abspath(known))


def distrust(root: Path) -> str | None:
    """Why a directory cannot be trusted: it belongs to another user, or others may write in it. None: it can.

    Raises OSError where that cannot be seen, FileNotFoundError where it does not exist.
    """
    facts = os.stat(root)
    if not stat.S_ISDIR(facts.st_mode):
        return "is not a directory"
    if facts.st_uid != os.getuid():
        return "belongs to another user"
    if facts.st_mode & 0o022 and facts.st_mode & stat.S_ISVTX:
        return "can be written by other users (name a folder of your own in it)"
    if facts.st_mode & 0o022:
        return "can be written by other users (chmod go-w forbids it)"
    return None


def _user_cache(config: Config) -> Path | None:
    try:
        root = _users_own(config)
        make_private(root)
        usable = distrust(root) is None and os.access(root, os.W_OK | os.X_OK)
    except (OSError, RuntimeError):
        # RuntimeError: HOME is unset and the user has no entry in the password file, so says platformdirs.
        return None
    return root if usable else None


def _users_own(config: Config) -> Path:
    """What platformdirs says. On Linux its rule stands here: to import it costs more than a cache hit.

    OSError, RuntimeError: the user has no home.
    """
    if sys.platform == "linux":
        base = config.user_cache if config.user_cache and os.path.isabs(config.user_cache) else "~/.cache"
        base = os.path.expanduser(base)
        if base.startswith("~"):
            raise FileNotFoundError(base)
        return Path(base, "warpjit")
    import platformdirs  # noqa: PLC0415  needed here alone

    return Path(platformdirs.user_cache_dir("warpjit"))


def _temporary_cache() -> Path | None:
    import tempfile  # noqa: PLC0415  rarely needed

    try:
        root = Path(tempfile.gettempdir(), f"warpjit-{os.getuid()}")
        if not os.path.lexists(root):
            os.mkdir(root, 0o700)
        facts = os.lstat(root)
    except OSError:
        return None
    closed = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o077
    return root if closed else None
