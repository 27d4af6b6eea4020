"""`WARPJIT_LOG=cache`: a line for each hit, miss, compilation, wait and eviction, and nothing where nobody asks."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import filelock
import pytest

from warpjit import config
from warpjit.store import Store, key_of, log, store_of

KEYS = [key_of({"n": n}) for n in range(3)]
UNKNOWN = "WARPJIT_LOG: expected names of what to report (cache), commas between them, but got '{}'"
SCRIPT = """\
from warpjit import T, warpjit

@warpjit
def first(X: T.Tensor((32,), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

@warpjit(debug=True)
def second(X: T.Tensor((32,), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
"""
HEADER = {"kernel": "kernel", "target": "sm_90a", "text": "a"}


@pytest.fixture
def followed() -> Iterator[None]:
    log.follow(("cache",))
    yield
    log.follow.cache_clear()
    for name in log.TOPICS["cache"]:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [re.sub(r"\d\.\d\d s", "# s", line) for line in capsys.readouterr().err.splitlines()]


@pytest.mark.usefixtures("followed")
def test_a_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, (first, second, third) = Store(tmp_path), [key[:12] for key in KEYS]
    store.obtain(KEYS[0], lambda: (HEADER, b"cubin"), lambda: HEADER)
    store.obtain(KEYS[0], lambda: (HEADER, b"cubin"))
    assert lines(capsys) == [
        f"warpjit.cache: miss {first}: no entry of kernel",
        f"warpjit.cache: compiled kernel sm_90a {first} in # s, 5 bytes",
        f"warpjit.cache: hit kernel sm_90a {first}",
    ]
    other = {**HEADER, "text": "b", "captures": {"x": "1"}}
    store.obtain(KEYS[1], lambda: (other, b"cubin"), lambda: other)
    assert lines(capsys)[0] == (
        f"warpjit.cache: miss {second}: the nearest entry, {first}, differs in text, captures.x"
    )
    assert store.get(KEYS[2]) is None
    assert lines(capsys) == [f"warpjit.cache: miss {third}: no entry"]


@pytest.mark.usefixtures("followed")
def test_damage_and_eviction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path, limit=0)
    for key in KEYS[:2]:
        store.put(key, HEADER, b"cubin")
        path = store.path("cubin", key)
        assert path is not None
        os.utime(path, (1.0, 1.0))
    path.write_bytes(b"damaged")
    capsys.readouterr()
    assert store.get(KEYS[1]) is None
    said = lines(capsys)
    assert said[0].startswith(f"warpjit.cache: {KEYS[1][:12]} is damaged: ")
    assert said[1:] == [f"warpjit.cache: miss {KEYS[1][:12]}: no entry"]
    store.evict()
    assert lines(capsys) == ["warpjit.cache: evicted 1 files, 0 bytes are left"]


@pytest.mark.usefixtures("followed")
def test_a_wait_for_another_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path)
    store.obtain(KEYS[0], lambda: (HEADER, b""))
    (lock,) = (filelock.FileLock(path, thread_local=False) for path in tmp_path.rglob("*.lock"))
    path = store.path("cubin", KEYS[0])
    assert path is not None
    path.unlink()
    capsys.readouterr()
    lock.acquire()

    def release() -> None:
        time.sleep(0.1)
        lock.release()

    other = threading.Thread(target=release)
    other.start()
    store.obtain(KEYS[0], lambda: (HEADER, b""))
    other.join()
    assert f"warpjit.cache: {KEYS[0][:12]}: waited # s for another process" in lines(capsys)


def test_no_text_is_made_where_nobody_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path)

    def facts() -> dict[str, str]:
        raise AssertionError

    store.obtain(KEYS[0], lambda: (HEADER, b"cubin"), facts)
    store.obtain(KEYS[0], lambda: (HEADER, b"cubin"), facts)
    assert capsys.readouterr().err == ""


def test_the_variable_switches_it_on_and_unknown_names_are_told(tmp_path: Path) -> None:
    program = (
        "from warpjit import config, store\n"
        "place = store.store_of(config.read())\n"
        "assert store.store_of(config.read()) is place\n"
        f"place.get({KEYS[0]!r})"
    )
    environment = {
        "WARPJIT_CACHE_DIR": str(tmp_path),
        "WARPJIT_LOG": " cache, cachee,",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr.splitlines()) == (
        "",
        [UNKNOWN.format("cachee"), f"warpjit.cache: miss {KEYS[0][:12]}: no entry"],
    )


def test_an_unknown_name_is_told_once_also_where_the_cache_does_nothing(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {
        **{"WARPJIT_CACHE_DIR": str(tmp_path / "cache"), "WARPJIT_LOG": "bogus"},
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for command in ([str(script)], ["-m", "warpjit", "cache", "ls"]):
        done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=True)
        assert done.stderr.splitlines() == [UNKNOWN.format("bogus")]


def test_it_is_off_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPJIT_LOG", raising=False)
    store_of(config.read())
    assert config.read().log == ()
    assert not log.on()
