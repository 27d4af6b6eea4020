"""Names of the language that stand for an instruction, and the fragments that an instruction takes."""

from __future__ import annotations

from collections.abc import Callable

from warpjit.errors import TraceError
from warpjit.frontend.addresses import static_int
from warpjit.frontend.calls import INTRINSICS
from warpjit.frontend.fragments import fill as fill_fragment
from warpjit.frontend.literals import describe
from warpjit.frontend.raw import raw
from warpjit.frontend.registers import registers_tensor
from warpjit.frontend.tiles import apply
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import TensorValue, Value
from warpjit.isa.operands import operand_layout, operand_shape
from warpjit.isa.row import Row
from warpjit.isa.table import lookup


def fragments(
    tracer: Tracer,
    instruction: Value,
    operand: Value,
    *,
    M: Value = 1,
    N: Value = 1,
    K: Value = 1,
    batch: Value = (),
    fill: Value = None,
) -> TensorValue:
    tracer.require_device("T.cuda.fragments")
    row = lookup(instruction) if isinstance(instruction, str) else instruction
    if not isinstance(row, Row):
        raise TraceError(f'T.cuda.fragments: expected an instruction, T.ptx["..."], but got {describe(instruction)}')
    if not isinstance(batch, tuple | list):
        raise TraceError(f"T.cuda.fragments: expected batch to be a tuple but got {describe(batch)}")
    sizes = tuple(static_int(extent, "an extent of batch") for extent in batch)
    m, n, k = (static_int(value, name) for name, value in (("M", M), ("N", N), ("K", K)))
    shape = operand_shape(row, operand, M=m, N=n, K=k, batch=sizes)
    layout = operand_layout(row, operand, M=m, N=n, K=k, batch=sizes)
    dtype = row.operand(operand).dtype
    assert dtype is not None
    tensor = registers_tensor(tracer.builder, shape, dtype, layout, tracer.hint or operand)
    if fill is not None:
        fill_fragment(tracer.builder, tensor, fill)
    return tensor


def has(tracer: Tracer, instruction: Value) -> bool:
    row = lookup(instruction) if isinstance(instruction, str) else instruction
    if not isinstance(row, Row):
        raise TraceError(f'T.cuda.has: expected an instruction, T.ptx["..."], but got {describe(instruction)}')
    return row.needs.holds(tracer.settings.target)


def _named(text: str, *fixed: int) -> Callable[..., Value]:
    """A name of `T.cuda` that is one instruction with these first operands."""

    def run(tracer: Tracer, *args: Value) -> Value:
        return raw(tracer, lookup(text), [*fixed, *args], {})

    return run


ALL_LANES = 0xFFFFFFFF

INTRINSICS.update(
    {
        "raw instruction": raw,
        "T.cuda.tile.apply": apply,
        "T.cuda.fragments": fragments,
        "T.cuda.has": has,
        "T.cuda.cta_sync": _named("bar.sync", 0),
        "T.cuda.warp_sync": _named("bar.warp.sync", ALL_LANES),
        "T.cuda.mbarrier_wait": _named("mbarrier_wait"),
        "T.cuda.elect_sync": _named("elect.sync", ALL_LANES),
    }
)
