"""Many kernels compiled at once: in copies of this process, or here, with threads that wait for the compilers.

An interrupt, or any error of whoever brings the jobs, kills the compilers that run and starts no more. What a job
itself raises is collected: the others are done nevertheless.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from warpjit import config, forks
from warpjit.build import Built
from warpjit.cuda import processes
from warpjit.cuda.toolchain import Nvcc
from warpjit.errors import ArgumentError, CompileError, WarpjitError
from warpjit.frontend.kinds import Specialization
from warpjit.isa.target import Target
from warpjit.progress import Bar
from warpjit.store import store_of

POLL = 0.05
"""Seconds between two looks at what has ended."""
NEEDED = ("warpjit.stages", "warpjit.cuda.codegen", "pycuda.compiler", "filelock")
"""What a copy loads to trace and compile."""


@dataclass(frozen=True)
class Job:
    """Work that mostly waits for a process. `label` is for people."""

    label: str
    run: Callable[[], object]


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def at_once(workers: int | None) -> int:
    """How many: None: one a core. ArgumentError."""
    if workers is not None and (type(workers) is not int or workers < 1):
        raise ArgumentError(f"jobs: expected a positive int or None but got {workers!r}")
    return workers or cores()


def _import_needed() -> None:
    """Once for all copies. One that is made while another thread imports a module could never import it: there, nobody
    is left to free the import's lock."""
    for name in NEEDED:
        with contextlib.suppress(ImportError):  # whoever cannot do without says so
            importlib.import_module(name)


def in_copies(
    tasks: Sequence[forks.Task], labels: Sequence[str], bar: Bar, workers: int | None
) -> list[forks.Done | None]:
    """Tasks that leave programs in the store, done in copies of this process; None for what is to be done here: all,
    where copies could leave nothing."""
    chosen = config.read()
    count = 1 if chosen.retrace or store_of(chosen).folder is None else at_once(workers)
    if min(count, len(tasks)) > 1:
        _import_needed()
    return forks.run(tasks, count, lambda index: bar.step(labels[index]))


def run_all(jobs: Iterable[Job], bar: Bar, workers: int | None = None) -> list[Exception | None]:
    """Run jobs as they come, `workers` at once (None: one a core). For each, in order, what it raised, or None.

    The iterable may do work of its own between jobs (tracing): it runs in this thread, beside the others.
    """
    threads: set[int] = set()
    futures: list[Future[object]] = []
    pool = ThreadPoolExecutor(at_once(workers), "warpjit", lambda: threads.add(threading.get_ident()))
    try:
        for job in jobs:
            future = pool.submit(job.run)
            future.add_done_callback(lambda _, label=job.label: bar.step(label))  # type: ignore[misc]
            futures.append(future)
        pending = set(futures)
        while pending:
            _, pending = wait(pending, timeout=POLL, return_when=FIRST_COMPLETED)
    except BaseException:
        _stop(pool, futures, threads)
        raise
    pool.shutdown()
    return [_failure(future) for future in futures]


def _stop(pool: ThreadPoolExecutor, futures: list[Future[object]], threads: set[int]) -> None:
    pool.shutdown(wait=False, cancel_futures=True)
    running = {future for future in futures if not future.done()}
    while running:  # a thread may be about to start its compiler: look again until all have come back
        processes.kill_of(threads)
        _, running = wait(running, timeout=POLL)


def _failure(future: Future[object]) -> Exception | None:
    error = future.exception()
    if error is None or isinstance(error, Exception):
        return error
    raise error


# ---- warming up -----------------------------------------------------------------------------------------------


def warmup(kernel: Any, calls: Iterable[Any], target: Target, workers: int | None, progress: bool | None) -> None:
    """See `Kernel.warmup`."""
    given = [_call(position, each) for position, each in enumerate(calls_of(calls))]
    failures: list[tuple[int, WarpjitError]] = []
    wanted: list[tuple[int, Specialization]] = []
    begun: list[tuple[int, Specialization, Built]] = []

    def jobs() -> Iterator[Job]:
        for position, specialization in _missing(kernel, wanted, target, bar, workers):
            try:
                built = kernel.built(specialization, target)
            except WarpjitError as error:
                failures.append((position, error))
                continue
            begun.append((position, specialization, built))
            yield Job(f"{built.emitted.entry} {position + 1}", lambda built=built: built.cubin)  # type: ignore[misc]

    at_once(workers)
    for position, (args, named) in enumerate(given):
        try:
            wanted.append((position, kernel.specialization(args, named)))
        except WarpjitError as error:
            failures.append((position, error))
    with Bar(f"compiling {kernel.signature.name}", len(wanted), progress) as bar:
        outcomes = run_all(jobs(), bar, workers)
    for (position, specialization, built), raised in zip(begun, outcomes, strict=True):
        if isinstance(raised, WarpjitError):
            failures.append((position, raised))
        elif raised is not None:
            raise raised
        else:
            kernel.keep(built, specialization)
    if failures:
        raise _together(kernel, len(given), sorted(failures, key=lambda each: each[0]))


def _missing(
    kernel: Any, wanted: Sequence[tuple[int, Specialization]], target: Target, bar: Bar, workers: int | None
) -> list[tuple[int, Specialization]]:
    """What the store does not have after copies of this process have made what they could."""
    missing = [each for each in wanted if kernel.found(each[1], target) is None]
    tasks = [forks.Task(functools.partial(_attempt, kernel, specialization, target)) for _, specialization in missing]
    labels = [f"{kernel.signature.name} {position + 1}" for position, _ in missing]
    outcomes = in_copies(tasks, labels, bar, workers)
    return [
        each
        for each, done in zip(missing, outcomes, strict=True)
        if done is None or kernel.found(each[1], target) is None
    ]


def _attempt(kernel: Any, specialization: Specialization, target: Target, waits: Callable[[float], None]) -> None:
    built = kernel.built(specialization, target)
    waits(Nvcc.of(config.read()).seconds)
    built.executable  # noqa: B018  it is the store that keeps it
    if not kernel.keep(built, specialization):
        raise LookupError("the original would not find it")


def calls_of(given: Any) -> Iterable[Any]:
    """What `warmup` was given, if it is a list of calls. ArgumentError."""
    if isinstance(given, Mapping | str) or not isinstance(given, Iterable):
        one = " for one call, put it in a list" if isinstance(given, Mapping) else ""
        raise ArgumentError(
            "calls: expected a list of calls, each a tuple of arguments or a dict of them by name, but got "
            f"{'a dict:' + one if one else repr(given)}"
        )
    return given


def _call(position: int, given: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    if isinstance(given, tuple):
        return given, {}
    if isinstance(given, Mapping):
        return (), given
    raise ArgumentError(
        f"calls[{position}]: expected a tuple of arguments, or a dict of them by name, but got {type(given).__name__}"
    )


def _together(kernel: Any, count: int, failures: list[tuple[int, WarpjitError]]) -> CompileError:
    findings = [finding for _, error in failures for finding in error.findings]
    shown = "\n\n".join(f"calls[{position}]: {type(error).__name__}: {error}" for position, error in failures)
    return CompileError(f"{kernel!r}: {len(failures)} of {count} calls could not be compiled\n\n{shown}", findings)
