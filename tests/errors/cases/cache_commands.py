"""What `warpjit cache` refuses."""

import sys
from pathlib import Path

import pytest
from catalogue import Case, Topic

from warpjit.errors import CacheError
from warpjit.store import Store, export_bundle

KEY = "ab" * 32


def no_directory(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Where neither the user's cache directory nor a temporary one can be used:"""
    patch.setattr("warpjit.cli.directory.default_root", lambda config: None)


def damaged(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """With a damaged entry in the cache:"""
    patch.setenv("WARPJIT_CACHE_DIR", str(folder / "cache"))
    store = Store(folder / "cache")
    store.put(KEY, {"kernel": "kernel"}, b"cubin")
    path = store.path("cubin", KEY)
    assert path is not None
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def script(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """With a script add.py that has one kernel, vector_add:"""
    patch.setattr(sys, "path", list(sys.path))
    patch.setitem(sys.modules, "add", None)  # type: ignore[arg-type]  what the command puts there is taken away
    (folder / "add.py").write_text("from warpjit import warpjit\n\n@warpjit\ndef vector_add(X):\n    ...\n")


def bundle(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """With a bundle, and a cache on a full disk:"""
    store = Store(folder / "other")
    store.put(KEY, {"kernel": "kernel"}, b"cubin")
    export_bundle("kernels.zip", store=store)
    patch.setenv("WARPJIT_CACHE_DIR", str(folder / "cache"))

    def full(path: Path, data: bytes, *, lasting: bool = True) -> None:
        raise OSError(28, "No space left on device")

    patch.setattr("warpjit.store.files.publish", full)


TOPIC = Topic(
    "The command line",
    "warpjit cache",
    (
        Case(
            "command('warpjit cache ls')",
            "there is no directory for the kernel cache: set WARPJIT_CACHE_DIR",
            given=no_directory,
        ),
        Case(
            "command('warpjit cache stats --dir /dev/null')",
            "expected a directory of this user's own, but the kernel cache in /dev/null is not a directory",
        ),
        Case(
            "command('warpjit cache show vector_add')",
            "expected the key of an entry, 4 or more of its hex digits, but got 'vector_add'",
        ),
        Case(
            "command('warpjit cache show abab')",
            "expected a whole entry, but abababababab is damaged (the checksum does not fit): "
            "`warpjit cache verify --heal` removes it",
            given=damaged,
        ),
        Case(
            "command('warpjit cache export kernels.zip --target sm_75 --kernel vector_add')",
            "expected entries to export, but the kernel cache holds none for sm_75 of vector_add",
        ),
        Case(
            "command('warpjit cache export no/such/folder/kernels.zip')",
            "the bundle no/such/folder/kernels.zip cannot be written: No such file or directory",
        ),
        Case(
            "command('warpjit cache import missing.zip')",
            "expected a bundle that `warpjit cache export` wrote, but got missing.zip: No such file or directory",
        ),
        Case(
            "command('warpjit cache import kernels.zip')",
            "the kernel cache cannot be written: No space left on device",
            given=bundle,
        ),
        Case(
            "command('warpjit cache why missing.py:kernel')",
            "expected a kernel as module:name or script.py:name, but missing.py:kernel gives FileNotFoundError: "
            "[Errno 2] No such file or directory: 'missing.py'",
        ),
        Case(
            "command('warpjit cache ls --dir /no/such/folder')",
            "expected the directory of a kernel cache, but /no/such/folder does not exist",
        ),
        Case(
            "command('warpjit cache why math:pi')",
            "expected a kernel, a function decorated with @warpjit, but math has none at its top level",
        ),
        Case(
            "command('warpjit cache why add.py:add_vectors')",
            "expected add.py:NAME with the name of one of its kernels (vector_add) but got 'add_vectors'",
            given=script,
        ),
        Case(
            "command('warpjit cache why vector_add')",
            "expected a kernel, as module:name or script.py:name, or the hex digits of a key but got 'vector_add'",
        ),
        Case(
            "command('warpjit cache why 601105766e1f int32')",
            "expected 601105766e1f alone, or a kernel as module:name or script.py:name with SPECs",
        ),
    ),
    text="`command` stands for the shell here.",
    frame="""\
import shlex

from warpjit.cli import groups
from warpjit.cli.command import parser_of


def command(line):
    words = shlex.split(line)[1:]
    chosen = parser_of("warpjit", groups(words)).parse_args(words)
    chosen.command(chosen)


...
""",
    error=CacheError,
)
