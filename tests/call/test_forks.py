"""Work in forked copies: what it gives, and that nothing that happens in a copy reaches the original."""

from __future__ import annotations

import fcntl
import io
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from warpjit import forks
from warpjit.forks import Done, Task

Waits = Callable[[float], None]


@pytest.fixture(autouse=True)
def no_copy_is_left() -> Iterator[None]:
    yield
    with pytest.raises(ChildProcessError):  # no child, not even an ended one that nobody has waited for
        os.waitpid(-1, os.WNOHANG)


def run(*work: Callable[[Waits], Any], workers: int = 2, silence: float = 30.0) -> list[Done | None]:
    return forks.run([Task(each) for each in work], workers, lambda index: None, silence)


def test_what_tasks_give_comes_back_in_order() -> None:
    own, stepped = object(), []  # type: ignore[var-annotated]
    tasks = [Task(lambda waits, index=index: [index, id(own)]) for index in range(9)]  # type: ignore[misc]
    found = forks.run(tasks, 3, stepped.append)
    assert found == [Done([index, id(own)]) for index in range(9)]  # the very object: a copy has all
    assert sorted(stepped) == list(range(9))


def test_tasks_are_done_beside_each_other_in_other_processes(tmp_path: Path) -> None:
    def meets(waits: Waits) -> int:
        (tmp_path / str(os.getpid())).touch()
        while len(list(tmp_path.iterdir())) < 4:
            time.sleep(0.01)
        return os.getpid()

    found = {each.value for each in run(*[meets] * 4, workers=4) if each is not None}
    assert len(found) == 4
    assert os.getpid() not in found


@pytest.mark.parametrize("count", [0, 1, forks.FEWEST - 1])
def test_little_work_is_left_to_who_asks(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("it forks"))
    assert run(*[lambda waits: 1] * count) == [None] * count
    assert run(*[lambda waits: 1] * 9, workers=1) == [None] * 9


def test_where_no_process_can_be_made_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refused)
    assert run(*[lambda waits: 1] * 5) == [None] * 5


def _dies(waits: Waits) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raises(waits: Waits) -> None:
    raise KeyboardInterrupt


def _exits(waits: Waits) -> None:
    raise SystemExit(3)


def _no_json(waits: Waits) -> object:
    return object()


@pytest.mark.parametrize("bad", [_dies, _raises, _exits, _no_json])
def test_what_fails_is_not_done_and_the_others_are(bad: Callable[[Waits], Any]) -> None:
    def good(waits: Waits) -> str:
        return "good"

    assert run(good, bad, good, good, good) == [Done("good"), None, Done("good"), Done("good"), Done("good")]


def test_all_may_die() -> None:
    assert run(*[_dies] * 6, workers=3) == [None] * 6


def test_a_copy_that_hangs_is_ended() -> None:
    lock = threading.Lock()

    def hangs(waits: Waits) -> None:
        lock.acquire()

    lock.acquire()  # as a thread of the original may hold one
    begin = time.monotonic()
    assert run(hangs, *[lambda waits: 1] * 3, silence=0.3) == [None, Done(1), Done(1), Done(1)]
    assert time.monotonic() - begin < 20


def test_a_copy_that_waits_for_a_process_does_not_hang() -> None:
    def waiting(waits: Waits) -> str:
        waits(20.0)
        time.sleep(0.8)
        return "done"

    assert run(*[waiting] * 4, workers=4, silence=0.3) == [Done("done")] * 4


def test_large_answers_come_whole() -> None:
    found = run(*[lambda waits: "x" * 1_000_003] * 4)
    assert [len(each.value) for each in found if each is not None] == [1_000_003] * 4


def test_more_than_the_queue_holds_is_left_to_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "MOST", 5)
    assert run(*[lambda waits: 1] * 8) == [Done(1)] * 5 + [None] * 3


OUTPUT = """
import sys
from warpjit import forks
def task(waits):
    print("a copy's", end=", ", flush=True)
    print("an error", file=sys.stderr)
def fails(waits):
    print("of nobody")
    raise ValueError
sys.stdout.write("before, ")
forks.run([forks.Task(task), forks.Task(fails)] * 4, 2, lambda index: None)
print("after")
"""


def test_output_of_what_is_done_is_written_once() -> None:
    done = subprocess.run([sys.executable, "-c", OUTPUT], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("before, " + "a copy's, " * 4 + "after\n", "an error\n" * 4)


def test_handlers_and_finalizers_of_the_original_are_not_run(tmp_path: Path) -> None:
    note = tmp_path / "note"

    class Loud:
        def __init__(self) -> None:
            self.itself = self  # garbage, for the collector

        def __del__(self) -> None:
            if os.getpid() != original:
                note.write_text("a finalizer ran in a copy")

    def collects(waits: Waits) -> int:
        import gc  # noqa: PLC0415

        return gc.collect()

    def heard(number: int, frame: object) -> None:
        if os.getpid() != original:
            note.write_text("a handler ran in a copy")

    original = os.getpid()
    before = signal.signal(signal.SIGTERM, heard)
    Loud()
    try:
        assert None not in run(*[collects] * 4)
        assert run(*[lambda waits: os.kill(os.getpid(), signal.SIGTERM)] * 4) == [None] * 4
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not note.exists()


def test_other_handlers_of_the_original_are_not_run_either(tmp_path: Path) -> None:
    note, original = tmp_path / "note", os.getpid()

    def heard(number: int, frame: object) -> None:
        if os.getpid() != original:
            note.write_text("a handler ran in a copy")

    before = signal.signal(signal.SIGCHLD, heard)
    try:
        assert None not in run(*[lambda waits: subprocess.run(["true"], check=True).returncode] * 4)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert not note.exists()


class _OnlyWrites:
    def write(self, text: str) -> int:
        return len(text)


def _closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, _OnlyWrites(), _closed()])
def test_output_may_go_anywhere(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        patched.setattr(sys, "stderr", stream)
        found = run(*[lambda waits: 1] * 4)
    assert found == [Done(1)] * 4


@pytest.mark.parametrize("more", range(5))
def test_where_descriptors_end_work_is_not_done_at_most(more: int) -> None:
    program = f"""
import os, resource
from warpjit import forks
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1 + {more},) * 2)
done = forks.run([forks.Task(lambda waits: 1)] * 4, 2, lambda index: None)
assert set(done) <= {{None, forks.Done(1)}}, done
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_others_fork_meanwhile_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fork: Callable[[], int] = os.fork
    others: list[int] = []

    def forked() -> int:
        other = fork()  # another thread's, which lives long and has the pipes as well
        if other == 0:
            time.sleep(60)
            os._exit(0)
        others.append(other)
        return fork()

    monkeypatch.setattr(os, "fork", forked)
    begin = time.monotonic()
    try:
        assert run(*[lambda waits: 1] * 4) == [Done(1)] * 4
        assert time.monotonic() - begin < 20
    finally:
        for other in others:
            os.kill(other, signal.SIGKILL)
            os.waitpid(other, 0)


def test_a_pipe_may_be_small(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe: Callable[[], tuple[int, int]] = os.pipe

    def small() -> tuple[int, int]:
        read, write = pipe()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        return read, write

    monkeypatch.setattr(os, "pipe", small)
    found = run(*[lambda waits: 1] * 1100)
    assert found == [Done(1)] * 1024 + [None] * 76


def test_signals_of_the_original_are_as_before() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getsignal(signal.SIGTERM)
    run(*[lambda waits: 1] * 4)
    assert (signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getsignal(signal.SIGTERM)) == before


def test_a_thread_may_ask_and_python_does_not_warn() -> None:
    found: list[list[Done | None]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thread = threading.Thread(target=lambda: found.append(run(*[lambda waits: 7] * 4)))
        thread.start()
        thread.join()
    assert found == [[Done(7)] * 4]


INTERRUPTED = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from warpjit import forks
from warpjit.cuda import processes
def task(waits):
    waits(100.0)
    processes.run(["sh", "-c", f"sleep 61 & echo $! >> {sys.argv[1]}; wait"])
forks.run([forks.Task(task)] * 4, 2, lambda index: None)
"""


def test_an_interrupt_leaves_no_process(tmp_path: Path) -> None:
    note = tmp_path / "children"
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(note)], stderr=subprocess.PIPE) as original:
        deadline = time.monotonic() + 30
        while not (note.exists() and note.read_text().count("\n") == 2) and time.monotonic() < deadline:
            time.sleep(0.02)
        children = [int(line) for line in note.read_text().split()]
        original.send_signal(signal.SIGINT)
        original.communicate(timeout=30)
    assert original.returncode != 0
    assert len(children) == 2
    deadline = time.monotonic() + 10
    while any(map(_runs, children)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(_runs, children))


INTERRUPTED_FORK = """
import os, signal, time
from warpjit import forks
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
fork = os.fork
def interrupted():
    os.kill(os.getpid(), signal.SIGINT)  # it waits: the fork is not disturbed
    return fork()
os.fork = interrupted
descriptors = os.listdir("/proc/self/fd")
try:
    forks.run([forks.Task(lambda waits: time.sleep(20))] * 4, 2, lambda index: None)
except KeyboardInterrupt:
    assert os.listdir("/proc/self/fd") == descriptors
    try:
        print("left:", os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        print("none is left")
"""


def test_an_interrupt_during_the_fork_leaves_no_process() -> None:
    """In a process of its own: the interrupt comes while others of its threads may hold locks, logging's among them."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_FORK], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("none is left\n", "")


def _runs(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_copies_end_with_the_original(tmp_path: Path) -> None:
    note = tmp_path / "done"
    program = f"""
import os, signal, time
from warpjit import forks
def task(waits):
    with open({str(note)!r}, "a") as file:
        file.write(".")
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(0.5)
forks.run([forks.Task(task)] * 100, 2, lambda index: None)
"""
    subprocess.run([sys.executable, "-c", program], check=False)
    time.sleep(1.5)
    assert 1 <= len(note.read_text()) <= 2
