"""Names of the language that stand for an instruction, and the fragments that an instruction takes."""

from __future__ import annotations

from collections.abc import Callable

from warpjit.errors import TraceError
from warpjit.frontend.addresses import static_int
from warpjit.frontend.calls import CALLS, INTRINSICS
from warpjit.frontend.conversions import convert_operand
from warpjit.frontend.fragments import fill as fill_fragment
from warpjit.frontend.language.types import as_dtype
from warpjit.frontend.literals import describe
from warpjit.frontend.lookup import instruction_row
from warpjit.frontend.packed import register_of
from warpjit.frontend.raw import raw
from warpjit.frontend.registers import registers_tensor
from warpjit.frontend.tiles import apply
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, TensorValue, Value, is_number
from warpjit.frontend.views import reinterpret
from warpjit.ir.dtypes import DType, uint32
from warpjit.isa.operands import accepts, fragment_operand, operand_layout, operand_shape
from warpjit.isa.row import Operand, Row
from warpjit.isa.table import lookup
from warpjit.isa.warp import ALL_LANES


def fragments(
    tracer: Tracer,
    instruction: Value,
    operand: Value,
    *,
    M: Value = 1,
    N: Value = 1,
    K: Value = 1,
    batch: Value = (),
    dtype: Value = None,
    fill: Value = None,
) -> TensorValue:
    tracer.require_device("T.cuda.fragments")
    row = instruction_row("T.cuda.fragments", instruction)
    if not isinstance(batch, tuple | list):
        raise TraceError(f"T.cuda.fragments: expected batch to be a tuple but got {describe(batch)}")
    sizes = tuple(static_int(extent, "an extent of batch") for extent in batch)
    m, n, k = (static_int(value, name) for name, value in (("M", M), ("N", N), ("K", K)))
    wanted = fragment_operand(row, operand)
    of = _type_of(row, wanted, dtype)
    element = wanted.dtype is not None and of.bits < wanted.dtype.bits
    shape = operand_shape(row, operand, M=m, N=n, K=k, batch=sizes, element=element)
    layout = operand_layout(row, operand, M=m, N=n, K=k, batch=sizes, element=element)
    tensor = registers_tensor(tracer.builder, shape, of, layout, tracer.hint or operand)
    if not element and dtype in (None, "element") and of == uint32:
        tensor = tensor.with_(words=wanted)
    if fill is not None:
        _fill(tracer, tensor, wanted, fill)
    return tensor


def _fill(tracer: Tracer, tensor: TensorValue, operand: Operand, fill: Value) -> None:
    """Every element becomes `fill`: of the operand's type, or, in registers of a type that was asked for, of that."""
    if not isinstance(fill, Scalar) and not is_number(fill):
        raise TraceError(f"T.cuda.fragments: expected fill to be a number but got {describe(fill)}")
    assert operand.dtype is not None
    if operand.element is None or tensor.dtype not in (operand.dtype, operand.element):
        fill_fragment(tracer.builder, tensor, fill)
        return
    words = reinterpret(tracer.builder, tensor, operand.dtype)
    fill_fragment(tracer.builder, words, register_of(tracer.builder, operand, fill))


def _type_of(row: Row, operand: Operand, dtype: Value) -> DType:
    """The type of a fragment's elements: the operand's registers, or what is asked for and fits."""
    assert operand.dtype is not None
    packed = operand.packed > 1 and operand.element is not None
    if dtype is None or (dtype == "element" and not packed):
        return operand.dtype
    if dtype == "element":
        assert operand.element is not None
        return operand.element
    of = as_dtype(dtype)
    if not accepts(operand, of):
        packing = f', or "element" ({operand.element})' if packed else ""
        raise TraceError(
            f"T.cuda.fragments: dtype: expected a type of {operand.dtype.bits} bits{packing} for operand "
            f"{operand.name} of {row.text}, but got {of}"
        )
    return of


def convert(tracer: Tracer, fragment: Value, instruction: Value, operand: Value) -> TensorValue:
    tracer.require_device("T.cuda.convert")
    if not isinstance(fragment, TensorValue):
        raise TraceError(f"T.cuda.convert: expected a fragment but got {describe(fragment)}")
    return convert_operand(tracer.builder, fragment, instruction, operand)


def has(tracer: Tracer, instruction: Value) -> bool:
    return instruction_row("T.cuda.has", instruction).needs.holds(tracer.settings.target)


def _named(text: str, *fixed: int) -> Callable[..., Value]:
    """A name of `T.cuda` that is one instruction with these first operands."""

    def run(tracer: Tracer, *args: Value) -> Value:
        return raw(tracer, lookup(text), [*fixed, *args], {})

    return run


def fence(tracer: Tracer, scope: Value = "cta", *, sc: Value = False) -> None:
    if scope not in FENCE_SCOPES:
        legal = ", ".join(f'"{each}"' for each in FENCE_SCOPES)
        raise TraceError(f"T.cuda.fence: scope: expected one of {legal} but got {describe(scope)}")
    if not isinstance(sc, bool):
        raise TraceError(f"T.cuda.fence: sc: expected True or False but got {describe(sc)}")
    raw(tracer, lookup(f"fence.{'sc' if sc else 'acq_rel'}.{scope}"), [], {})


FENCE_SCOPES = ("cta", "cluster", "gpu", "sys")

CALLS[Row] = raw
INTRINSICS.update(
    {
        "T.cuda.tile.apply": apply,
        "T.cuda.fragments": fragments,
        "T.cuda.convert": convert,
        "T.cuda.has": has,
        "T.cuda.cta_sync": _named("bar.sync", 0),
        "T.cuda.named_barrier_sync": _named("bar.sync"),
        "T.cuda.named_barrier_arrive": _named("bar.arrive"),
        "T.cuda.fence": fence,
        "T.cuda.warp_sync": _named("bar.warp.sync", ALL_LANES),
        "T.cuda.mbarrier_wait": _named("mbarrier_wait"),
        "T.cuda.elect_sync": _named("elect.sync", ALL_LANES),
    }
)
