"""Atomic operations on elements of tensors: `T.atomic_add(t, (i, j), x)`, `T.red_add(...)` and the rest.

Each is one row of `isa.atomics`. Operations that only look at bits take any type of their width, through a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory
from warpjit.frontend.addresses import address, static_int
from warpjit.frontend.calls import INTRINSICS
from warpjit.frontend.chunks import check_aligned, check_contiguous
from warpjit.frontend.literals import describe
from warpjit.frontend.slices import subtensor
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, TensorValue, Value, is_number
from warpjit.ir import facts as fact
from warpjit.ir.nodes import Atom
from warpjit.isa.atomics import ATOM, RED, RED_VECTOR, REGISTERS, VECTORS, Form, VectorForm

_MIN_MAX = {"int32": "s32", "uint32": "u32", "int64": "s64", "uint64": "u64"}
_LOGIC = {"int32": "b32", "uint32": "b32", "int64": "b64", "uint64": "b64"}
_BITS = {**_LOGIC, "float32": "b32", "float64": "b64"}
_SHORT = {"int16": "b16", "uint16": "b16", "float16": "b16", "bfloat16": "b16"}

TYPES: Mapping[str, Mapping[str, str]] = {
    # Sums of signed and unsigned words have the same bits.
    "add": {
        **{"int32": "s32", "uint32": "u32", "int64": "u64", "uint64": "u64"},
        **{"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"},
        **{"float16x2": "f16x2", "bfloat16x2": "bf16x2"},
    },
    "min": _MIN_MAX,
    "max": _MIN_MAX,
    "and": _LOGIC,
    "or": _LOGIC,
    "xor": _LOGIC,
    "exch": _BITS,
    "cas": {**_BITS, **_SHORT},
}
"""PTX's type for an operation on elements of each type."""

SCOPES = {"cta": ".relaxed.cta", "gpu": "", "sys": ".relaxed.sys"}
NAMES = {"exch": "exchange"}


def _element(what: str, operation: str, tensor: Value) -> TensorValue:
    if not isinstance(tensor, TensorValue) or tensor.space not in ("global", "shared"):
        raise TraceError(f"{what}: expected a tensor in global or shared memory but got {_place(tensor)}")
    types = list(TYPES[operation])
    if tensor.dtype.name not in types:
        listed = f"{', '.join(types[:-1])} or {types[-1]}"
        raise TraceError(f"{what}: expected a tensor of {listed}, but {tensor.name} holds {tensor.dtype}")
    return tensor


def _place(value: Value) -> str:
    if isinstance(value, TensorValue):
        return f"{value.name}, which is in registers"
    return describe(value)


def _scope(what: str, tensor: TensorValue, scope: Value) -> str:
    if not isinstance(scope, str) or scope not in SCOPES:
        raise TraceError(f'{what}: expected scope to be "cta", "gpu" or "sys" but got {describe(scope)}')
    return SCOPES[scope] if tensor.space == "global" else ""


def _operand(tracer: Tracer, what: str, tensor: TensorValue, value: Value, ptx: str) -> Atom:
    """The value as an element, in the register that the instruction takes."""
    if not isinstance(value, Scalar) and not is_number(value):
        raise TraceError(f"{what}: expected a number but got {describe(value)}")
    builder = tracer.builder
    element = arithmetic.typed(builder, value, tensor.dtype)
    return builder.atom(memory.bitcast(builder, element, REGISTERS[ptx]))


def _issue(tracer: Tracer, what: str, form: Form, place: tuple[TensorValue, Value], values: tuple[Value, ...]) -> None:
    tensor, index = place
    coordinates = memory.indices(tensor, index if isinstance(index, tuple) else (index,))
    operands = tuple(_operand(tracer, what, tensor, value, form.ptx) for value in values)
    tracer.builder.issue(RED[form], (address(tracer.builder, tensor, coordinates), *operands))


def _issue_vector(tracer: Tracer, what: str, scope: str, place: tuple[TensorValue, Value], values: TensorValue) -> None:
    """The elements of a local tensor to as many neighbours, two or four words an instruction."""
    builder, (tensor, index) = tracer.builder, place
    ptx = TYPES["add"][tensor.dtype.name]
    if tensor.space != "global" or ptx not in VECTORS:
        raise TraceError(
            f"{what}: value: expected a number, since only float32 and pairs in global memory take several at once, "
            f"but got {values.name} for {tensor.name}, {tensor.space} memory of {tensor.dtype}"
        )
    sizes = tuple(static_int(extent, f"{what}: an extent of {values.name}") for extent in values.shape)
    if values.dtype != tensor.dtype or len(sizes) != 1 or sizes[0] % 2:
        raise TraceError(
            f"{what}: value: expected a local tensor of {tensor.dtype} with one axis of an even number of elements but "
            f"got {values.name} of {values.dtype}, shape {sizes}"
        )
    *outer, first = memory.indices(tensor, index if isinstance(index, tuple) else (index,))
    last = first + sizes[0] if isinstance(first, int) else arithmetic.binary(builder, "add", first, sizes[0])
    window = subtensor(builder, tensor, (*outer, slice(first, last)))
    count = next(each for each in reversed(VECTORS[ptx]) if sizes[0] % each == 0)
    check_contiguous(what, window, sizes, count)
    check_aligned(what, builder, window, sizes, count, count * tensor.dtype.bytes)
    row = RED_VECTOR[VectorForm(scope, ptx, count)]
    for start in range(0, sizes[0], count):
        parts = [memory.load(builder, values, (start + part,)) for part in range(count)]
        operands = tuple(builder.atom(memory.bitcast(builder, part, REGISTERS[ptx])) for part in parts)
        builder.issue(row, (address(builder, window, (start,)), *operands))


def _fetch(
    tracer: Tracer, what: str, form: Form, place: tuple[TensorValue, Value], values: tuple[Value, ...]
) -> Scalar:
    builder, (tensor, index) = tracer.builder, place
    coordinates = memory.indices(tensor, index if isinstance(index, tuple) else (index,))
    operands = tuple(_operand(tracer, what, tensor, value, form.ptx) for value in values)
    dtype = REGISTERS[form.ptx]
    old = builder.local("old", dtype, fact.of_type(dtype))
    builder.issue(ATOM[form], (old, address(builder, tensor, coordinates), *operands))
    return memory.bitcast(builder, builder.scalar_of(old), tensor.dtype)


def _handler(prefix: str, operation: str) -> Callable[..., Scalar | None]:
    what = f"T.{prefix}_{NAMES.get(operation, operation)}"

    def run(tracer: Tracer, tensor: Value, index: Value, *values: Value, scope: Value = "gpu") -> Scalar | None:
        tracer.require_device(what)
        element = _element(what, operation, tensor)
        if what == "T.red_add" and isinstance(values[0], TensorValue) and values[0].space == "local":
            _issue_vector(tracer, what, _scope(what, element, scope), (element, index), values[0])
            return None
        form = Form(element.space, _scope(what, element, scope), operation, TYPES[operation][element.dtype.name])
        if prefix == "red":
            _issue(tracer, what, form, (element, index), values)
            return None
        return _fetch(tracer, what, form, (element, index), values)

    return run


INTRINSICS.update(
    {
        **{f"T.atomic_{NAMES.get(operation, operation)}": _handler("atomic", operation) for operation in TYPES},
        **{f"T.red_{operation}": _handler("red", operation) for operation in TYPES if operation not in ("exch", "cas")},
    }
)
