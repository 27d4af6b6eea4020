"""How launches are timed: a small protocol, and its way with CUDA events.

Cold: before each launch a buffer of twice the L2 cache is written, which also gives the host time to issue what
follows, so that it is the device that is measured. Warm: launches one after the other; short ones many in a graph.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from warpjit.errors import ArgumentError

WARM_SECONDS = 0.25
"""How long the device works before anything is timed: its clock follows the load."""
WARM_CHUNK = 8
"""Launches that are issued before the host waits meanwhile: few, since some take long, but no device cools between."""
SHORT_US = 100.0
"""A warm launch that is shorter is repeated in a graph that lasts about twice this."""
DEFAULT_L2 = 50 << 20
CHUNK = 64
"""Launches that are issued before the host waits."""


@dataclass(frozen=True)
class Trial:
    """Something to time.

    config   its name, for people and for timers of tests
    launch   issues one launch
    restore  issues what one launch needs before it; None: nothing
    """

    config: str
    launch: Callable[[], object]
    restore: Callable[[], object] | None = None


class Timer(Protocol):
    """Times launches. Times are in microseconds; one that is no positive number is not believed."""

    def begin(self, trials: Sequence[Trial]) -> None:
        """Called once before the first of `times`: warm up."""

    def times(self, trial: Trial, count: int) -> Sequence[float]:
        """The times of `count` launches."""

    def now(self) -> float:
        """Seconds, for budgets."""


class EventTimer:
    """CUDA events on torch's current stream of a device.

    l2   "cold": the L2 cache holds other data before each launch; "warm": what the launch before has left
    """

    def __init__(self, device: int, l2: str = "cold") -> None:
        import torch  # noqa: PLC0415  heavy

        self._torch: Any = torch
        self._device, self._cold = device, check_l2(l2) == "cold"
        size = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", DEFAULT_L2)
        self._flush = torch.empty(2 * size if self._cold else 0, dtype=torch.uint8, device=f"cuda:{device}")
        self._graphs: dict[str, tuple[Any, int] | None] = {}

    def begin(self, trials: Sequence[Trial]) -> None:
        end = time.monotonic() + WARM_SECONDS
        for number, trial in enumerate(itertools.cycle(trials), 1):
            self._prepare(trial)
            trial.launch()
            if number % WARM_CHUNK == 0 or number <= len(trials):  # what is launched first may take any time
                self._torch.cuda.synchronize(self._device)
                if time.monotonic() >= end:
                    break

    def times(self, trial: Trial, count: int) -> Sequence[float]:
        if trial.config not in self._graphs:
            self._graphs[trial.config] = self._graph(trial)
        graph = self._graphs[trial.config]
        found: list[float] = []
        while len(found) < count:
            chunk = min(CHUNK, count - len(found))
            found += self._direct(trial, chunk) if graph is None else self._replayed(*graph, chunk)
        return found

    def now(self) -> float:
        return time.monotonic()

    def _prepare(self, trial: Trial) -> None:
        if trial.restore is not None:
            trial.restore()
        if self._cold:
            self._flush.zero_()

    def _event(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _direct(self, trial: Trial, count: int) -> list[float]:
        marks = []
        for _ in range(count):
            self._prepare(trial)
            marks.append((self._event(), trial.launch(), self._event()))
        self._torch.cuda.synchronize(self._device)
        return [float(start.elapsed_time(end)) * 1e3 for start, _, end in marks]

    def _graph(self, trial: Trial) -> tuple[Any, int] | None:
        """Many launches in a graph, and how many; None where launches are timed one by one."""
        once = min(self._direct(trial, 3))
        if self._cold or trial.restore is not None or once >= SHORT_US:
            return None
        launches = max(2, min(500, int(2 * SHORT_US / max(once, 0.5))))
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for _ in range(launches):
                trial.launch()
        graph.replay()
        return graph, launches

    def _replayed(self, graph: Any, launches: int, count: int) -> list[float]:
        marks = []
        for _ in range(count):
            marks.append((self._event(), graph.replay(), self._event()))
        self._torch.cuda.synchronize(self._device)
        return [float(start.elapsed_time(end)) * 1e3 / launches for start, _, end in marks]


def check_l2(l2: Any) -> str:
    """ArgumentError: neither "cold" nor "warm"."""
    if l2 not in ("cold", "warm"):
        raise ArgumentError(f'l2: expected "cold" or "warm" but got {l2!r}')
    return str(l2)
