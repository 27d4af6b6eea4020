"""`t.convert(layout)` and `T.cuda.convert(fragment, instruction, operand)`: a fragment moved to another layout.

The plan is `warpjit.isa`'s (`conversion`); here it becomes moves of registers, shifts and masks of their parts,
`movmatrix` and shuffles. What needs shared memory is `exchange`'s: where it lies is the kernel's to say.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from warpjit.errors import InstructionError, TraceError
from warpjit.frontend import arithmetic, exchange, memory
from warpjit.frontend.addresses import Symbol
from warpjit.frontend.builder import Builder
from warpjit.frontend.fragments import WARPS, in_registers, lane, operand_view, placed_layout, prove_view, sizes
from warpjit.frontend.registers import registers_tensor
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.nodes import Const, Fragment, Registers
from warpjit.isa.conversion import Conversion, Exchange, MoveMatrix, Rename, Repack, Shuffle, ThroughMemory
from warpjit.isa.conversion import convert as plan
from warpjit.isa.operands import operand_layout
from warpjit.isa.table import lookup
from warpjit.isa.warp import ALL_LANES, SHUFFLE, shuffle_control
from warpjit.layout import S, TileLayout
from warpjit.layout.axis import LANES
from warpjit.layout.recovery import Recovered, recover
from warpjit.record import record

WORD = 32
MOVE_MATRIX = "movmatrix.sync.aligned.m8n8.trans.b16"


def convert(builder: Builder, tensor: TensorValue, layout: Value, scratch: Value = None) -> TensorValue:
    """`t.convert(layout)`: the same elements where `layout` has them; the same registers where they are there."""
    in_registers(tensor, "convert", WARPS)
    if not isinstance(layout, TileLayout):
        raise TraceError(f"convert: expected a layout of lanes and registers but got {arithmetic.describe(layout)}")
    if layout.size() != prod(sizes(tensor)):
        raise TraceError(
            f"convert: expected a layout of {prod(sizes(tensor))} elements, as {tensor.name} of shape {sizes(tensor)}, "
            f"but got {layout!r} of {layout.size()}"
        )
    return _converted(builder, tensor, layout, scratch)


def convert_operand(builder: Builder, tensor: TensorValue, instruction: Value, operand: Value) -> TensorValue:
    """`T.cuda.convert(fragment, instruction, "A")`: under the operand's axes; moved only where that is needed."""
    cut = operand_view(builder, tensor, instruction, operand, "T.cuda.convert")
    try:
        prove_view(cut)
        return cut.view
    except InstructionError:
        M, N, K = (cut.counts.get(name, 1) for name in "MNK")
        layout = operand_layout(cut.row, operand, M=M, N=N, K=K, element=cut.element)
        return _converted(builder, cut.view, layout)


def _converted(builder: Builder, tensor: TensorValue, layout: TileLayout, scratch: Value = None) -> TensorValue:
    conversion = plan(placed_layout(tensor), layout, tensor.dtype)
    if isinstance(conversion.step, ThroughMemory):
        if scratch is None:
            raise TraceError(f"convert: {tensor.name}: {conversion.sentence}: give a shared tensor as scratch")
        return exchange.through(builder, tensor, layout, scratch)
    if conversion.step is None:
        return tensor.with_(layout=layout, offset=0)
    result = registers_tensor(builder, sizes(tensor), tensor.dtype, layout, tensor.name).with_(words=tensor.words)
    move = _Move(builder, _words(tensor), _words(result))
    _MOVES[type(conversion.step)](move, conversion)
    return result


def _words(tensor: TensorValue) -> TensorValue:
    """All registers under a tensor, as 32-bit words."""
    assert isinstance(tensor.base, Registers)
    count = tensor.base.count * tensor.base.word.bits // WORD
    return tensor.with_(dtype=dtypes.uint32, shape=(count,), layout=TileLayout(S[count]), offset=0)


@record
class _Move:
    """Words of the source and of the target while a plan is applied."""

    builder: Builder
    source: TensorValue
    target: TensorValue

    def read(self, register: int) -> Scalar:
        return memory.load(self.builder, self.source, (register,))

    def write(self, register: int, value: Scalar) -> None:
        memory.store(self.builder, self.target, (register,), value)

    def binary(self, operation: str, a: Any, b: Any) -> Scalar:
        return arithmetic.binary(self.builder, operation, a, b)

    def assembled(self, parts: list[tuple[Scalar, int]], bits: int) -> Scalar:
        """A word of parts (word, part), low bits first."""
        if all(word is parts[0][0] and part == k for k, (word, part) in enumerate(parts)):
            return parts[0][0]
        total: Scalar | None = None
        for k, (word, part) in enumerate(parts):
            piece = self.binary("shr", word, bits * part) if part else word
            piece = self.binary("and", piece, (1 << bits) - 1)
            piece = self.binary("shl", piece, bits * k) if k else piece
            total = piece if total is None else self.binary("or", total, piece)
        assert total is not None
        return total


def _rename(move: _Move, conversion: Conversion) -> None:
    step = conversion.step
    assert isinstance(step, Rename)
    for register, source in enumerate(step.registers):
        move.write(register, move.read(source))


def _repack(move: _Move, conversion: Conversion) -> None:
    step = conversion.step
    assert isinstance(step, Repack)
    read = {register: move.read(register) for register in sorted({each for word in step.words for each, _ in word})}
    for register, word in enumerate(step.words):
        move.write(register, move.assembled([(read[each], part) for each, part in word], conversion.dtype.bits))


def _move_matrix(move: _Move, conversion: Conversion) -> None:
    step = conversion.step
    assert isinstance(step, MoveMatrix)
    builder = move.builder
    for register, each in enumerate(step.registers):
        turned = builder.local("turned", dtypes.uint32, fact.of_type(dtypes.uint32))
        operands = (Fragment(((turned,),)), Fragment(((builder.atom(move.read(each)),),)))
        builder.issue(lookup(MOVE_MATRIX), operands, scope="warp")
        move.write(register, builder.scalar_of(turned))


def _exchange(move: _Move, conversion: Conversion) -> None:
    step = conversion.step
    assert isinstance(step, Exchange)
    here = lane(move.builder)
    lanes = {shuffle.lanes: _lane_of(move, here, shuffle.lanes) for shuffle in step.shuffles}
    read = [_shuffled(move, shuffle, lanes[shuffle.lanes]) for shuffle in step.shuffles]
    for register, word in enumerate(step.words):
        kinds = list(dict.fromkeys(word))
        value: Scalar | None = None
        for kind in kinds:
            made = move.assembled([(read[index], part) for index, part in kind], conversion.dtype.bits)
            chosen = sum(1 << lane for lane, each in enumerate(word) if each == kind)
            value = made if value is None else _where(move, here, chosen, made, value)
        assert value is not None
        move.write(register, value)


def _where(move: _Move, here: Scalar, lanes: int, chosen: Scalar, other: Scalar) -> Scalar:
    """`chosen` in the lanes whose bit is set."""
    unsigned = arithmetic.convert(move.builder, here, dtypes.uint32)
    mask = arithmetic.literal(move.builder, lanes, dtypes.uint32)
    bit = move.binary("and", move.binary("shr", mask, unsigned), 1)
    return arithmetic.select(move.builder, arithmetic.compare(move.builder, "ne", bit, 0), chosen, other)


def _lane_of(move: _Move, here: Scalar, lanes: tuple[int, ...]) -> Scalar:
    """The lane that each lane reads, computed from its own."""
    found = recover({"m": np.asarray(lanes)})
    if not isinstance(found, Recovered):
        return _looked_up(move, here, lanes)
    layout = TileLayout.from_iters(found.iters, offset=dict(found.origin))
    source = layout.apply(Symbol(move.builder, here)).get("m", 0)
    if isinstance(source, Symbol):
        return source.scalar
    return arithmetic.literal(move.builder, source, dtypes.int32)


def _looked_up(move: _Move, here: Scalar, lanes: tuple[int, ...]) -> Scalar:
    """Any map of lanes: each bit of the result is that of this lane in a constant."""
    unsigned = arithmetic.convert(move.builder, here, dtypes.uint32)
    total: Scalar | None = None
    for bit in range(LANES.bit_length() - 1):
        column = sum((lane >> bit & 1) << index for index, lane in enumerate(lanes))
        mask = arithmetic.literal(move.builder, column, dtypes.uint32)
        one = move.binary("and", move.binary("shr", mask, unsigned), 1)
        piece = move.binary("shl", one, bit) if bit else one
        total = piece if total is None else move.binary("or", total, piece)
    assert total is not None
    return arithmetic.convert(move.builder, total, dtypes.int32)


def _shuffled(move: _Move, shuffle: Shuffle, source: Scalar) -> Scalar:
    builder = move.builder
    local = builder.local("shuffled", dtypes.uint32, fact.of_type(dtypes.uint32))
    value = builder.atom(move.read(shuffle.register))
    constants = (Const(shuffle_control("idx", LANES), dtypes.uint32), Const(ALL_LANES, dtypes.uint32))
    builder.issue(SHUFFLE["idx"], (local, value, builder.atom(source), *constants), scope="warp")
    return builder.scalar_of(local)


_MOVES: dict[type, Callable[[_Move, Conversion], None]] = {
    Rename: _rename,
    Repack: _repack,
    MoveMatrix: _move_matrix,
    Exchange: _exchange,
}
