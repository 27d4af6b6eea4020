"""`simulate`: a kernel, a plan and arguments in; written tensors and a report out.

CTAs run in batches of bounded memory, in the grid's order. Tensors that the kernel writes are copied before and
committed after the whole grid has run: a simulation that finds anything wrong changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Protocol

from warpjit.errors import NOWHERE, ArgumentError, Loc
from warpjit.ir.nodes import ConstantBuffer, GlobalBuffer, Kernel, Registers, Slot
from warpjit.ir.walk import constants
from warpjit.layout.axis import LANES
from warpjit.passes.effects import effects
from warpjit.sim.findings import Census
from warpjit.sim.linear import Execute, Instruction, linearise
from warpjit.sim.machine import Machine
from warpjit.sim.memory import GlobalMemory, View, table_of, views_of
from warpjit.sim.printing import flush
from warpjit.sim.state import Region, Shape, State
from warpjit.sim.step import Step, prepare

BUDGET = 192 << 20
"""Bytes that the arrays of one batch of CTAs may take, roughly."""

MOST_WARPS = 1024
"""Warps of one batch: beyond this many, larger arrays save no more time."""


class Plan(Protocol):
    """What the simulator needs of a launch plan: evaluated, for this call."""

    @property
    def shared_bytes(self) -> int: ...

    @property
    def grid(self) -> tuple[int, int, int]: ...

    def shared_offset(self, name: str) -> int: ...


@dataclass(frozen=True)
class Report:
    """What a simulation did.

    steps    operations executed, each for one group of warps
    issued   instructions by text: issues times the warps that executed them
    ctas, warps   how many of them ran
    """

    steps: int
    issued: Mapping[str, int] = field(default_factory=dict)
    ctas: int = 0
    warps: int = 0


@dataclass(frozen=True, eq=False)
class Prepared:
    """A kernel made ready to be simulated, any number of times.

    code     the kernel's flat code; of its operations, by their place in it, `steps`
    locs     where each instruction of it comes from
    written  the global tensors that some operation may write
    tables   the constant tables that operations read
    lane     bytes that one lane's locals and registers take, roughly
    """

    kernel: Kernel
    code: Sequence[Instruction]
    steps: Mapping[int, Step]
    locs: Sequence[Loc]
    written: frozenset[str]
    tables: tuple[ConstantBuffer, ...]
    lane: int

    @classmethod
    def of(cls, kernel: Kernel, numerics: str = "exact") -> Prepared:
        """`numerics`: "exact": matrix products bit for bit; "fast": one float32 product, where a row knows how."""
        if numerics not in ("exact", "fast"):
            raise ArgumentError(f'numerics: expected "exact" or "fast" but got {numerics!r}')
        code = linearise(kernel).code
        steps = {
            site: prepare(instruction.op, site, numerics == "fast")
            for site, instruction in enumerate(code)
            if isinstance(instruction, Execute)
        }
        locs = [getattr(instruction, "loc", NOWHERE) for instruction in code]
        for site, step in steps.items():
            locs[site] = step.loc
        return cls(kernel, code, steps, locs, _written(kernel), constants(kernel.body), _lane_bytes(steps))

    def run(self, plan: Plan, arguments: Sequence[Any], *, seed: int = 0) -> Report:
        """As `simulate`."""
        kernel = self.kernel
        tensors, scalars = _sorted_arguments(kernel, arguments)
        views, storages = views_of(tensors, self.written)
        views |= {table.name: table_of(table.data) for table in self.tables}
        ctas = [(x, y, z) for z, y, x in product(*(range(n) for n in reversed(plan.grid)))]
        warps = -(-kernel.launch.threads // LANES)
        size = _batch_size(self.lane, plan, warps)
        count, issued = 0, Counter[str]()
        for start in range(0, len(ctas), size):
            census = Census(tuple(ctas[start : start + size]), warps)
            state = _state(kernel, plan, census, views, self.locs)
            for local, value in scalars:
                state.values.give(local, value)
            machine = Machine(state, self.code, self.steps, seed, start // size)
            try:
                machine.run()
            finally:
                flush(state)
            count += machine.steps
            issued += machine.issued
        for storage in storages:
            storage.commit()
        return Report(count, dict(issued), len(ctas), len(ctas) * warps)


def simulate(kernel: Kernel, plan: Plan, arguments: Sequence[Any], *, seed: int = 0, numerics: str = "exact") -> Report:
    """Run a kernel lane by lane, and check everything that it does.

    arguments  for each parameter of the kernel in order: a `GlobalMemory` or a scalar (Python or numpy)
    seed       0: warps run together where they can; any other number picks the order of warps at random
    numerics   as in `Prepared.of`

    Raises SimulationError for what the kernel does wrong (tensors are unchanged then), and ArgumentError where the
    arguments do not fit the parameters.
    """
    return Prepared.of(kernel, numerics).run(plan, arguments, seed=seed)


def _sorted_arguments(
    kernel: Kernel, arguments: Sequence[Any]
) -> tuple[dict[str, GlobalMemory], list[tuple[Any, Any]]]:
    """Tensors by their buffer's name, and scalars with their locals."""
    if len(arguments) != len(kernel.parameters):
        raise ArgumentError(
            f"{kernel.name}: expected {len(kernel.parameters)} arguments, one a parameter, but got {len(arguments)}"
        )
    tensors: dict[str, GlobalMemory] = {}
    scalars: list[tuple[Any, Any]] = []
    for parameter, argument in zip(kernel.parameters, arguments, strict=True):
        target = parameter.target
        if isinstance(target, GlobalBuffer) != isinstance(argument, GlobalMemory):
            wanted = "a GlobalMemory" if isinstance(target, GlobalBuffer) else f"a scalar of type {target.dtype}"
            raise ArgumentError(f"{kernel.name}: {target.name}: expected {wanted} but got {type(argument).__name__}")
        if isinstance(target, GlobalBuffer):
            tensors[target.name] = argument
        else:
            scalars.append((target, argument))
    return tensors, scalars


def _written(kernel: Kernel) -> frozenset[str]:
    """The global tensors that some operation may write."""
    writes, targets = effects(kernel).writes, [parameter.target for parameter in kernel.parameters]
    return frozenset(each.name for each in targets if isinstance(each, GlobalBuffer) and each.index in writes)


def _lane_bytes(steps: Mapping[int, Step]) -> int:
    """A register: word, mark and bits; a local: its value, rarely marks."""
    atoms = {atom for step in steps.values() for each in step.bound for issue in each.atoms for atom in issue}
    registers: set[Registers] = {atom.registers for atom in atoms if isinstance(atom, Slot)}
    scalars = len([atom for atom in atoms if not isinstance(atom, Slot)])
    return 12 * sum(each.count for each in registers) + 8 * scalars


def _batch_size(lane: int, plan: Plan, warps: int) -> int:
    """How many CTAs run together."""
    # A shared byte: value, mark, pending, writer, stamp, atomic, and a stamp for each warp.
    shared = max(plan.shared_bytes, 1) * (16 + 8 * warps)
    return max(1, min(BUDGET // (warps * LANES * lane + shared), MOST_WARPS // warps))


def _state(kernel: Kernel, plan: Plan, census: Census, views: dict[str, View], locs: Sequence[Loc]) -> State:
    regions = [Region(each.name, plan.shared_offset(each.name), each.bytes) for each in kernel.shared]
    shape = Shape(kernel.launch.block, kernel.launch.cluster, plan.grid)
    return State(census, views, regions, plan.shared_bytes, locs, shape)
