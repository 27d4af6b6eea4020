"""`T.asm`: inline PTX for what has no row. Its operands become those of a row that is made here for one use.

Each register has a number in the text: results first, then what is updated, then what is read. A scalar or pointer is
one register, a local tensor as many as it has, a window of memory is the register that holds its address. What the row
is made of, and the text itself, is in `isa.inline_asm`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from warpjit.errors import InstructionError, TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import address, static_int
from warpjit.frontend.calls import INTRINSICS
from warpjit.frontend.chunks import check_contiguous
from warpjit.frontend.closure import Closure
from warpjit.frontend.language.types import ScalarType, as_dtype
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Pointer, Scalar, TensorValue, Value, is_number
from warpjit.frontend.views import reinterpret
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType, mbarrier
from warpjit.ir.facts import Uniformity
from warpjit.ir.nodes import Fragment, OperandValue, Registers, Slot
from warpjit.isa.inline_asm import Effects, asm_row, registers, shown
from warpjit.isa.row import Kind, Mode, Operand, Participants
from warpjit.isa.scalar_text import STORED, result, value

SCOPES = {
    "thread": Participants.THREAD,
    "warp": Participants.WARP,
    "warpgroup": Participants.WARPGROUP,
    "cta": Participants.CTA,
}


@dataclass
class _Use:
    """One `T.asm` under construction: the row's operands, what the operation gives for them, and new scalars."""

    tracer: Tracer
    what: str
    operands: list[Operand] = field(default_factory=list)
    values: list[OperandValue] = field(default_factory=list)
    results: list[Scalar] = field(default_factory=list)
    number: int = 0
    opaque: str = ""  # the first pointer, of which nobody says how many bytes are accessed

    def add(self, operand: Operand, given: OperandValue) -> None:
        self.operands.append(operand)
        self.values.append(given)
        self.number += max(operand.registers, 1)

    @property
    def name(self) -> str:
        """Of the next operand: its first number."""
        return f"operand{self.number}"

    def refused(self, sentence: str) -> TraceError:
        return TraceError(f"{self.what}: {sentence}")


def asm(
    tracer: Tracer,
    text: Value,
    outs: Value = (),
    ins: Value = (),
    *,
    updates: Value = (),
    volatile: Value = False,
    memory: Value = None,
    scope: Value = "thread",
    meaning: Value = None,
) -> Value:
    tracer.require_device("T.asm")
    if not isinstance(text, str):
        raise TraceError(f"T.asm: text: expected a string but got {arithmetic.describe(text)}")
    use = _Use(tracer, shown(text))
    for item in _items(outs):
        _out(use, item)
    for item in _items(updates):
        _window(use, item, Mode.UPDATE, "updates")
    for item in _items(ins):
        _in(use, item)
    touches = any(each.kind in (Kind.ADDRESS, Kind.BARRIER) for each in use.operands)
    effects = Effects(
        _flag(use, "volatile", volatile),
        touches if memory is None else _flag(use, "memory", memory),
        _participants(use, scope),
    )
    try:
        row = asm_row(text, tuple(use.operands), effects, _meaning(use, meaning))
    except InstructionError as error:
        raise TraceError(f"T.asm: text: {error}") from None
    tracer.builder.issue(row, tuple(use.values))
    return None if not use.results else use.results[0] if len(use.results) == 1 else tuple(use.results)


def _items(given: Value) -> tuple[Value, ...]:
    return tuple(given) if isinstance(given, tuple | list) else (given,)


def _flag(use: _Use, name: str, given: Value) -> bool:
    if not isinstance(given, bool):
        raise use.refused(f"{name}: expected True or False but got {arithmetic.describe(given)}")
    return given


def _participants(use: _Use, scope: Value) -> Participants:
    found = SCOPES.get(scope) if isinstance(scope, str) else None
    if found is None:
        legal = ", ".join(f'"{name}"' for name in SCOPES)
        raise use.refused(f"scope: expected one of {legal} but got {arithmetic.describe(scope)}")
    return found


# ---- operands -------------------------------------------------------------------------------------------


def _out(use: _Use, item: Value) -> None:
    """A data type, whose value is returned, or a window that is written."""
    if isinstance(item, TensorValue):
        _window(use, item, Mode.WRITE, "outs")
        return
    if isinstance(item, Scalar | Pointer) or is_number(item):
        raise use.refused(
            f"outs: expected a data type, or a window that is written, but got {arithmetic.describe(item)}"
        )
    dtype = as_dtype(item)
    _check_stored(use, "outs", dtype)
    local = use.tracer.builder.local("r", dtype, fact.of_type(dtype, Uniformity.LANE))
    use.add(result(use.name, dtype), local)
    use.results.append(use.tracer.builder.scalar_of(local))


def _check_stored(use: _Use, where: str, dtype: DType) -> None:
    if dtype not in STORED:
        raise use.refused(f"{where}: expected a data type of 8 to 64 bits but got {dtype}")


def _in(use: _Use, item: Value) -> None:
    if isinstance(item, TensorValue):
        _window(use, item, Mode.READ, "ins")
    elif isinstance(item, Pointer):
        use.opaque = use.opaque or f"%{use.number}"
        space = item.tensor.space
        use.add(Operand(use.name, Kind.ADDRESS, dtype=item.tensor.dtype, space=space, bytes=1), item.address)
    elif isinstance(item, Scalar) or is_number(item):
        scalar = use.tracer.scalar(item)
        use.add(value(use.name, scalar.dtype), use.tracer.builder.atom(scalar))
    else:
        hint = ": as a result, a data type stands in outs" if isinstance(item, ScalarType | DType | str) else ""
        raise use.refused(f"ins: expected a number, a pointer or a window but got {arithmetic.describe(item)}{hint}")


def _window(use: _Use, item: Value, mode: Mode, where: str) -> None:
    if not isinstance(item, TensorValue):
        raise use.refused(f"{where}: expected a local tensor or a window but got {arithmetic.describe(item)}")
    if isinstance(item.base, Registers):
        _registers(use, item, mode, where)
    else:
        _memory(use, item, mode, where)


def _registers(use: _Use, tensor: TensorValue, mode: Mode, where: str) -> None:
    """Whole registers of this lane; narrow elements in the words that pack them."""
    assert isinstance(tensor.base, Registers) and tensor.layout is not None
    if any(axis.kind == "thread" for axis in tensor.layout.axes):
        raise use.refused(
            f"{where}: {tensor.name} is spread over lanes: give {tensor.name}.regs, this lane's registers"
        )
    word = tensor.base.word
    whole = tensor if tensor.dtype.bits == word.bits else reinterpret(use.tracer.builder, tensor, word)
    assert whole.layout is not None
    places = whole.layout.enumerate().get("m")
    start = static_int(whole.offset, "an offset")
    slots = (
        (Slot(tensor.base, start),)
        if places is None
        else tuple(Slot(tensor.base, start + int(place)) for place in places.ravel())
    )
    use.add(registers(use.name, mode, whole.dtype, len(slots)), Fragment((slots,)))


def _memory(use: _Use, tensor: TensorValue, mode: Mode, where: str) -> None:
    """The address of a contiguous window: the text reads or writes its bytes and no others."""
    what = f"{use.what}: {where}"
    if tensor.dtype is mbarrier:
        raise use.refused(f"{where}: {tensor.name} holds mbarriers: give a pointer, {tensor.name}.ptr(i)")
    if tensor.space == "constant":
        raise use.refused(f"{where}: expected a global or shared window, but {tensor.name} is a table of constants")
    _check_stored(use, where, tensor.dtype)
    shape = tuple(static_int(extent, f"{what}: an extent of {tensor.name}") for extent in tensor.shape)
    if prod(shape[:-1]) != 1:
        raise use.refused(f"{where}: expected a window of one axis but got {tensor.name} of shape {shape}")
    count = prod(shape)
    if shape:
        check_contiguous(what, tensor, shape, count)
    place = address(use.tracer.builder, tensor, (0,) * len(shape))
    bytes_ = count * tensor.dtype.bytes
    use.add(Operand(use.name, Kind.ADDRESS, mode, dtype=tensor.dtype, space=tensor.space, bytes=bytes_), place)


# ---- the meaning ----------------------------------------------------------------------------------------


def _meaning(use: _Use, meaning: Value) -> Callable[..., Any] | None:
    if meaning is None:
        return None
    if isinstance(meaning, Closure):
        raise use.refused(
            f"meaning: expected a Python function defined outside of the kernel but got {meaning.name}, which is "
            "traced with it"
        )
    if not callable(meaning):
        raise use.refused(f"meaning: expected a Python function but got {arithmetic.describe(meaning)}")
    if use.opaque:
        raise use.refused(
            f"meaning: expected a window, A[i : i + 4], for {use.opaque} but got a pointer: how many bytes the text "
            "accesses is not known"
        )
    if any(each.kind is Kind.ADDRESS and each.mode is Mode.UPDATE for each in use.operands):
        raise use.refused("updates: expected local tensors: memory that is updated has no meaning of its own")
    return meaning  # type: ignore[no-any-return]


INTRINSICS["T.asm"] = asm
