"""Kernels written as IR by hand, and a way to run them on numpy arrays, for the simulator's tests.

`Hand` writes statements into the innermost open block; every statement gets a line number of its own, which a test can
look up with `line`. Only the rows of the instruction table are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from warpjit.errors import Frame, Loc, SimulationError
from warpjit.ir.dtypes import DType, bool_, dtype, dtype_of, int32, uint32
from warpjit.ir.nodes import (
    Access,
    Address,
    Allocate,
    Assign,
    Assume,
    Atom,
    Break,
    Const,
    Continue,
    Declare,
    For,
    GlobalBuffer,
    If,
    Kernel,
    Launch,
    Local,
    Node,
    Op,
    OperandValue,
    Parameter,
    Registers,
    Return,
    SharedBuffer,
    While,
)
from warpjit.isa.memory import LOAD, STORE
from warpjit.isa.row import Row
from warpjit.isa.scalar import ARITHMETIC, COMPARE, SELECT, SPECIAL
from warpjit.isa.table import lookup
from warpjit.sim import GlobalMemory, Report, simulate

Tensor = GlobalBuffer | SharedBuffer


def const(value: int | float | bool, of: DType = int32) -> Const:
    return Const(value, of)


@dataclass
class HandPlan:
    """A plan with the allocations one after the other."""

    grid: tuple[int, int, int]
    offsets: dict[str, int]
    shared_bytes: int

    def shared_offset(self, name: str) -> int:
        return self.offsets[name]


@dataclass
class Hand:
    """A kernel under construction."""

    block: tuple[int, int, int] = (32, 1, 1)
    grid: tuple[int, int, int] = (1, 1, 1)
    nodes: list[Node] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    shared: list[SharedBuffer] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)
    strides: dict[str, tuple[int, ...]] = field(default_factory=dict)
    lines: int = 0
    names: int = 0
    marked: dict[str, int] = field(default_factory=dict)

    # ---- declarations ------------------------------------------------------------------------------

    def tensor(self, name: str, shape: tuple[int, ...], of: str = "int32") -> GlobalBuffer:
        buffer = GlobalBuffer(name, dtype(of), len(self.parameters), 16)
        self.parameters.append(Parameter(buffer, 0))
        self._shape(name, shape, buffer.dtype)
        return buffer

    def scalar(self, name: str, of: DType = int32) -> Local:
        local = Local(name, of)
        self.parameters.append(Parameter(local, ("arg", len(self.parameters))))
        return local

    def alloc(self, name: str, shape: tuple[int, ...], of: str = "int32", align: int = 16) -> SharedBuffer:
        kind = dtype(of)
        buffer = SharedBuffer(name, int(np.prod(shape)) * kind.bytes, align)
        self.shared.append(buffer)
        self._shape(name, shape, kind)
        return buffer

    def _shape(self, name: str, shape: tuple[int, ...], of: DType) -> None:
        self.shapes[name] = shape
        self.dtypes[name] = of
        self.strides[name] = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))

    def registers(self, name: str, word: str, count: int) -> Registers:
        registers = Registers(name, dtype(word), count)
        self.emit(Allocate(registers, self.loc()))
        return registers

    # ---- statements --------------------------------------------------------------------------------

    def loc(self) -> Loc:
        self.lines += 1
        return Loc((Frame("kernel.py", "kernel", self.lines, 0, 1, f"statement {self.lines}"),))

    def mark(self, name: str) -> None:
        """Remember the line of the next statement under a name."""
        self.marked[name] = self.lines + 1

    def emit(self, node: Node) -> None:
        self.nodes.append(node)

    def fresh(self, of: DType) -> Local:
        self.names += 1
        return Local(f"t{self.names}", of)

    def op(self, row: Row | str, *operands: OperandValue, **fields: Any) -> None:
        found = lookup(row) if isinstance(row, str) else row
        self.emit(Op(found, operands, loc=self.loc(), **fields))

    def value(self, row: Row | str, *operands: OperandValue, **fields: Any) -> Local:
        found = lookup(row) if isinstance(row, str) else row
        of = found.operands[0].dtype
        assert of is not None
        local = self.fresh(of)
        self.op(found, local, *operands, **fields)
        return local

    def arith(self, operation: str, a: Atom, b: Atom | int | float) -> Local:
        b = const(b, a.dtype) if isinstance(b, int | float) else b
        return self.value(ARITHMETIC[operation, a.dtype.name], a, b)

    def compare(self, operation: str, a: Atom, b: Atom | int) -> Local:
        b = const(b, a.dtype) if isinstance(b, int) else b
        return self.value(COMPARE[operation, a.dtype.name], a, b)

    def compare_int(self, operation: str, a: Atom, b: Atom | int) -> Local:
        """0 or 1."""
        return self.value(SELECT["int32"], self.compare(operation, a, b), const(1), const(0))

    def special(self, register: str) -> Local:
        return self.value(SPECIAL[register])

    def lane(self) -> Local:
        return self.special("laneid")

    def thread(self) -> Local:
        return self.special("tid")

    def warp(self) -> Local:
        return self.special("warp")

    def assume(self, condition: Atom) -> None:
        self.emit(Assume(condition, self.loc()))

    def variable(self, name: str, value: Atom | int) -> Local:
        value = const(value) if isinstance(value, int) else value
        local = Local(name, value.dtype)
        self.emit(Declare(local, self.loc()))
        self.assign(local, value)
        return local

    def assign(self, local: Local, value: Atom | int) -> None:
        self.emit(Assign(local, const(value) if isinstance(value, int) else value, self.loc()))

    # ---- memory ------------------------------------------------------------------------------------

    def at(self, tensor: Tensor, *coordinates: Atom | int, checked: bool = True) -> Address:
        """The address of an element; with `checked` it names the element."""
        size = self.dtypes[tensor.name].bytes
        offset: Atom | None = None
        constant = 0
        for coordinate, stride in zip(coordinates, self.strides[tensor.name], strict=True):
            if isinstance(coordinate, int):
                constant += coordinate * stride * size
                continue
            term = self.arith("mul", coordinate, stride * size)
            offset = term if offset is None else self.arith("add", offset, term)
        atoms = tuple(const(c) if isinstance(c, int) else c for c in coordinates)
        shape = tuple(const(extent) for extent in self.shapes[tensor.name])
        return Address(tensor, offset, constant, Access(tensor.name, atoms, shape) if checked else None)

    def load(self, tensor: Tensor, *coordinates: Atom | int, **fields: Any) -> Local:
        address = self.at(tensor, *coordinates)
        return self.value(LOAD[tensor.space, self.dtypes[tensor.name].name], address, **fields)

    def store(self, tensor: Tensor, value: Atom | int, *coordinates: Atom | int, **fields: Any) -> None:
        of = self.dtypes[tensor.name]
        value = const(value, of) if isinstance(value, int) else value
        address = self.at(tensor, *coordinates)
        self.op(STORE[tensor.space, of.name], address, value, **fields)

    # ---- synchronisation ---------------------------------------------------------------------------

    def sync(self) -> None:
        self.op("bar.sync", const(0), None)

    def warp_sync(self, mask: int = 0xFFFFFFFF) -> None:
        self.op("bar.warp.sync", const(mask, uint32))

    # ---- control -----------------------------------------------------------------------------------

    @contextmanager
    def _block(self) -> Iterator[list[Node]]:
        outer, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = outer

    @contextmanager
    def if_(self, condition: Atom) -> Iterator[None]:
        loc = self.loc()
        with self._block() as then:
            yield
        self.emit(If(condition, tuple(then), loc=loc))

    @contextmanager
    def else_(self) -> Iterator[None]:
        last = self.nodes.pop()
        assert isinstance(last, If)
        with self._block() as orelse:
            yield
        self.emit(If(last.condition, last.then, tuple(orelse), loc=last.loc))

    @contextmanager
    def for_(self, name: str, stop: Atom | int, start: Atom | int = 0, step: int = 1) -> Iterator[Local]:
        loc = self.loc()
        variable = Local(name, int32)
        with self._block() as body:
            yield variable
        ends = [const(end) if isinstance(end, int) else end for end in (start, stop)]
        self.emit(For(variable, ends[0], ends[1], step, tuple(body), loc=loc))

    @contextmanager
    def while_true(self) -> Iterator[None]:
        loc = self.loc()
        with self._block() as body:
            yield
        self.emit(While((), const(True, bool_), tuple(body), loc=loc))

    def break_(self) -> None:
        self.emit(Break(self.loc()))

    def continue_(self) -> None:
        self.emit(Continue(self.loc()))

    def return_(self) -> None:
        self.emit(Return(self.loc()))

    # ---- running -----------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        launch = Launch(self.grid, self.block)
        return Kernel("kernel", tuple(self.parameters), tuple(self.shared), tuple(self.nodes), launch)

    def plan(self) -> HandPlan:
        offsets, end = {}, 0
        for buffer in self.shared:
            offsets[buffer.name] = end = -(-end // buffer.align) * buffer.align
            end += buffer.bytes
        return HandPlan(self.grid, offsets, end)

    def run(self, *arguments: Any, **options: Any) -> Report:
        """Simulate on contiguous numpy arrays and scalars."""
        given = [memory(each) if isinstance(each, np.ndarray) else each for each in arguments]
        return simulate(self.kernel(), self.plan(), given, **options)

    def fails(self, *arguments: Any, **options: Any) -> SimulationError:
        """Simulate a broken kernel: the error, after making sure that no array has changed."""
        before = [each.copy() for each in arguments if isinstance(each, np.ndarray)]
        with pytest.raises(SimulationError) as caught:
            self.run(*arguments, **options)
        after = [each for each in arguments if isinstance(each, np.ndarray)]
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, other)
        return caught.value


def memory(array: np.ndarray[Any, Any]) -> GlobalMemory:
    """A contiguous array as an argument."""
    dtype_of(array)
    data = array.view(np.uint8).reshape(-1) if array.size else np.zeros(0, np.uint8)
    return GlobalMemory(data, 0, ((0, data.size),))


def only(error: SimulationError) -> tuple[str, int, list[tuple[str, int]]]:
    """The one finding: its sentence, its line and its notes."""
    (finding,) = error.findings
    return finding.message, finding.loc.line, [(note.message, note.loc.line) for note in finding.notes]
