"""Threads, and forks in the middle of what they do: nobody waits for a thread that is lost, or for one too many."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from typing import Any

import pytest
from call_kernels import double
from processes import Processes
from test_index import KERNEL

from warpjit import T, stages
from warpjit.cuda import toolchain
from warpjit.isa.target import Target
from warpjit.locks import Lock

fork = multiprocessing.get_context("fork")
X = T.Tensor((16,), "float32")


def in_child(work: Callable[[], object]) -> int | None:
    """The exit status of a forked process that does this; None: it hangs, and was killed."""
    process = fork.Process(target=work)
    process.start()
    process.join(15)
    status = process.exitcode
    process.kill()
    process.join()
    return status


def beside(body: Callable[[threading.Event], object], work: Callable[[], None]) -> None:
    """Run `work` while a thread is in `body`, which says so by its event and then waits for another."""
    inside, done = threading.Event(), threading.Event()

    def run() -> None:
        body(inside)
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert inside.wait(15)
    work()
    thread.join(15)
    assert done.is_set()


def test_a_child_waits_for_no_thread_of_its_parent() -> None:
    lock, leave = Lock(), threading.Event()

    def hold(inside: threading.Event) -> None:
        with lock:
            inside.set()
            assert leave.wait(30)

    def take() -> None:
        with lock, lock:
            pass

    def work() -> None:
        assert in_child(take) == 0
        assert not lock._lock.acquire(blocking=False), "the parent's stays"
        leave.set()

    beside(hold, work)


def test_the_forking_thread_keeps_what_it_holds() -> None:
    lock = Lock()

    def leave() -> None:
        held = []
        thread = threading.Thread(target=lambda: held.append(lock._lock.acquire(blocking=False)))
        thread.start()
        thread.join()
        assert held == [False]
        lock.__exit__()
        with lock:
            pass

    with lock:
        assert in_child(leave) == 0


def test_a_kernel_is_traced_in_a_child_while_a_thread_traces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real, leave, parent = stages.program_of, threading.Event(), threading.main_thread()

    def slow(*args: Any) -> Any:
        if threading.current_thread() is not parent:
            inside.append(1)
            started.set()
            assert leave.wait(30)
        return real(*args)

    inside: list[int] = []
    started = threading.Event()
    monkeypatch.setattr(stages, "program_of", slow)

    def trace(event: threading.Event) -> None:
        thread = threading.Thread(target=lambda: double.source(X, X, target="sm_87"))
        thread.start()
        assert started.wait(15)
        event.set()
        thread.join()

    def work() -> None:
        assert in_child(lambda: double.source(X, X, target="sm_87")) == 0
        leave.set()

    beside(trace, work)
    assert inside == [1]


def test_threads_compile_different_kernels_at_once(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    real, both = toolchain.compile_cubin, threading.Barrier(2, timeout=15)

    def together(*args: Any, **how: Any) -> Any:
        both.wait()
        return real(*args, **how)

    monkeypatch.setattr(toolchain, "compile_cubin", together)
    kernels = [processes.module(KERNEL.replace("2.0", f"{scale}.0")).kernel for scale in (5, 6)]
    made: list[Any] = []

    def compile(kernel: Any) -> None:
        made.append(kernel.executable(kernel.specialization((), {}), Target.parse("sm_90a")))

    threads = [threading.Thread(target=compile, args=(kernel,)) for kernel in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len({each.cubin for each in made}) == 2
