"""How something is tuned: what the user says, checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeAlias

from warpjit.build import Resources
from warpjit.errors import ArgumentError
from warpjit.isa.target import Target
from warpjit.tuner.config import Config
from warpjit.tuner.key import KeyRule
from warpjit.tuner.race import Rules
from warpjit.tuner.timing import Timer, check_l2

REGISTERS_PER_SM = 65536
REGISTERS_A_WARP = 256
"""Registers of a warp are given out in such pieces (CUDA C++ Programming Guide, "Compute Capabilities")."""


@dataclass(frozen=True)
class Limits:
    """What a configuration's kernel may take; one that takes more is left out before it runs. None: anything.

    shared_bytes   of a CTA, what the system reserves included: known before anything is compiled
    registers      of a thread
    stack_bytes    of a thread in local memory (0: no spilled registers)
    ctas_per_sm    that must fit a multiprocessor together, at least
    """

    shared_bytes: int | None = None
    registers: int | None = None
    stack_bytes: int | None = None
    ctas_per_sm: int | None = None

    def before(self, shared_bytes: int) -> str:
        """Why a kernel with so much shared memory is left out; "" if it is not."""
        return _above("shared_bytes", self.shared_bytes, shared_bytes)

    def after(self, found: Resources, threads: int, target: Target) -> str:
        """Why a compiled kernel is left out; "" if it is not."""
        fit = occupancy(found, threads, target)
        few = f"{fit} CTAs fit a multiprocessor, fewer than ctas_per_sm={self.ctas_per_sm}"
        return (
            _above("registers", self.registers, found.registers)
            or _above("stack_bytes", self.stack_bytes, found.stack_bytes)
            or (few if self.ctas_per_sm is not None and fit < self.ctas_per_sm else "")
        )


def _above(name: str, limit: int | None, value: int) -> str:
    return f"{value} is above {name}={limit}" if limit is not None and value > limit else ""


def occupancy(found: Resources, threads: int, target: Target) -> int:
    """How many CTAs fit a multiprocessor."""
    warps = -(-threads // 32)
    a_warp = -(-found.registers * 32 // REGISTERS_A_WARP) * REGISTERS_A_WARP
    return min(
        target.row.blocks_per_sm,
        target.row.threads_per_sm // (32 * warps),
        REGISTERS_PER_SM // max(a_warp * warps, 1),
        target.shared_per_sm // max(found.shared_bytes, 1),
    )


Prune: TypeAlias = "Callable[[Config, SimpleNamespace], bool] | Limits | None"
Reference: TypeAlias = Callable[..., object]


@dataclass(frozen=True)
class Settings:
    """See `autotune`.

    timer, rules   in place of CUDA events, and of the usual number of rounds: for tests
    """

    key: KeyRule = field(default_factory=KeyRule)
    prune: Prune = None
    check: bool = False
    reference: Reference | None = None
    rtol: float = 1e-2
    atol: float = 1e-2
    l2: str = "cold"
    budget: float | None = None
    isolate: bool = False
    timer: Timer | None = None
    rules: Rules = field(default_factory=Rules)
    seed: int | None = None
    jobs: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        check_l2(self.l2)
        if self.prune is not None and not isinstance(self.prune, Limits) and not callable(self.prune):
            raise ArgumentError(f"prune: expected a function (config, arguments) or Limits but got {self.prune!r}")
        if self.reference is not None and not callable(self.reference):
            raise ArgumentError(f"reference: expected a function but got {self.reference!r}")
        if self.budget is not None and not self.budget > 0:
            raise ArgumentError(f"budget: expected a positive number of seconds or None but got {self.budget!r}")

    @property
    def checks(self) -> bool:
        return self.check or self.reference is not None

    @property
    def limits(self) -> Limits:
        return self.prune if isinstance(self.prune, Limits) else Limits()

    def left_out(self, config: Config, arguments: Any) -> bool:
        """Whether the user's function leaves a configuration out."""
        return callable(self.prune) and bool(self.prune(config, arguments))
