"""Many kernels compiled at once: tracing here, compilers in threads that wait for them.

An interrupt, or any error of whoever brings the jobs, kills the compilers that run and starts no more. What a job
itself raises is collected: the others are done nevertheless.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from warpjit.build import Built
from warpjit.cuda import processes
from warpjit.errors import ArgumentError, CompileError, WarpjitError
from warpjit.frontend.kinds import Specialization
from warpjit.isa.target import Target
from warpjit.progress import Bar

POLL = 0.05
"""Seconds between two looks at what has ended."""


@dataclass(frozen=True)
class Job:
    """Work that mostly waits for a process. `label` is for people."""

    label: str
    run: Callable[[], object]


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(jobs: Iterable[Job], bar: Bar, workers: int | None = None) -> list[Exception | None]:
    """Run jobs as they come, `workers` at once (None: one a core). For each, in order, what it raised, or None.

    The iterable may do work of its own between jobs (tracing): it runs in this thread, beside the others.
    """
    if workers is not None and (type(workers) is not int or workers < 1):
        raise ArgumentError(f"jobs: expected a positive int or None but got {workers!r}")
    threads: set[int] = set()
    futures: list[Future[object]] = []
    pool = ThreadPoolExecutor(workers or cores(), "warpjit", lambda: threads.add(threading.get_ident()))
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
    given = [_call(position, each) for position, each in enumerate(calls)]
    failures: list[tuple[int, WarpjitError]] = []
    begun: list[tuple[int, Specialization, Built]] = []

    def jobs() -> Iterator[Job]:
        for position, (args, named) in enumerate(given):
            try:
                specialization = kernel.specialization(args, named)
                built = kernel.built(specialization, target)
            except WarpjitError as error:
                failures.append((position, error))
                continue
            begun.append((position, specialization, built))
            yield Job(f"{built.emitted.entry} {position + 1}", lambda built=built: built.cubin)  # type: ignore[misc]

    with Bar(f"compiling {kernel.signature.name}", len(given), progress) as bar:
        outcomes = run_all(jobs(), bar, workers)
    for (position, specialization, built), error in zip(begun, outcomes, strict=True):
        if isinstance(error, WarpjitError):
            failures.append((position, error))
        elif error is not None:
            raise error
        else:
            kernel.keep(built, specialization)
    if failures:
        raise _together(kernel, len(given), sorted(failures, key=lambda each: each[0]))


def _call(position: int, given: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    if isinstance(given, tuple):
        return given, {}
    if isinstance(given, Mapping):
        return (), given
    raise ArgumentError(
        f"calls[{position}]: expected a tuple of arguments, or a dict of them by name, but got a {type(given).__name__}"
    )


def _together(kernel: Any, count: int, failures: list[tuple[int, WarpjitError]]) -> CompileError:
    findings = [finding for _, error in failures for finding in error.findings]
    shown = "\n\n".join(f"calls[{position}]: {type(error).__name__}: {error}" for position, error in failures)
    return CompileError(f"{kernel!r}: {len(failures)} of {count} calls could not be compiled\n\n{shown}", findings)
