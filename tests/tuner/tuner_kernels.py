"""Small kernels to tune, a timer whose times are made up, and a store in memory, for the tests of the tuner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpjit import T, warpjit
from warpjit.tuner import Trial

SIZE = 64
N = T.dynamic("N")


@dataclass
class MadeUp:
    """Times by configuration: a number, a function of how many were asked for before, or an error to raise.

    log    what was timed, in order
    clock  seconds, which each launch moves on
    """

    times_of: Mapping[str, Any]
    log: list[str] = field(default_factory=list)
    clock: float = 0.0
    launches: bool = False

    def begin(self, trials: Sequence[Trial]) -> None:
        self.log.append("begin")

    def times(self, trial: Trial, count: int) -> Sequence[float]:
        given = self.times_of[trial.config]
        if isinstance(given, Exception):
            raise given
        asked = self.log.count(trial.config)
        self.log.append(trial.config)
        found = [float(given(asked) if callable(given) else given) for _ in range(count)]
        self.clock += sum(each for each in found if 0 < each < 1e9) * 1e-6
        if self.launches:
            for _ in range(count):
                if trial.restore is not None:
                    trial.restore()
                trial.launch()
        return found

    def now(self) -> float:
        return self.clock

    @property
    def timed(self) -> list[str]:
        """The configurations that were timed, each once, in order."""
        return list(dict.fromkeys(each for each in self.log if each != "begin"))


@warpjit
def doubled(X: T.Tensor((N,), "float32"), Out: T.Tensor((N,), "float32"), *, BLOCK):
    """Out = 2 X."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(N, BLOCK), block=BLOCK))
    i = T.cuda.block_idx("x") * BLOCK + T.cuda.thread_idx("x")
    if i < N:
        Out[i] = X[i] + X[i]


@warpjit
def added(X: T.Tensor((N,), "float32"), Total: T.Tensor((N,), "float32"), *, BLOCK):
    """Total += X."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(N, BLOCK), block=BLOCK))
    i = T.cuda.block_idx("x") * BLOCK + T.cuda.thread_idx("x")
    if i < N:
        Total[i] = Total[i] + X[i]


@warpjit
def evens(X: T.Tensor((N,), "float32"), Out: T.Tensor((N,), "float32"), *, BLOCK):
    """Out[i] = X[i] of even i alone."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(N, BLOCK), block=BLOCK))
    i = T.cuda.block_idx("x") * BLOCK + T.cuda.thread_idx("x")
    if i < N and i % 2 == 0:
        Out[i] = X[i]


def blocks(*sizes: int) -> list[Any]:
    return [warpjit.Config(BLOCK=size) for size in sizes]
