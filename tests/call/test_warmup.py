"""Compiling many kernels at once: what is built, what fails, and that an interrupt leaves no compiler behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from warpjit import ArgumentError, CompileError, Kernel, T, warpjit
from warpjit.cuda import processes
from warpjit.parallel import Job, run_all
from warpjit.progress import Bar


@warpjit
def filled(Out: T.Tensor((32,), "float32"), *, value):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = value


def bar(total: int = 1) -> Bar:
    return Bar("work", total, shown=False)


def test_jobs_run_beside_each_other_and_failures_are_collected() -> None:
    together = threading.Barrier(3, timeout=10)

    def work(index: int) -> None:
        together.wait()
        if index == 1:
            raise ValueError("one")

    outcomes = run_all([Job(str(index), lambda index=index: work(index)) for index in range(3)], bar(), workers=3)
    assert [type(each) for each in outcomes] == [type(None), ValueError, type(None)]


def test_an_error_of_who_brings_the_jobs_kills_what_runs() -> None:
    started: list[float] = []

    def sleep() -> None:
        started.append(time.monotonic())
        processes.run(["sleep", "60"])

    def jobs():  # type: ignore[no-untyped-def]
        yield Job("sleeps", sleep)
        yield Job("sleeps", sleep)
        yield Job("waits", sleep)
        while len(started) < 2 or not processes._running:
            time.sleep(0.01)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(jobs(), bar(), workers=2)
    assert time.monotonic() - started[0] < 30
    assert len(started) == 2  # the third was never begun
    assert processes._running == {}


PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from warpjit.parallel import Job, run_all
from warpjit.progress import Bar
from warpjit.cuda import processes
work = lambda: processes.run(["sh", "-c", f"sleep 61 & echo $! > {sys.argv[1]}; wait"])
print("ready", flush=True)
run_all([Job("sleeps", work)], Bar("work", 1, shown=False))
"""


def test_an_interrupt_leaves_no_orphan(tmp_path: Path) -> None:
    note = tmp_path / "child"
    command = [sys.executable, "-c", PROGRAM, str(note)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        deadline = time.monotonic() + 30
        while not (note.exists() and note.read_text().strip()) and time.monotonic() < deadline:
            time.sleep(0.02)
        grandchild = int(note.read_text())
        parent.send_signal(signal.SIGINT)
        parent.communicate(timeout=30)
    assert parent.returncode != 0
    deadline = time.monotonic() + 10
    while _runs(grandchild) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(grandchild)


def _runs(process: int) -> bool:
    """Whether there is such a process that is more than an entry of the table."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_what_a_command_says_and_its_status() -> None:
    done = processes.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    assert processes._running == {}


@pytest.mark.nvcc
def test_warming_up_compiles_what_the_calls_need(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path))
    out = torch.empty(32)
    filled.warmup([{"Out": out, "value": 1.0}, {"value": 2.0}], target="sm_90a", jobs=2)
    assert len(list(tmp_path.rglob("*/cubin/*/*"))) == 2
    monkeypatch.setattr(processes, "run", lambda *given: pytest.fail("it compiles again"))
    assert filled.cubin(value=2.0, target="sm_90a")


@pytest.mark.nvcc
def test_much_is_warmed_up_in_copies_and_nothing_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path))
    calls = [{"value": float(value)} for value in range(3, 8)]
    with monkeypatch.context() as here:
        here.setattr(Kernel, "built", _only_in_copies(os.getpid(), Kernel.built))
        filled.warmup(calls, target="sm_90a", jobs=2)
    assert len(list(tmp_path.rglob("*/cubin/*/*"))) == 5
    monkeypatch.setattr(Kernel, "built", lambda *given: pytest.fail("it traces again"))
    filled.warmup(calls, target="sm_90a", jobs=2)


@pytest.mark.nvcc
def test_a_kernel_that_another_thread_is_at_is_warmed_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Kernel, "built", _only_in_copies(os.getpid(), Kernel.built))
    held, over = threading.Event(), threading.Event()

    def holds() -> None:
        with filled._lock:
            held.set()
            over.wait(60)

    thread = threading.Thread(target=holds)
    thread.start()
    held.wait(60)
    try:
        filled.warmup([{"value": float(value)} for value in range(13, 18)], target="sm_90a", jobs=2)
    finally:
        over.set()
        thread.join()
    assert len(list(tmp_path.rglob("*/cubin/*/*"))) == 5


def _only_in_copies(original: int, built: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*given: Any) -> Any:
        assert os.getpid() != original
        return built(*given)

    return checked


@pytest.mark.nvcc
def test_failures_in_copies_are_raised_as_elsewhere() -> None:
    calls = [{"value": value} for value in (1.0, "no number", 2.0, "none either", 3.0)]
    texts = []
    for jobs in (1, 2):
        with pytest.raises(CompileError) as caught:
            filled.warmup(calls, target="sm_90a", jobs=jobs)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert "2 of 5 calls could not be compiled" in texts[0]
    assert "calls[1]: TraceError" in texts[0]


def test_failures_of_warming_up_are_raised_once() -> None:
    with pytest.raises(CompileError) as caught:
        filled.warmup([{"value": [1]}, {"value": 1.0, "more": 2}], target="sm_90a", progress=False)
    text = str(caught.value)
    assert "2 of 2 calls could not be compiled" in text
    assert "calls[0]: ArgumentError: value: expected a compile-time constant" in text
    assert "calls[1]: ArgumentError" in text


def test_what_is_no_call_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"calls\[0\]: expected a tuple of arguments, or a dict .* but got int"):
        filled.warmup([3])
    with pytest.raises(ArgumentError, match="jobs: expected a positive int or None but got 0"):
        filled.warmup([], jobs=0)


def test_a_bar_is_quiet_where_there_is_no_terminal() -> None:
    check = (
        "import sys; from warpjit.progress import Bar\nwith Bar('a', 2) as b: b.step('x')\nprint('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=os.getcwd())
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_bar_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("compiling", 2, shown=True) as shown:
        shown.step("the first")
    assert "compiling" in capsys.readouterr().err


@pytest.mark.nvcc
@pytest.mark.parametrize("stream", ["out", "err"])
def test_what_a_trace_says_is_written_once(
    stream: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path))

    def to_out(value: float) -> float:
        print("traced", value)
        return value

    def to_err(value: float) -> float:
        print("traced", value, file=sys.stderr)  # the index keeps nothing that takes this: the process traces again
        return value

    told = {"out": to_out, "err": to_err}[stream]

    @warpjit
    def kernel(Out: T.Tensor((32,), "float32"), *, value):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = told(value)

    kernel.warmup([{"value": float(value)} for value in range(5)], target="sm_90a", jobs=2, progress=False)
    said = getattr(capfd.readouterr(), stream)
    assert sorted(said.splitlines()) == [f"traced {float(value)}" for value in range(5)]


LOADING = """
import importlib, sys, threading, time
import torch
from warpjit import T, warpjit

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "warpjit.frontend.tracer":
            begun.set()
            time.sleep(1.0)

begun = threading.Event()
sys.meta_path.insert(0, Slow())

@warpjit
def filled(Out: T.Tensor((32,), "float32"), *, value):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = value

threading.Thread(target=importlib.import_module, args=("warpjit.stages",)).start()
begun.wait()
before = time.monotonic()
filled.warmup([{"value": value} for value in range(6)], target="sm_90a", jobs=2, progress=False)
print(len(filled._programs), time.monotonic() - before < 20)
"""


@pytest.mark.nvcc
def test_copies_do_not_wait_for_what_another_thread_was_importing(tmp_path: Path) -> None:
    """A copy has no such thread: the import's lock would never be free in it."""
    program = tmp_path / "program.py"
    program.write_text(LOADING)
    env = {**os.environ, "WARPJIT_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(program)], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0 True\n", "")
