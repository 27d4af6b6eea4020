"""The store in odd surroundings: paths, clocks, crowded disks, other versions of the package, forks and threads."""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from store.faulty import faults

from warpjit import config
from warpjit.cli import main
from warpjit.config import Config
from warpjit.store import (
    SCHEMA,
    Store,
    contents,
    default_root,
    eviction,
    export_bundle,
    import_bundle,
    key_of,
    place,
    store_of,
)
from warpjit.store import store as store_module
from warpjit.store.compare import RECENT
from warpjit.store.generator import generator_digest

KEY = key_of({"kernel": 1})
CUBIN = b"\x7fELF cubin" * 1000
fork = multiprocessing.get_context("fork")


def path_of(store: Store, key: str = KEY) -> Path:
    path = store.path("cubin", key)
    assert path is not None
    return path


# ---- paths ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["my cäche ☃", " two  spaces ", "a\nline", "$HOME", "'quoted\"", "-rf"])
def test_any_name_of_a_directory_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / name))
    store = store_of(config.read())
    assert store.obtain(KEY, lambda: ({"kernel": "k"}, CUBIN)) == CUBIN
    assert store.root == tmp_path / name and path_of(store).is_file()
    assert main(["cache", "show", KEY[:12]]) == 0
    assert KEY in capsys.readouterr().out


def test_a_process_that_changes_its_directory_keeps_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARPJIT_CACHE_DIR", "a relative one")
    store = store_of(config.read())
    (tmp_path / "else" / "where").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "else" / "where")
    assert store_of(config.read()) is store
    assert store.root == tmp_path / "a relative one"


def test_a_home_that_nobody_knows_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARPJIT_CACHE_DIR", "~nobody-of-this-name/cache")
    assert default_root(config.read()) is None
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("WARPJIT_CACHE_DIR", "~/cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_root(config.read()) == tmp_path / "cache"


@pytest.mark.parametrize("caches", [None, "", "caches"])
@pytest.mark.parametrize("home", ["home", None])
def test_the_users_directory_is_that_of_platformdirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caches: str | None, home: str | None
) -> None:
    """By its rule, without loading it."""
    for name, value in (("HOME", home), ("XDG_CACHE_HOME", caches)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value and str(tmp_path / value))
    assert place._users_own(config.read()) == Path(platformdirs.user_cache_dir("warpjit"))


def test_where_there_is_another_rule_platformdirs_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / "Caches" / name))
    assert default_root(Config()) == tmp_path / "Caches" / "warpjit"


def test_a_relative_directory_of_caches_is_not_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_root(Config(user_cache="caches")) == tmp_path / ".cache" / "warpjit"


NO_HOME = {"nobody": ("~", None), "a file": (__file__, None), "caches in a file": ("/", __file__)}


@pytest.mark.parametrize("case", NO_HOME)
def test_without_a_home_a_private_temporary_directory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    home, caches = NO_HOME[case]
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", home))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    root = default_root(Config(user_cache=caches))
    assert root == tmp_path / f"warpjit-{os.getuid()}"
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    root.chmod(0o777)
    assert default_root(Config(user_cache=caches)) is None


def test_a_temporary_directory_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / f"warpjit-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    assert default_root(Config(user_cache=__file__)) is None


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", "")
    assert config.read().cache_dir is None


@pytest.mark.parametrize("where", ["v2", "v2/cubin", f"v2/cubin/{KEY[:2]}"])
def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture, where: str) -> None:
    path = tmp_path / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    store = Store(tmp_path)
    with caplog.at_level(logging.WARNING, "warpjit.store"):
        assert [store.obtain(KEY, lambda: ({}, CUBIN)) for _ in range(2)] == [CUBIN, CUBIN]
    assert any("Not a directory" in message for message in caplog.messages)
    assert path.read_text() == "mine"


# ---- clocks -----------------------------------------------------------------------------------------------------

FUTURE, EPOCH = 4e9, 0.0
"""Seconds since 1970, in 2096 and in 1970."""


@pytest.mark.parametrize("when", [FUTURE, EPOCH])
def test_a_use_mends_a_time_that_is_wrong(tmp_path: Path, when: float) -> None:
    store = Store(tmp_path)
    store.put(KEY, {}, CUBIN)
    os.utime(path_of(store), (when, when))
    assert store.get(KEY) is not None
    assert abs(path_of(store).stat().st_mtime - time.time()) < 60
    assert eviction.evict(tmp_path, 0) == []


@pytest.mark.parametrize("when", [FUTURE, EPOCH])
def test_what_was_not_used_since_the_clock_is_right_goes_first(tmp_path: Path, when: float) -> None:
    store, keys, now = Store(tmp_path), [key_of({"n": n}) for n in range(3)], time.time()
    for key, used in zip(keys, (now - 7200, when, now + 60), strict=True):  # the clock of a file server is a little off
        store.put(key, {}, CUBIN)
        os.utime(path_of(store, key), (used, used))
    size = path_of(store, keys[0]).stat().st_size
    assert eviction.evict(tmp_path, 2 * size) == [path_of(store, keys[1])]
    store.put(keys[1], {}, CUBIN)
    os.utime(path_of(store, keys[1]), (when, when))
    assert [each.key for each in contents.older(contents.items(tmp_path), 30)] == [keys[1]]
    assert eviction.evict(tmp_path, 0) == [path_of(store, keys[1]), path_of(store, keys[0])]


# ---- versions of the package ------------------------------------------------------------------------------------


def test_versions_that_share_a_directory_share_its_room_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / f"v{SCHEMA - 1}" / "cubin" / KEY[:2] / f"{KEY}.wjk"
    old.parent.mkdir(parents=True)
    tmp_path.chmod(0o700)
    foreign = [tmp_path / "notes", tmp_path / f"v{SCHEMA - 1}" / "notes", old.with_name("notes")]
    for path in (old, *foreign):
        path.write_bytes(CUBIN)
        os.utime(path, (1.0, 1.0))
    store = Store(tmp_path, limit=len(CUBIN))
    assert store.get(KEY) is None and old.exists()
    store.put(KEY, {}, CUBIN)
    assert not old.exists() and all(path.exists() for path in foreign)
    path = path_of(store)
    monkeypatch.setattr(store_module, "SCHEMA", SCHEMA + 1)
    other = Store(tmp_path)
    assert other.get(KEY) is None
    other.put(KEY, {}, b"another")
    assert path_of(other) != path
    monkeypatch.undo()
    entry = Store(tmp_path).get(KEY)
    assert entry is not None and entry.cubin == CUBIN


def test_a_package_whose_files_have_size_and_time_of_another_is_another(tmp_path: Path) -> None:
    """Images and archives are often made with all files of one age."""
    store, package = Store(tmp_path / "cache"), tmp_path / "package"
    package.mkdir()
    found = []
    for text in ("VERSION = 1", "VERSION = 2"):
        (package / "a.py").write_text(text)
        os.utime(package / "a.py", (1e9, 1e9))
        generator_digest.cache_clear()
        found.append(generator_digest(store, package))
        time.sleep(0.02)  # a tick of the file system's clock
    assert found[0] != found[1]
    generator_digest.cache_clear()
    assert generator_digest(store, package) == found[1]


# ---- many entries -----------------------------------------------------------------------------------------------


def counting(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """What a function is called with from now on."""
    seen: list[Any] = []
    real = getattr(owner, name)

    def call(*args: Any, **how: Any) -> Any:
        seen.append(args)
        return real(*args, **how)

    monkeypatch.setattr(owner, name, call)
    return seen


def test_the_heads_of_entries_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [key_of({"n": n}) for n in range(6)]
    for number, key in enumerate(keys):
        Store(tmp_path).put(key, {"text": f"{number // 2}", "target": "sm_80"}, f"cubin {number}".encode())
        used = time.time() + number - 10
        os.utime(path_of(Store(tmp_path), key), (used, used))
    read, store = counting(monkeypatch, contents, "made_from"), Store(tmp_path)
    for number in (0, 1, 2, 1):
        found = store.find({"text": f"{number}", "target": "sm_80"})
        assert found is not None and found.cubin == f"cubin {2 * number + 1}".encode(), "the last used"
    assert len(read) == 6
    assert store.find({"text": "0", "target": "sm_90"}) is None
    assert Store(None).find({"text": "0"}) is None
    Store(tmp_path).put(KEY, {"text": "new"}, b"new")
    found = store.find({"text": "new"})
    assert found is not None and found.cubin == b"new"
    path_of(store, keys[1]).write_bytes(b"damaged")
    found = store.find({"text": "0"})
    assert found is not None and found.cubin == b"cubin 0"


def test_a_miss_that_is_told_reads_few_of_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    for number in range(RECENT + 20):
        store.put(key_of({"n": number}), {"kernel": "k"}, b"")
    read = counting(monkeypatch, contents, "made_from")
    logging.getLogger("warpjit.cache").setLevel(logging.INFO)
    try:
        assert store.get(KEY, lambda: {"kernel": "k"}) is None
    finally:
        logging.getLogger("warpjit.cache").setLevel(logging.NOTSET)
    assert len(read) == RECENT


def test_a_bundle_is_taken_without_a_wait_for_the_disk_at_each_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "from")
    for number in range(5):
        store.put(key_of({"n": number}), {"kernel": "k"}, CUBIN)
    export_bundle(tmp_path / "bundle.zip", store=store)
    synced = counting(monkeypatch, os, "fsync")
    import_bundle(tmp_path / "bundle.zip", store=Store(tmp_path / "to"))
    assert synced == []


# ---- no room ----------------------------------------------------------------------------------------------------


def in_child(work: Callable[[], None]) -> None:
    """Run `work` in a forked process; it must end well."""
    process = fork.Process(target=work)
    process.start()
    process.join(60)
    assert process.exitcode == 0


def test_a_disk_that_takes_a_part_of_an_entry(tmp_path: Path) -> None:
    """The limit of a file's size ends a write in the middle, as a full disk does."""

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        store = Store(tmp_path)
        assert [store.obtain(KEY, lambda: ({}, CUBIN)) for _ in range(2)] == [CUBIN, CUBIN]
        assert store.counts.made == 1
        store.put_index(KEY, {"a": "small"})
        assert store.get_index(KEY) == {"a": "small"}

    in_child(work)
    left = [path.name for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert left == [f"{KEY}.wjk"], "the index alone, and no part of the cubin"
    assert Store(tmp_path).get(KEY) is None


def test_an_import_that_is_killed_is_finished_by_the_next(tmp_path: Path) -> None:
    source = Store(tmp_path / "from")
    for number in range(3):
        source.put(key_of({"n": number}), {"kernel": "k"}, CUBIN)
        source.put_tuning(key_of({"n": number}), {"kernel": "k"})
    export_bundle(tmp_path / "bundle.zip", store=source)
    with faults(tmp_path / "whole") as watched:
        import_bundle(tmp_path / "bundle.zip", store=Store(tmp_path / "whole"))
    for at in range(0, len(watched.log), 5):
        root = tmp_path / f"{at}"

        def work(root: Path = root, at: int = at) -> None:
            with faults(root, at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                import_bundle(tmp_path / "bundle.zip", store=Store(root))

        process = fork.Process(target=work)
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        taken = import_bundle(tmp_path / "bundle.zip", store=Store(root))
        assert sum(taken.entries.values()) + taken.known == 6
        assert list(contents.verify(contents.items(root))) == []


# ---- threads and forks ------------------------------------------------------------------------------------------


def test_threads_that_ask_at_once_make_one_entry_once(tmp_path: Path) -> None:
    store, made, got = Store(tmp_path, patience=20.0), [], []

    def make() -> tuple[dict[str, Any], bytes]:
        made.append(1)
        time.sleep(0.05)
        return {}, CUBIN

    threads = [threading.Thread(target=lambda: got.append(store.obtain(KEY, make))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (made, got) == ([1], [CUBIN] * 8)


def test_a_process_forked_in_the_middle_of_a_compilation_neither_hangs_nor_keeps_its_lock(tmp_path: Path) -> None:
    """By the thread that compiles, and by another one: the lock is the parent's."""
    store = Store(tmp_path, patience=20.0)

    def child() -> None:
        began = time.monotonic()
        other = Store(tmp_path, patience=0.2)
        assert other.obtain(KEY, lambda: ({}, CUBIN)) == CUBIN
        assert store.obtain(key_of({"n": 1}), lambda: ({}, b"of the child")) == b"of the child"
        assert time.monotonic() - began < 10

    def make() -> tuple[dict[str, Any], bytes]:
        in_child(child)
        thread = threading.Thread(target=lambda: in_child(child))
        thread.start()
        thread.join()
        return {}, CUBIN

    assert store.obtain(KEY, make) == CUBIN
    path_of(store).unlink()
    began = time.monotonic()
    assert store.obtain(KEY, lambda: ({}, CUBIN)) == CUBIN
    assert time.monotonic() - began < 1.0, "the lock is free"
