"""The raw form of an instruction: `T.ptx["..."](operands…, pred=)`, one value an operand, as the manual lists them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory
from warpjit.frontend.addresses import static_int
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Pointer, Scalar, TensorValue, Value, is_number
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType, mbarrier
from warpjit.ir.facts import Uniformity
from warpjit.ir.nodes import Address, Atom, Fragment, OperandValue, Registers, Slot
from warpjit.isa.row import Kind, Mode, Operand, Participants, Row


def raw(tracer: Tracer, row: Row, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`T.ptx["..."](operands…, pred=)`: one value an operand, in the manual's order; results are returned."""
    tracer.require_device(row.text)
    pred = kwargs.pop("pred", None)
    inputs = [operand for operand in row.operands if not (operand.kind is Kind.SCALAR and operand.mode is Mode.WRITE)]
    given = dict(zip((operand.name for operand in inputs), args, strict=False))
    for name, value in kwargs.items():
        if name not in {operand.name for operand in inputs} or name in given:
            raise TraceError(f"{row.text}: expected names of its operands but got {name!r}")
        given[name] = value
    missing = [operand.name for operand in inputs if operand.name not in given and not operand.optional]
    if missing or len(args) > len(inputs):
        names = ", ".join(operand.name + ("?" if operand.optional else "") for operand in inputs)
        raise TraceError(f"{row.text}: expected operands ({names}) but got {len(args) + len(kwargs)}")
    params: list[tuple[str, int]] = []
    size = _immediate_size(row, given)
    values: list[OperandValue] = []
    results: list[Scalar] = []
    for operand in row.operands:
        if operand.kind is Kind.IMMEDIATE:
            params.append((operand.name, immediate(row, operand, given[operand.name])))
            values.append(None)
        elif operand.name not in given and operand in inputs:
            values.append(None)
        elif operand not in inputs:
            assert operand.dtype is not None
            agreed = Uniformity.WARP if row.uniform else Uniformity.LANE
            local = tracer.builder.local("r", operand.dtype, fact.of_type(operand.dtype, agreed))
            results.append(tracer.builder.scalar_of(local))
            values.append(local)
        else:
            values.append(RAW[operand.kind](tracer, row, operand, given[operand.name], size))
    predicate = None
    if pred is not None:
        if row.participants is not Participants.THREAD:
            raise TraceError(f"{row.text} takes no pred=: all lanes execute it together")
        predicate = tracer.builder.atom(arithmetic.truth(tracer.builder, pred))
    tracer.builder.issue(row, tuple(values), params=tuple(params), predicate=predicate, scope=row.participants.value)
    return tuple(results) if len(results) > 1 else results[0] if results else None


def _immediate_size(row: Row, given: dict[str, Value]) -> int:
    """Bytes that a copy moves, where its text says so: its addresses must be multiples of as many."""
    sizes = [operand for operand in row.operands if operand.name == "size" and operand.kind is Kind.IMMEDIATE]
    return immediate(row, sizes[0], given["size"]) if sizes else 0


def immediate(row: Row, operand: Operand, value: Value) -> int:
    """An operand in the instruction's text. TraceError: not static, or none of the legal numbers."""
    number = static_int(value, f"{row.text}: operand {operand.name}")
    if operand.choices and number not in operand.choices:
        raise TraceError(
            f"{row.text}: operand {operand.name}: expected {' or '.join(map(str, operand.choices))} but got {number}"
        )
    return number


def _raw_scalar(tracer: Tracer, row: Row, operand: Operand, value: Value, size: int) -> Atom:
    assert operand.dtype is not None
    if not isinstance(value, Scalar) and not is_number(value):
        raise TraceError(
            f"{row.text}: operand {operand.name}: expected {operand.dtype} but got {arithmetic.describe(value)}"
        )
    scalar = (
        _as_operand(tracer, value, operand.dtype)
        if isinstance(value, Scalar)
        else arithmetic.literal(tracer.builder, value, operand.dtype)
    )
    return tracer.builder.atom(scalar)


def _as_operand(tracer: Tracer, value: Scalar, dtype: DType) -> Scalar:
    """A number converted; a pair and a word of 32 bits are one register."""
    if dtype.is_pair != value.dtype.is_pair and value.dtype.bits == dtype.bits:
        return memory.bitcast(tracer.builder, value, dtype)
    return arithmetic.convert(tracer.builder, value, dtype)


def _raw_address(tracer: Tracer, row: Row, operand: Operand, value: Value, size: int) -> Address:
    what = f"{row.text}: operand {operand.name}"
    if not isinstance(value, Pointer):
        raise TraceError(f"{what}: expected a pointer, tensor.ptr(...), but got {arithmetic.describe(value)}")
    if value.tensor.space != operand.space:
        raise TraceError(
            f"{what}: expected a pointer to {operand.space} memory, but {value.tensor.name} is {value.tensor.space}"
        )
    if operand.kind is Kind.BARRIER and value.tensor.dtype is not mbarrier:
        raise TraceError(
            f'{what}: expected a pointer into a tensor of "mbarrier", but {value.tensor.name} holds '
            f"{value.tensor.dtype}"
        )
    need = max(operand.align, size) if operand.kind is Kind.ADDRESS else operand.align
    if value.align % need:
        raise TraceError(
            f"{what}: the address in {value.tensor.name} must be a multiple of {need} bytes, but it is known to be a "
            f"multiple of {value.align} only: align the tensor, or make its strides and the indices multiples of "
            f"{_elements(need, value)}"
        )
    return value.address


def _elements(need: int, value: Pointer) -> str:
    return f"{need // value.tensor.dtype.bytes} elements of {value.tensor.dtype}"


def _raw_fragment(tracer: Tracer, row: Row, operand: Operand, value: Value, size: int) -> Fragment:
    what = f"{row.text}: operand {operand.name}"
    assert operand.dtype is not None
    if isinstance(value, TensorValue) and isinstance(value.base, Registers):
        count = prod(static_int(extent, "an extent") for extent in value.shape)
        if (
            value.base.word.bits == operand.dtype.bits == value.dtype.bits
            and count == operand.registers
            and value.layout is not None
        ):
            places = value.layout.enumerate().get("m")
            start = static_int(value.offset, "an offset")
            if places is not None and not any(axis.kind == "thread" for axis in value.layout.axes):
                return Fragment((tuple(Slot(value.base, start + int(place)) for place in places),))
    raise TraceError(
        f"{what}: expected a local tensor of {operand.registers} registers of {operand.dtype.bits} bits but got "
        f"{arithmetic.describe(value)}"
    )


RAW: dict[Kind, Callable[[Tracer, Row, Operand, Value, int], OperandValue]] = {
    Kind.SCALAR: _raw_scalar,
    Kind.ADDRESS: _raw_address,
    Kind.BARRIER: _raw_address,
    Kind.FRAGMENT: _raw_fragment,
}
