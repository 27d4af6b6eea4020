"""The store where the disk fails, where processes are killed, and where many race: a kernel always gets its cubin."""

from __future__ import annotations

import errno
import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock
import pytest
from store.faulty import failing, faults
from store.racing import CUBIN, KEY, OTHER, forks_of_a_small_process, session

from warpjit.store import Store, eviction, key_of
from warpjit.store.locks import STRIPES, Locks

ERRNOS = ("ENOSPC", "EDQUOT", "EROFS", "EIO", "ESTALE", "EACCES", "ENOLCK", "ENOSYS")


def operations(root: Path) -> list[str]:
    with faults(root) as watched:
        session(root)
    return watched.log


def check_fault(root: Path, at: int, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A session in which one operation fails in one way, and the session of the next process."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "warpjit.store"), faults(root, at, failing(getattr(errno, name))) as watched:
        assert session(root) == [CUBIN, CUBIN], (at, name)
    assert len(watched.log) > at
    assert len(caplog.records) <= 2, (at, watched.log[at], name, caplog.messages)  # one of each of two stores
    assert session(root) == [CUBIN, CUBIN], (at, watched.log[at], name)


def test_every_operation_may_fail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = operations(tmp_path / "whole")
    assert {"open", "read", "write", "fsync", "replace", "mkdir", "stat", "scandir"} <= set(log)
    for at in range(len(log)):
        check_fault(tmp_path / str(at), at, ERRNOS[at % len(ERRNOS)], caplog)


@pytest.mark.slow
@pytest.mark.parametrize("name", ERRNOS)
def test_every_operation_may_fail_in_every_way(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    for at in range(len(operations(tmp_path / "whole"))):
        check_fault(tmp_path / str(at), at, name, caplog)


def leftovers(root: Path) -> list[Path]:
    return [each.path for each in eviction.files_under(root) if each.temporary]


def test_a_process_killed_at_any_operation_leaves_a_store_that_works(tmp_path: Path) -> None:
    log = operations(tmp_path / "whole")
    assert forks_of_a_small_process("kill", tmp_path, len(log)) == [-signal.SIGKILL] * len(log)
    for at in range(len(log)):
        root = tmp_path / str(at)
        began = time.monotonic()
        assert session(root) == [CUBIN, CUBIN], (at, log[at])
        assert time.monotonic() - began < 1.0, "the dead process' lock is free"
        hour = time.time() + 2 * eviction.YOUNG
        eviction.evict(root, 1 << 40, now=hour)
        assert leftovers(root) == [], (at, log[at])
        assert session(root) == [CUBIN, CUBIN]


# ---- many processes ---------------------------------------------------------------------------------------------


def test_processes_that_start_together_compile_each_kernel_once(tmp_path: Path) -> None:
    assert forks_of_a_small_process("race", tmp_path, 8, 4, -1, -1) == [{f"kernel{n}": 1 for n in range(4)}] * 2
    for turn in range(2):
        assert len(list((tmp_path / str(turn)).rglob("*.lock"))) <= STRIPES


def test_a_killed_compiler_costs_one_more_compilation(tmp_path: Path) -> None:
    (made,) = forks_of_a_small_process("race", tmp_path, 6, 3, 2)
    assert all(1 <= times <= 2 for times in made.values())
    assert sum(made.values()) <= 3 + 1


@pytest.mark.slow
def test_sixteen_processes_race_over_eight_kernels(tmp_path: Path) -> None:
    kills = [turn % 16 if turn % 2 else -1 for turn in range(50)]
    for turn, made in enumerate(forks_of_a_small_process("race", tmp_path, 16, 8, *kills)):
        assert set(made) == {f"kernel{index}" for index in range(8)}, turn
        assert sum(made.values()) <= 8 + (kills[turn] >= 0), turn


def test_a_holder_that_hangs_costs_one_bounded_wait(tmp_path: Path) -> None:
    store = Store(tmp_path, patience=0.3)
    lock = filelock.FileLock(tmp_path / "lock")
    holder = Locks(tmp_path / f"v{2}" / "locks", 0.1)
    with holder.alone(KEY, lambda: False):
        began = time.monotonic()
        assert store.obtain(KEY, lambda: ({}, CUBIN)) == CUBIN
        first = time.monotonic() - began
        store.path("cubin", KEY).unlink()  # type: ignore[union-attr]
        began = time.monotonic()
        assert store.obtain(KEY, lambda: ({}, CUBIN)) == CUBIN
        second = time.monotonic() - began
    assert 0.25 < first < 2.0
    assert second < 0.25, "not waited for twice"
    assert not lock.is_locked


def test_who_waits_goes_on_as_soon_as_the_entry_is_there(tmp_path: Path) -> None:
    store = Store(tmp_path, patience=30.0)
    with Locks(tmp_path / "v2" / "locks", 0.1).alone(KEY, lambda: False):
        Store(tmp_path).put(KEY, {}, CUBIN)
        store.get = lambda key, facts: None  # type: ignore[method-assign]  as if it had been published a moment later
        began = time.monotonic()
        assert store.obtain(KEY, lambda: pytest.fail("compiled")) == CUBIN
    assert time.monotonic() - began < 2.0


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.ESTALE, errno.EIO, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_costs_no_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*args: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    store = Store(tmp_path)
    began = time.monotonic()
    assert [store.obtain(key, lambda: ({}, CUBIN)) for key in (KEY, OTHER)] == [CUBIN, CUBIN]
    assert time.monotonic() - began < 1.0


# ---- places -----------------------------------------------------------------------------------------------------


def link(path: Path) -> None:
    target = path.with_name("elsewhere")
    os.replace(path, target)
    path.symlink_to(target)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "foreign": lambda path: path.write_bytes(b"#!/bin/sh\n" * 100),
    "flipped": lambda path: path.write_bytes(path.read_bytes().replace(b"cubin", b"virus")),
    "symlink": link,
    "dangling": lambda path: (path.unlink(), path.symlink_to("/nowhere")),
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "fifo": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_entries_are_misses_that_heal(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path)
    store.put(KEY, {}, CUBIN)
    path = store.path("cubin", KEY)
    assert path is not None
    DAMAGES[damage](path)
    made: list[int] = []

    def make() -> tuple[dict[str, Any], bytes]:
        made.append(1)
        return {}, CUBIN

    assert Store(tmp_path).obtain(KEY, make) == CUBIN
    assert Store(tmp_path).obtain(KEY, make) == CUBIN
    assert made == [1]
    assert path.is_file() and not path.is_symlink()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_that_others_may_write_in_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int
) -> None:
    root = tmp_path / "shared"
    Store(root).put(KEY, {}, b"planted")
    root.chmod(mode)
    store = Store(root)
    with caplog.at_level(logging.WARNING, "warpjit.store"):
        assert store.obtain(KEY, lambda: ({}, CUBIN)) == CUBIN
        assert store.obtain(KEY, lambda: pytest.fail("kept in memory")) == CUBIN
    assert [f"{root} can be written by other users" in message for message in caplog.messages] == [True]


# ---- eviction ---------------------------------------------------------------------------------------------------


def test_the_least_recently_used_go_first_and_nothing_young(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keys = [key_of({"n": n}) for n in range(6)]
    now = time.time()
    for age, key in enumerate(keys):
        store.put(key, {}, CUBIN)
        path = store.path("cubin", key)
        assert path is not None
        os.utime(path, (now, now - age * 2 * eviction.YOUNG))
    size = path.stat().st_size
    assert store.get(keys[5]) is not None, "a hit is a use"
    removed = eviction.evict(tmp_path, 3 * size)
    assert [path.stem for path in removed] == [keys[4], keys[3], keys[2]]
    assert eviction.evict(tmp_path, 0) == [store.path("cubin", keys[1])]
    assert eviction.evict(tmp_path, 0) == [], "what is young stays"
    assert {entry.key for entry in store.cubins()} == {keys[0], keys[5]}


def test_putting_keeps_to_the_limit(tmp_path: Path) -> None:
    store = Store(tmp_path, limit=5 * len(CUBIN))
    for n in range(64):
        store.put(key_of({"n": n}), {}, CUBIN)
        for each in eviction.files_under(tmp_path):
            os.utime(each.path, (0, 0))
    assert len(list(store.cubins())) <= 32 + 5


def test_a_compilation_in_the_middle_of_another_in_one_thread_is_not_waited_for(tmp_path: Path) -> None:
    """A finalizer or a signal handler comes at any moment."""
    store = Store(tmp_path, patience=30.0)
    began = time.monotonic()
    outer = store.obtain(KEY, lambda: ({}, store.obtain(KEY, lambda: ({}, CUBIN))))
    assert outer == CUBIN and time.monotonic() - began < 5.0
