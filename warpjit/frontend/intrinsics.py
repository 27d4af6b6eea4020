"""What the names directly under `T`, and the who-am-I names under `T.cuda`, do while tracing.

Names that stand for an instruction are in `instructions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory
from warpjit.frontend.addresses import placing, static_int
from warpjit.frontend.calls import BUILTINS, INTRINSICS, convert
from warpjit.frontend.language.cuda import KernelAttributes, LaunchConfig
from warpjit.frontend.language.types import as_dtype
from warpjit.frontend.loops import Unrolled
from warpjit.frontend.ranges import Range, runtime_range
from warpjit.frontend.registers import registers_tensor
from warpjit.frontend.rounding import cast as rounding_cast
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Linear, Scalar, TensorValue, Value, is_number
from warpjit.ir import dtypes
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Assume, Launch, SharedBuffer
from warpjit.isa.target import MAX_BLOCK, MAX_GRID, MAX_REGISTERS, MAX_THREADS, MIN_REGISTERS
from warpjit.layout import ComposeLayout
from warpjit.layout.axis import LANES

MAX_BLOCKS = 32
"""CTAs that a multiprocessor holds at most (CUDA C++ Programming Guide, "Compute Capabilities")."""
MAX_COPIES = 64
"""How often a body may stand in a loop over `T.range(..., unroll=)`."""


# ---- entry --------------------------------------------------------------------------------------------------


def _extents(value: Value, what: str, item: Callable[[Value], Any]) -> tuple[Any, Any, Any]:
    parts = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(parts) <= 3:
        raise TraceError(f"{what}: expected one to three sizes but got {len(parts)}")
    x, y, z = [*(item(part) for part in parts), 1, 1][:3]
    return x, y, z


def _positive(what: str) -> Callable[[Value], int]:
    def check(value: Value) -> int:
        if isinstance(value, Scalar | bool | float):
            raise TraceError(f"{what}: expected ints that are known while tracing but got {arithmetic.describe(value)}")
        size = static_int(value, what)
        if size < 1:
            raise TraceError(f"{what}: expected positive sizes but got {size}")
        return size

    return check


def _grid(tracer: Tracer) -> Callable[[Value], Any]:
    def check(value: Value) -> Any:
        if isinstance(value, bool | float) or (isinstance(value, Scalar) and not value.dtype.is_int):
            raise TraceError(f"grid: expected integers but got {arithmetic.describe(value)}")
        if isinstance(value, int) and value < 0:
            raise TraceError(f"grid: expected sizes of 0 or more but got {value}")
        return tracer.plan(value)

    return check


def device_entry(tracer: Tracer, *, launch: Value, attributes: Value = None) -> None:
    try:
        _enter(tracer, launch, attributes)
    except TraceError:
        tracer.terminated = True  # of what follows, nothing could be traced
        raise


def _enter(tracer: Tracer, launch: Value, attributes: Value) -> None:
    if tracer.launch is not None:
        raise TraceError("T.device_entry: expected one call but got a second")
    if tracer.scope.inlined or tracer.loop_frames:
        raise TraceError("T.device_entry: expected a call in the kernel itself, outside of loops and helpers")
    if not isinstance(launch, LaunchConfig):
        raise TraceError(
            f"T.device_entry: launch: expected T.cuda.LaunchConfig(...) but got {arithmetic.describe(launch)}"
        )
    block = _extents(launch.block, "block", _positive("block"))
    if block[0] * block[1] * block[2] > MAX_THREADS:
        raise TraceError(
            f"block: expected at most {MAX_THREADS} threads but got {block}, {block[0] * block[1] * block[2]} of them"
        )
    if any(size > most for size, most in zip(block, MAX_BLOCK, strict=True)):
        raise TraceError(f"block: expected at most {MAX_BLOCK} threads along x, y and z but got {block}")
    cluster = _extents(launch.cluster, "cluster", _positive("cluster"))
    grid = _extents(launch.grid, "grid", _grid(tracer))
    for size, part in zip(grid, cluster, strict=True):
        if isinstance(size, int) and size % part:
            raise TraceError(f"grid: expected a multiple of the cluster, {cluster}, but got {grid}")
    limits = _limits(attributes)
    tracer.launch = Launch(grid, block, cluster, limits.max_registers, limits.min_blocks_per_sm)
    tracer.builder.thread_params = tuple(zip(("ntid_x", "ntid_y", "ntid_z"), block, strict=True))
    tracer.builder.host = False


def _limits(given: Value) -> KernelAttributes:
    """What the compiler is told about registers."""
    if given is None:
        return KernelAttributes()
    if not isinstance(given, KernelAttributes):
        raise TraceError(
            f"T.device_entry: attributes: expected T.cuda.KernelAttributes(...) but got {arithmetic.describe(given)}"
        )
    if given.max_registers is not None and given.min_blocks_per_sm is not None:
        raise TraceError("attributes: expected max_registers or min_blocks_per_sm but got both")
    for name, low, high in (("max_registers", MIN_REGISTERS, MAX_REGISTERS), ("min_blocks_per_sm", 1, MAX_BLOCKS)):
        value = getattr(given, name)
        if value is not None and not (type(value) is int and low <= value <= high):
            raise TraceError(f"{name}: expected an int from {low} to {high} but got {arithmetic.describe(value)}")
    return given


# ---- who am I -------------------------------------------------------------------------------------------------


def _axis(axis: Value) -> int:
    if axis not in ("x", "y", "z"):
        raise TraceError(f'axis: expected "x", "y" or "z" but got {arithmetic.describe(axis)}')
    return "xyz".index(axis)


def _register(tracer: Tracer, register: str, hint: str, top: int | None, uniformity: Uniformity) -> Scalar:
    """A special register of range 0 to top."""
    if top == 0:
        return tracer.builder.integer(dtypes.int32, Linear())
    return tracer.builder.special(register, hint, Facts(0, top, 1, uniformity))


def _launch(tracer: Tracer, what: str) -> Launch:
    tracer.require_device(what)
    assert tracer.launch is not None
    return tracer.launch


def lane_id(tracer: Tracer) -> Scalar:
    tracer.require_device("T.cuda.lane_id")
    return _register(tracer, "laneid", "lane", LANES - 1, Uniformity.LANE)


def warp_id(tracer: Tracer) -> Scalar:
    warps = -(-_launch(tracer, "T.cuda.warp_id").threads // LANES)
    return _register(tracer, "warp", "warp", warps - 1, Uniformity.WARP)


def thread_idx(tracer: Tracer, axis: Value = "x") -> Scalar:
    extent = _launch(tracer, "T.cuda.thread_idx").block[_axis(axis)]
    return _register(tracer, f"tid.{axis}", f"thread_{axis}", extent - 1, Uniformity.LANE)


def block_idx(tracer: Tracer, axis: Value = "x") -> Scalar:
    size = _launch(tracer, "T.cuda.block_idx").grid[_axis(axis)]
    most = size if isinstance(size, int) else MAX_GRID[_axis(axis)]
    return _register(tracer, f"ctaid.{axis}", f"block_{axis}", max(most - 1, 0), Uniformity.CTA)


def block_dim(tracer: Tracer, axis: Value = "x") -> int:
    return _launch(tracer, "T.cuda.block_dim").block[_axis(axis)]


def grid_dim(tracer: Tracer, axis: Value = "x") -> Value:
    size = _launch(tracer, "T.cuda.grid_dim").grid[_axis(axis)]
    if isinstance(size, int):
        return size
    facts = Facts(1, MAX_GRID[_axis(axis)], 1, Uniformity.GRID)
    return tracer.builder.special(f"nctaid.{axis}", f"grid_{axis}", facts)


# ---- memory ---------------------------------------------------------------------------------------------------


def _shape(shape: Value, what: str) -> tuple[int, ...]:
    parts = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    sizes = tuple(static_int(part, f"the shape of {what}") for part in parts)
    if not sizes or min(sizes) < 1:
        raise TraceError(f"{what}: expected positive extents but got {sizes}")
    return sizes


def alloc_shared(
    tracer: Tracer, shape: Value, dtype: Value = "float32", *, layout: Value = "default", align: Value = None
) -> TensorValue:
    tracer.require_device("T.alloc_shared")
    sizes, element = _shape(shape, "T.alloc_shared"), as_dtype(dtype)
    placed = placing(layout, sizes, "T.alloc_shared")
    if any(axis.kind == "thread" for axis in placed.axes):
        raise TraceError(
            f"T.alloc_shared: layout: expected one without thread axes, for a CTA shares the memory, but got {placed!r}"
        )
    least = 16
    if isinstance(placed, ComposeLayout):
        least = max(least, placed.period * element.bits // 8)
    alignment = least if align is None else static_int(align, "align")
    if alignment < 1 or alignment & (alignment - 1) or alignment > 1024:
        raise TraceError(f"T.alloc_shared: align: expected a power of two up to 1024 but got {alignment}")
    name = tracer.builder.unique(tracer.hint or "shared")
    buffer = SharedBuffer(name, -(-placed.span("m") * element.bits // 8), max(alignment, element.bytes))
    tracer.shared.append(buffer)
    return TensorValue(name, element, sizes, buffer, placed, align=buffer.align, loc=tracer.builder.loc)


def alloc_local(tracer: Tracer, shape: Value, dtype: Value = "float32", *, layout: Value = "default") -> TensorValue:
    tracer.require_device("T.alloc_local")
    sizes, element = _shape(shape, "T.alloc_local"), as_dtype(dtype)
    if element is dtypes.mbarrier:
        raise TraceError(
            "T.alloc_local: dtype: expected a type of registers but got mbarrier: mbarriers live in shared memory"
        )
    placed = placing(layout, sizes, "T.alloc_local")
    return registers_tensor(tracer.builder, sizes, element, placed, tracer.hint or "local")


# ---- scalars --------------------------------------------------------------------------------------------------


def assume(tracer: Tracer, condition: Value) -> None:
    tracer.require_device("T.assume")
    if not isinstance(tracer.decisive(condition), Scalar):
        if not condition:
            raise TraceError("T.assume: expected a condition that can hold but got False")
        return
    truth = arithmetic.truth(tracer.builder, condition)
    tracer.builder.refine(truth.refines[0])
    tracer.builder.emit(Assume(tracer.builder.atom(truth), loc=tracer.builder.loc))


def unroll(tracer: Tracer, *args: Value) -> Unrolled:
    if len(args) == 1 and isinstance(args[0], Iterable):
        return Unrolled(tuple(args[0]))
    numbers = [static_int(arg, "an argument of T.unroll") for arg in args]
    if not 1 <= len(numbers) <= 3:
        raise TraceError(f"T.unroll: expected an iterable, or one to three integers, but got {len(numbers)}")
    if len(numbers) == 3 and numbers[2] == 0:
        raise TraceError("T.unroll: step: expected an int other than 0 but got 0")
    return Unrolled(range(*numbers))


def device_range(tracer: Tracer, *args: Value, unroll: Value = None) -> Range:
    items = runtime_range(args, "T.range")
    if unroll is not None:
        unroll = static_int(unroll, "T.range: unroll")
        if not 1 <= unroll <= MAX_COPIES:
            raise TraceError(f"T.range: unroll: expected 1 to {MAX_COPIES} but got {unroll}")
    return replace(items, device=True, unroll=unroll)


def cdiv(tracer: Tracer, a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int):
        if b <= 0:
            raise TraceError(f"T.cdiv: b: expected a positive integer but got {b}")
        return -(-a // b)
    return arithmetic.ceiling_division(tracer.builder, a, b)


def _extreme(op: str, static: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    def run(tracer: Tracer, a: Value, b: Value, *, nan: Value = False) -> Value:
        if not isinstance(nan, bool):
            raise TraceError(f"T.{op}: expected nan to be True or False but got {arithmetic.describe(nan)}")
        if is_number(a) and is_number(b):
            return next((x for x in (a, b) if nan and x != x), static(a, b))
        return arithmetic.extreme(tracer.builder, op, a, b, nan)

    return run


def _one(op: str) -> Callable[..., Value]:
    def run(tracer: Tracer, a: Value) -> Value:
        return abs(a) if op == "abs" and is_number(a) else arithmetic.unary(tracer.builder, op, tracer.scalar(a))

    return run


def fma(tracer: Tracer, a: Value, b: Value, c: Value) -> Value:
    if not any(isinstance(x, Scalar) for x in (a, b, c)):
        raise TraceError("T.fma: expected at least one device value but got static numbers")
    return arithmetic.fused_multiply_add(tracer.builder, a, b, c)


def cast(tracer: Tracer, value: Value, dtype: Value, *, rounding: Value = None, saturate: Value = None) -> Value:
    if rounding is None and saturate is None:
        return convert(tracer, value, as_dtype(dtype))
    return rounding_cast(tracer, value, _scalar_type("T.cast", dtype), rounding, saturate)


def reinterpret(tracer: Tracer, value: Value, dtype: Value) -> Value:
    return memory.bitcast(tracer.builder, tracer.scalar(value), _scalar_type("T.reinterpret", dtype))


def _scalar_type(what: str, dtype: Value) -> DType:
    """The type of a scalar. TraceError: one of elements of tensors only."""
    to = as_dtype(dtype)
    if to.bits < 8 or to is dtypes.mbarrier:
        raise TraceError(f"{what}: dtype: expected the type of a scalar but got {to}, which elements of tensors have")
    return to


INTRINSICS.update(
    {
        "T.device_entry": device_entry,
        "T.alloc_shared": alloc_shared,
        "T.alloc_local": alloc_local,
        "T.assume": assume,
        "T.unroll": unroll,
        "T.range": device_range,
        "T.cdiv": cdiv,
        "T.min": _extreme("min", min),
        "T.max": _extreme("max", max),
        "T.abs": _one("abs"),
        "T.sqrt": _one("sqrt"),
        "T.fma": fma,
        "T.cast": cast,
        "T.reinterpret": reinterpret,
        "T.cuda.lane_id": lane_id,
        "T.cuda.warp_id": warp_id,
        "T.cuda.thread_idx": thread_idx,
        "T.cuda.block_idx": block_idx,
        "T.cuda.block_dim": block_dim,
        "T.cuda.grid_dim": grid_dim,
    }
)
BUILTINS[range] = lambda tracer, *args: runtime_range(args)
