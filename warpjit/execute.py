"""A program with the arguments of a call: launched on a device, or simulated.

Which program a call needs, and how it is made, is `kernel`'s; what goes into a launch is the launch plan's.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warpjit import arguments, config
from warpjit.cuda.driver import Function
from warpjit.cuda.launch import PreparedLaunch
from warpjit.errors import ArgumentError, LaunchError
from warpjit.frontend.captures import Capture
from warpjit.isa.target import MAX_GRID
from warpjit.launchable import Launchable
from warpjit.passes.launch_plan import LaunchPlan

if TYPE_CHECKING:
    from warpjit.build import Program
    from warpjit.sim import Prepared, Report


def checked_grid(plan: LaunchPlan, grid: Sequence[Any]) -> tuple[int, int, int]:
    """The grid of a call. ArgumentError: negative, more CTAs than the hardware takes, or a part of a cluster."""
    x, y, z = (int(size) for size in grid)
    if not (0 <= x <= MAX_GRID[0] and 0 <= y <= MAX_GRID[1] and 0 <= z <= MAX_GRID[2]):
        raise ArgumentError(
            f"{plan.name}: expected a grid of at most {MAX_GRID} CTAs, none negative, but got {(x, y, z)}"
        )
    if any(size % part for size, part in zip((x, y, z), plan.cluster, strict=True)):
        raise ArgumentError(
            f"{plan.name}: expected a grid that is a multiple of the cluster, {plan.cluster}, but got {(x, y, z)}"
        )
    return x, y, z


# ---- on a device ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Loaded:
    """A program on a device, ready to be launched there.

    templates   what `fastcall` has written for it
    """

    program: Launchable
    prepared: PreparedLaunch
    device: int
    templates: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def captures(self) -> tuple[Capture, ...]:
        """What the program took from outside."""
        return self.program.captures

    @classmethod
    def of(cls, program: Launchable, function: Function, device: int) -> Loaded:
        plan = program.plan
        formats = ["P" if each.pointer else arguments.FORMATS[each.dtype.name] for each in plan.parameters]
        prepared = function.prepare(formats, plan.block, shared=plan.shared_bytes, cluster=plan.cluster)
        return cls(program, prepared, device)

    def launch(self, runtime: Sequence[Any]) -> None:
        """Launch with these runtime arguments on torch's current stream of the device."""
        program = self.program
        parameters = program.plan.parameters
        given = arguments.planned(runtime, program.leaves)
        values = program.evaluate(given.values, given.sizes, given.strides)
        grid = checked_grid(program.plan, values[:3])
        encoded = [
            value if parameter.pointer else arguments.encoded(value, parameter.dtype)
            for parameter, value in zip(parameters, values[3:], strict=True)
        ]
        try:
            self.prepared.launch(grid, arguments.stream_reader()(self.device), encoded)
        except struct.error:
            arguments.check_values(parameters, values[3:])
            raise


def refuse_capture(name: str, device: int) -> None:
    """LaunchError before anything is touched: a cold kernel cannot be compiled while a graph is captured."""
    torch = arguments.torch_module()
    if torch is None or not torch.cuda.is_available():
        return
    with torch.cuda.device(device):
        if torch.cuda.is_current_stream_capturing():
            raise LaunchError(
                f"{name} would be compiled and loaded while a CUDA graph is captured: call it once before the capture "
                "with arguments of the same kinds"
            )


# ---- in the simulator -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Evaluated:
    """A launch plan with its grid evaluated, as the simulator reads it."""

    plan: LaunchPlan
    grid: tuple[int, int, int]

    @property
    def shared_bytes(self) -> int:
        return self.plan.shared_bytes

    def shared_offset(self, name: str) -> int:
        return self.plan.shared_offset(name)


def refuse_cpu() -> None:
    """ArgumentError: WARPJIT_CPU=error, so that a stray CPU tensor starts no silent simulation on a server."""
    chosen = config.read().cpu
    if chosen == "error":
        raise ArgumentError("the tensors are on the CPU, and WARPJIT_CPU=error forbids to simulate")
    if chosen != "simulate":
        raise ArgumentError(f'WARPJIT_CPU: expected "simulate" or "error" but got {chosen!r}')


def run_in_simulator(program: Program, runtime: Sequence[Any], *, seed: int = 0, numerics: str = "exact") -> Report:
    """Simulate with these runtime arguments: CPU tensors and numbers."""
    parameters = program.plan.parameters
    given = arguments.planned(runtime, program.leaves)
    values = program.evaluate(given.values, given.sizes, given.strides)
    grid = checked_grid(program.plan, values[:3])
    arguments.check_values(parameters, values[3:])
    operands = [
        arguments.simulated(runtime[parameter.source[1]]) if parameter.pointer else value  # type: ignore[index]
        for parameter, value in zip(parameters, values[3:], strict=True)
    ]
    return _prepared(program, numerics).run(_Evaluated(program.plan, grid), operands, seed=seed)


@functools.lru_cache(maxsize=8)
def _prepared(program: Program, numerics: str) -> Prepared:
    """A program ready to be simulated: what is called again and again, as in a loop, is prepared once."""
    from warpjit.sim import Prepared  # noqa: PLC0415  launches do without

    return Prepared.of(program.kernel, numerics)
