"""Processes that race for a store, and processes that are killed in it: forks of this module's own small process.

    python -m store.racing race FOLDER RANKS KERNELS [KILL ...]   a race for each KILL: a rank, or -1 for none
    python -m store.racing kill FOLDER COUNT                      a session killed at operation 0, 1, … each

in FOLDER/0, FOLDER/1, …; prints what the forks did as JSON. A fork of the tests' own process, with all its pages, takes
ten times as long.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import filelock  # noqa: F401  once here, and not in every fork
from store.faulty import faults

from warpjit.store import Store, key_of

KEY, OTHER = key_of({"kernel": 1}), key_of({"kernel": 2})
CUBIN = b"\x7fELF cubin" * 1000
fork = multiprocessing.get_context("fork")


def forks_of_a_small_process(*words: object) -> Any:
    """What this module prints as a program."""
    paths = [str(Path(__file__).parents[1]), *sys.path]
    done = subprocess.run(
        [sys.executable, "-m", "store.racing", *map(str, words)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---- killed -----------------------------------------------------------------------------------------------------


def session(root: Path) -> list[bytes]:
    """What a process does: a miss that it makes, an index, a record of tuning, another process' hit, eviction."""
    store = Store(root, limit=100, patience=1.0)
    got = [store.obtain(KEY, lambda: ({"kernel": "k"}, CUBIN))]
    store.put_index(OTHER, {"cubin": KEY})
    store.change_index(KEY, lambda old: {**old, "a": 1})
    store.change_tuning(OTHER, lambda old: {**old, "a": 1})
    later = Store(root, patience=1.0)
    got.append(later.obtain(KEY, lambda: ({"kernel": "k"}, CUBIN)))
    assert store.get_index(KEY) in ({"a": 1}, None)
    assert store.get_index(OTHER) in ({"cubin": KEY}, None)
    assert store.get_tuning(OTHER) in ({"a": 1}, None)
    store.evict()
    return got


def killed_session(root: Path, at: int) -> None:
    with faults(root, at, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        session(root)


def killed(folder: Path, count: int) -> list[int | None]:
    """The exit status of sessions that are killed in the place of operation 0, 1, …"""
    processes = [fork.Process(target=killed_session, args=(folder / str(at), at)) for at in range(count)]
    for process in processes:
        process.start()
        process.join()
    return [process.exitcode for process in processes]


# ---- racing -----------------------------------------------------------------------------------------------------


def compile_slowly(log: Path, name: str, kill: bool) -> tuple[dict[str, Any], bytes]:
    """A compiler that notes each run in a file, and may be killed in the middle."""
    with open(log, "ab", buffering=0) as file:
        file.write(f"{name}\n".encode())
    time.sleep(0.002)
    if kill:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"kernel": name}, name.encode() * 100


def rank(root: Path, log: Path, number: int, kernels: int, kill: int, start: Any) -> None:
    start.wait()
    store = Store(root, patience=20.0)
    for index in range(kernels):
        name = f"kernel{(index + number) % kernels}"
        got = store.obtain(key_of({"name": name}), lambda name=name: compile_slowly(log, name, kill == number))
        assert got == name.encode() * 100


def race(root: Path, log: Path, ranks: int, kernels: int, kill: int) -> dict[str, int]:
    """How often each kernel was compiled by processes that start together."""
    start = fork.Barrier(ranks)
    processes = [fork.Process(target=rank, args=(root, log, number, kernels, kill, start)) for number in range(ranks)]
    for process in processes:
        process.start()
    for number, process in enumerate(processes):
        process.join(60)
        assert process.exitcode == 0 or number == kill, (number, process.exitcode)
    lines = log.read_text().split()
    return {name: lines.count(name) for name in lines}


def races(folder: Path, ranks: int, kernels: int, kills: Sequence[int]) -> list[dict[str, int]]:
    return [race(folder / str(turn), folder / f"log{turn}", ranks, kernels, kill) for turn, kill in enumerate(kills)]


def main(command: str, folder: str, *words: str) -> None:
    numbers = [int(word) for word in words]
    if command == "race":
        ranks, kernels, *kills = numbers
        made: object = races(Path(folder), ranks, kernels, kills)
    else:
        made = killed(Path(folder), *numbers)
    print(json.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
