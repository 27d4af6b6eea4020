"""Local tensors come into being: registers for what a layout gives each lane."""

from __future__ import annotations

from warpjit.errors import TraceError
from warpjit.frontend.builder import Builder
from warpjit.frontend.values import TensorValue
from warpjit.ir import dtypes
from warpjit.ir.dtypes import DType
from warpjit.ir.nodes import Allocate, Registers
from warpjit.isa.target import MAX_REGISTERS
from warpjit.layout import ComposeLayout, TileLayout


def registers_tensor(
    builder: Builder, shape: tuple[int, ...], element: DType, layout: TileLayout | ComposeLayout, hint: str
) -> TensorValue:
    """A local tensor: as many registers as the layout's register axis spans."""
    word = element if element.bits >= 32 and not element.is_pair else dtypes.uint32
    count = -(-layout.span("m") * element.bits // word.bits)
    needed = count * word.bits // 32
    if needed > MAX_REGISTERS:
        raise TraceError(f"{hint}: expected at most {MAX_REGISTERS} registers of a thread but got {needed}")
    registers = Registers(builder.unique(hint), word, count)
    builder.emit(Allocate(registers, loc=builder.loc))
    return TensorValue(registers.name, element, shape, registers, layout, align=element.bytes, loc=builder.loc)
