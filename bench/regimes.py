"""The two orders in which kernels are timed beside each other, and the two give quite different ratios.

sustained    each kernel runs back to back for most of a second, its first third dropped: the GPU is at its power limit,
             and each kernel finds its own clock
alternating  a few launches of each in turn: the clock does not follow so fast, so all run at one clock and the ratio is
             that of the cycles

Orders are shuffled in each round. What raises is left out from then on, with its error. Left out: what is launched
(`contestants`), and the clock (`clocks`).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from bench.harness import error_text


class Timer(Protocol):
    """Times work that runs later than it is issued."""

    def mark(self) -> Any:
        """A point in the order of what is issued."""

    def milliseconds(self, start: Any, end: Any) -> float:
        """The time between two marks; all work has been waited for."""

    def wait(self) -> None:
        """Until all that was issued has run."""


class GpuTimer:
    """Events on torch's current stream."""

    def mark(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def milliseconds(self, start: torch.cuda.Event, end: torch.cuda.Event) -> float:
        return float(start.elapsed_time(end))

    def wait(self) -> None:
        torch.cuda.synchronize()


@dataclass(frozen=True)
class Runner:
    """A kernel under a name: `issue` issues `launches` of it (several where they are recorded in one graph)."""

    name: str
    issue: Callable[[], object]
    launches: int = 1


@dataclass(frozen=True)
class Segment:
    """A stretch of one kernel: the time of a launch, and when it was (seconds since the epoch)."""

    milliseconds: float
    begin: float
    end: float


@dataclass
class Timings:
    """What a regime found: a list per kernel, one item a round, and the errors of those that did not finish."""

    segments: dict[str, list[Segment]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, segment: Segment) -> None:
        self.segments.setdefault(name, []).append(segment)

    def fail(self, name: str, error: Exception) -> None:
        self.errors[name] = error_text(error)
        self.segments.pop(name, None)

    def milliseconds(self, name: str) -> list[float]:
        return [segment.milliseconds for segment in self.segments.get(name, [])]


@dataclass(frozen=True)
class Sustained:
    """How long the sustained regime runs (seconds, and rounds over all kernels)."""

    seconds: float = 0.8
    rounds: int = 2
    warm_up: float = 1.5


@dataclass(frozen=True)
class Alternating:
    """How much the alternating regime runs: launches of each kernel in a round, and rounds."""

    launches: int = 4
    rounds: int = 15


SHORT_MS, GRAPH_MS = 0.2, 2.0
"""A launch shorter than the first is recorded in a graph that lasts the second: the host would be the slower side."""


def runner_of(name: str, launch: Callable[[], object], timer: Timer) -> Runner:
    """How something is issued: one by one, or, where launches are short, many in a graph."""
    direct = Runner(name, launch)
    try:
        took = duration(direct, timer)
        return direct if took >= SHORT_MS else _graph(name, launch, max(1, round(GRAPH_MS / took)))
    except Exception:
        # The regime meets the same error again and notes it; one that cannot be captured runs one by one.
        return direct


def _graph(name: str, launch: Callable[[], object], launches: int) -> Runner:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            launch()
    return Runner(name, graph.replay, launches)


def duration(runner: Runner, timer: Timer, repeats: int = 3) -> float:
    """Milliseconds of one `issue` in a short burst, warmed up."""
    runner.issue()
    timer.wait()
    start = timer.mark()
    for _ in range(repeats):
        runner.issue()
    end = timer.mark()
    timer.wait()
    return timer.milliseconds(start, end) / repeats


def durations(runners: Sequence[Runner], timer: Timer, found: Timings) -> dict[str, float]:
    """`duration` of each that does not fail."""
    known = {}
    for runner in runners:
        try:
            known[runner.name] = max(duration(runner, timer), 1e-4)
        except Exception as error:
            found.fail(runner.name, error)
    return known


def sustained(
    runners: Sequence[Runner],
    timer: Timer,
    how: Sustained,
    order: random.Random,
    after: Callable[[str], None] = lambda name: None,
) -> Timings:
    """Time each kernel back to back. `after` is called with its name when a stretch has been issued, not yet run."""
    found = Timings()
    known = durations(runners, timer, found)
    _warm_up(runners, known, timer, how.warm_up)
    for _ in range(how.rounds):
        for runner in order.sample(list(runners), len(runners)):
            if runner.name in found.errors:
                continue
            try:
                issues = max(3, round(how.seconds * 1e3 / known[runner.name]))
                found.add(runner.name, _stretch(runner, issues, timer, after))
            except Exception as error:
                found.fail(runner.name, error)
    return found


def _warm_up(runners: Sequence[Runner], known: dict[str, float], timer: Timer, seconds: float) -> None:
    if not known:
        return
    share = seconds * 1e3 / len(known)
    for runner in runners:
        if runner.name in known:
            for _ in range(round(share / known[runner.name])):
                runner.issue()
    timer.wait()


def _stretch(runner: Runner, issues: int, timer: Timer, after: Callable[[str], None]) -> Segment:
    dropped = issues // 3
    begin = time.time()
    for _ in range(dropped):
        runner.issue()
    start = timer.mark()
    for _ in range(issues - dropped):
        runner.issue()
    end = timer.mark()
    after(runner.name)
    timer.wait()
    launches = (issues - dropped) * runner.launches
    return Segment(timer.milliseconds(start, end) / launches, begin, time.time())


def alternating(runners: Sequence[Runner], timer: Timer, how: Alternating, order: random.Random) -> Timings:
    """Time a few launches of each kernel in turn, round after round."""
    found = Timings()
    durations(runners, timer, found)
    for _ in range(how.rounds):
        begin = time.time()
        marks: dict[str, tuple[Any, Any]] = {}
        for runner in order.sample(list(runners), len(runners)):
            if runner.name in found.errors:
                continue
            try:
                start = timer.mark()
                for _ in range(how.launches):
                    runner.issue()
                marks[runner.name] = start, timer.mark()
            except Exception as error:
                found.fail(runner.name, error)
        timer.wait()
        for runner in runners:
            if runner.name in marks:
                milliseconds = timer.milliseconds(*marks[runner.name]) / how.launches / runner.launches
                found.add(runner.name, Segment(milliseconds, begin, time.time()))
    return found
