"""The launch of a kernel as data: where shared buffers lie, grid, block, cluster, attributes, parameters.

A `LaunchPlan` is all that a launcher needs besides the cubin, and can be written as JSON. It holds no code: what
depends on a call are expressions (`expressions`). What the kernel does is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from warpjit.errors import ArgumentError
from warpjit.ir.dtypes import DTYPES, DType
from warpjit.passes.expressions import Planned, compile_plan, from_json, to_json
from warpjit.record import record

if TYPE_CHECKING:
    from warpjit.ir.nodes import PlanExpr

SCHEMA = 2


@record
class SharedSlot:
    """A shared buffer's place in the CTA's arena: `offset`, `bytes` and `align` in bytes."""

    name: str
    offset: int
    bytes: int
    align: int


@record
class PlannedParameter:
    """One parameter of the kernel's entry. `pointer`: the base address of a tensor whose elements are `dtype`;
    otherwise a scalar of `dtype`. `source` says where the value comes from."""

    name: str
    dtype: DType
    pointer: bool
    source: PlanExpr


@dataclass(frozen=True)
class LaunchPlan:
    """How a kernel is launched.

    grid              three expressions
    block, cluster    threads of a CTA, CTAs of a cluster
    shared            the places of the shared buffers, in the order of their allocation
    shared_bytes      the size of the dynamic arena, whose start is a multiple of every alignment
    parameters        in the order of the entry's parameters
    reads, writes     the runtime arguments, by index, whose memory the kernel may read, and may write
    """

    name: str
    grid: tuple[PlanExpr, PlanExpr, PlanExpr]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: tuple[SharedSlot, ...]
    shared_bytes: int
    parameters: tuple[PlannedParameter, ...]
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    max_registers: int | None = None
    min_blocks_per_sm: int | None = None

    @cached_property
    def _offsets(self) -> dict[str, int]:
        return {slot.name: slot.offset for slot in self.shared}

    def shared_offset(self, name: str) -> int:
        """Where the shared buffer `name` starts in the arena, in bytes."""
        return self._offsets[name]

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    def compile(self) -> Planned:
        """A function of (values, sizes, strides), see `Arguments`, that returns the three grid extents and then the
        parameters' values. ArgumentError at a call: an expression divides by zero."""
        return compile_plan((*self.grid, *(parameter.source for parameter in self.parameters)))

    def to_json(self) -> dict[str, Any]:
        """The plan in dicts, lists, ints, bools, strings and None. `from_json` gives an equal plan."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "grid": [to_json(each) for each in self.grid],
            "block": list(self.block),
            "cluster": list(self.cluster),
            "shared": [[slot.name, slot.offset, slot.bytes, slot.align] for slot in self.shared],
            "shared_bytes": self.shared_bytes,
            "parameters": [
                [parameter.name, parameter.dtype.name, parameter.pointer, to_json(parameter.source)]
                for parameter in self.parameters
            ],
            "reads": list(self.reads),
            "writes": list(self.writes),
            "max_registers": self.max_registers,
            "min_blocks_per_sm": self.min_blocks_per_sm,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LaunchPlan:
        """The plan that `to_json` gave. ArgumentError: `data` is of another schema."""
        if data.get("schema") != SCHEMA:
            raise ArgumentError(f"expected a launch plan of schema {SCHEMA} but got {data.get('schema')!r}")
        x, y, z = (from_json(each) for each in data["grid"])
        return cls(
            name=data["name"],
            grid=(x, y, z),
            block=_triple(data["block"]),
            cluster=_triple(data["cluster"]),
            shared=tuple(SharedSlot(*slot) for slot in data["shared"]),
            shared_bytes=data["shared_bytes"],
            parameters=tuple(
                PlannedParameter(name, DTYPES[dtype], pointer, from_json(source))
                for name, dtype, pointer, source in data["parameters"]
            ),
            reads=tuple(data["reads"]),
            writes=tuple(data["writes"]),
            max_registers=data["max_registers"],
            min_blocks_per_sm=data["min_blocks_per_sm"],
        )


def _triple(items: list[int]) -> tuple[int, int, int]:
    x, y, z = items
    return (x, y, z)
