"""Mathematical functions of one float: `MATH[(function, dtype name)]` and `APPROXIMATE[(function, dtype name)]`.

    MATH         exp exp2 log log2 sin cos tanh erf rsqrt rcp floor ceil round trunc, of every float type
    APPROXIMATE  exp2 exp log2 log sin cos tanh rcp rsqrt sqrt, of the types up to 32 bits
    ROWS         the instructions among them that PTX itself has, and the same with .ftz: `T.ptx["ex2.approx.ftz.f32"]`

16-bit floats compute in float32 and are rounded once. The accurate functions are CUDA's own: the compiler links
libdevice and inlines them; no flag of ours allows it less accurate ones. Errors are the largest that CUDA's documents
state: in ulp of the correctly rounded result in the CUDA C++ Programming Guide, chapter "Mathematical Functions"
("Standard Functions", "Intrinsic Functions"), and for single instructions in the PTX manual, in the section of each.
What has an error of 0 is bit for bit the same in the simulator; elsewhere the simulator computes in float64 and rounds
once, and does not model the device's error.

Four functions are more than one instruction of PTX: the fast exp and log are a product, rounded, and the power or
logarithm of 2; sin and cos multiply by 1 / (2 pi) in float32, which is what they lose their accuracy by as arguments
grow (SASS: FMUL.RZ before MUFU). The simulator does all these products as the device does.

Arithmetic, with sqrt, is in `scalar_arithmetic`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from warpjit.ir.conversion import widened
from warpjit.ir.dtypes import DType, dtype_of, float32, float64
from warpjit.ir.nans import settle_nan
from warpjit.ir.rounding import round_float
from warpjit.isa.needs import EVERYWHERE, since
from warpjit.isa.row import Array, Asm, Code, Cxx, Row
from warpjit.isa.scalar_text import (
    FLOATS,
    HALVES,
    is_bfloat,
    result,
    value,
    widened_asm,
    widened_cxx,
)
from warpjit.record import record

Function: TypeAlias = Callable[[Array], Array]
"""A function over arrays of float64, elementwise."""


# ---- what they compute ---------------------------------------------------------------------------------


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _reciprocal(x: Array) -> Array:
    return np.asarray(1.0 / x)


def _reciprocal_root(x: Array) -> Array:
    # Of all float32, 1 / sqrt(x) comes no nearer to the middle of two neighbours than 2**-49 (found by trying each), so
    # float64's error, 2**-52, cannot turn the final rounding.
    return np.asarray(1.0 / np.sqrt(x))


FUNCTIONS: Mapping[str, Function] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": _erf,
    "rsqrt": _reciprocal_root,
    "rcp": _reciprocal,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
}
"""Each function as it is defined: what a number that is known while tracing is computed by."""


def evaluate(function: str, number: float) -> float:
    """The function of a Python number in float64, with IEEE 754's infinities and NaNs and no exception."""
    with np.errstate(all="ignore"):
        return float(FUNCTIONS[function](np.asarray(number, np.float64)))


def _meaning(function: Function) -> Callable[..., Array]:
    """A row's meaning: `function` in float64, rounded to float32 for types up to 32 bits and then to the type."""

    def run(values: Array, **params: int) -> Array:
        kind = dtype_of(values)
        with np.errstate(all="ignore"):
            wide = widened(values) if kind in HALVES else values
            computed = np.asarray(function(wide.astype(np.float64)))
            if kind != float64:
                computed = computed.astype(np.float32)
        return settle_nan(round_float(computed, kind), (values,))

    return run


def _single(x: Array) -> Array:
    """float64 rounded to float32's values."""
    return x.astype(np.float32).astype(np.float64)


def _product(x: Array, factor: np.float32) -> Array:
    """The float32 product of float32 values."""
    return _single(x * np.float64(factor))


LOG2_E, LN_2, TURN = np.float32(math.log2(math.e)), np.float32(math.log(2)), np.float32(1 / (2 * math.pi))


def _turned(function: Function) -> Function:
    """sin or cos of an angle that is first divided into whole turns: x * TURN in float32, rounded toward zero."""

    def run(x: Array) -> Array:
        exact = x * np.float64(TURN)
        near = exact.astype(np.float32)
        toward_zero = np.where(np.abs(near) > np.abs(exact), np.nextafter(near, np.float32(0)), near)
        # fmod keeps the sign of a zero, and makes NaN of an infinity.
        return function(np.fmod(toward_zero.astype(np.float64), 1.0) * (2 * math.pi))

    return run


_FAST_FUNCTIONS: Mapping[str, Function] = {
    **FUNCTIONS,
    "exp": lambda x: np.asarray(np.exp2(_product(x, LOG2_E))),
    "log": lambda x: _single(np.log2(x)) * np.float64(LN_2),
    "sin": _turned(np.sin),
    "cos": _turned(np.cos),
}


def _flushing(function: Function) -> Function:
    """`function` with subnormal float32 arguments and results made zeros of the same sign."""

    def flushed(x: Array) -> Array:
        return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(0.0, x), x)

    return lambda x: flushed(_single(function(flushed(x))))


# ---- accurate functions ----------------------------------------------------------------------------------


@record
class LargestErrors:
    """The largest errors of a function, in ulp of the correctly rounded result: of float32 and of float64."""

    single: int = 0
    double: int = 0

    def of(self, dtype: DType) -> int:
        """In ulp of float32 for the 16-bit types too, which are rounded once more."""
        return self.double if dtype == float64 else self.single


ERRORS: Mapping[str, LargestErrors] = {
    "exp": LargestErrors(2, 1),
    "exp2": LargestErrors(2, 1),
    "log": LargestErrors(1, 1),
    "log2": LargestErrors(1, 1),
    "sin": LargestErrors(2, 2),
    "cos": LargestErrors(2, 2),
    "tanh": LargestErrors(2, 1),
    "erf": LargestErrors(2, 2),
    "rsqrt": LargestErrors(0, 1),
    **{name: LargestErrors() for name in ("rcp", "floor", "ceil", "round", "trunc")},
}
"""CUDA C++ Programming Guide, "Mathematical Functions": tables of single- and double-precision functions, and of the
intrinsic `__frsqrt_rn`; for `cvt` and `rcp.rn` the PTX manual (IEEE 754)."""

# rsqrtf is the approximate instruction; the intrinsic rounds correctly.
_CALLED = {("rsqrt", float32): "__frsqrt_rn"}
_INSTRUCTIONS = {
    "rcp": "rcp.rn.{type}",
    "floor": "cvt.rmi.{type}.{type}",
    "ceil": "cvt.rpi.{type}.{type}",
    "round": "cvt.rni.{type}.{type}",
    "trunc": "cvt.rzi.{type}.{type}",
}


def _row(text: str, dtype: DType, code: Code, function: Function, notes: str, section: str) -> Row:
    return Row(
        text=text,
        operands=(result("d", dtype), value("a", dtype)),
        code=code,
        meaning=_meaning(function),
        needs=since(80) if is_bfloat(dtype) else EVERYWHERE,
        pure=True,
        section=section,
        notes=notes,
    )


def _accurate_code(name: str, dtype: DType) -> Code:
    working = float32 if dtype in HALVES else dtype
    instruction = _INSTRUCTIONS.get(name, "").format(type=working.ptx)
    if instruction:
        return _asm(dtype, f"{instruction} {{d}}, {{a}};")
    called = _CALLED.get((name, working), name + ("" if working == float64 else "f"))
    if dtype in HALVES:
        return widened_cxx(dtype, f"wj__d = {called}(wj__a);", "a")
    return Cxx(f"{{d}} = {called}({{a}});")


def _asm(dtype: DType, statements: str) -> Asm:
    """PTX from {a} to {d}, float32's for 16-bit types."""
    if dtype in HALVES:
        return widened_asm(dtype, statements.format(d="x_d", a="x_a"), "a")
    return Asm(statements)


def _accurate(name: str, dtype: DType) -> Row:
    error = ERRORS[name].of(dtype)
    notes = f"largest error {error} ulp" + (", then rounded" if dtype in HALVES else "") if error else "exactly rounded"
    code, section = _accurate_code(name, dtype), "Mathematical Functions"
    return _row(f"{name}.{dtype.ptx}", dtype, code, FUNCTIONS[name], notes, section)


MATH: dict[tuple[str, str], Row] = {(name, dtype.name): _accurate(name, dtype) for name in ERRORS for dtype in FLOATS}
"""Rows (d, a) of one type, by function and type."""


# ---- fast functions ----------------------------------------------------------------------------------------


@record
class Fast:
    """A function that is one instruction of PTX, with an optional `.ftz` if `flushes`, and the manual's error bound."""

    instruction: str
    error: str
    flushes: bool = True


_ANGLE = "largest absolute error 2**-20.5 in [-2 pi, 2 pi], 2**-14.7 in [-100 pi, 100 pi], none stated beyond"

_SINGLE: Mapping[str, Fast] = {
    "exp2": Fast("ex2", "largest error 2 ulp"),
    "log2": Fast("lg2", "largest absolute error 2**-22 in (0.5, 2), largest relative error 2**-22 elsewhere"),
    "sin": Fast("sin", _ANGLE),
    "cos": Fast("cos", _ANGLE),
    "tanh": Fast("tanh", "largest relative error 2**-11", flushes=False),
    "rcp": Fast("rcp", "largest error 1 ulp"),
    "rsqrt": Fast("rsqrt", "largest relative error 2**-22.9"),
    "sqrt": Fast("sqrt", "largest relative error 2**-23"),
}


def _native(name: str, flushing: bool) -> Row:
    """The instruction of float32."""
    fast = _SINGLE[name]
    text = f"{fast.instruction}.approx{'.ftz' if flushing else ''}.f32"
    function = _FAST_FUNCTIONS[name]
    return _row(
        text,
        float32,
        Asm(text + " {d}, {a};"),
        _flushing(function) if flushing else function,
        fast.error + ("; subnormal numbers become 0" if flushing else ""),
        f"Floating Point Instructions: {fast.instruction}",
    )


_PLAIN: dict[str, Row] = {name: _native(name, flushing=False) for name in _SINGLE}
ROWS: tuple[Row, ...] = (*_PLAIN.values(), *(_native(name, flushing=True) for name in _SINGLE if _SINGLE[name].flushes))
"""What `T.ptx` gives by the manual's names."""


def _hexadecimal(factor: np.float32) -> str:
    return f"0f{int(factor.view(np.uint32)):08X}"


# As CUDA's __expf and __logf, but for subnormal numbers, which are kept.
_STATEMENTS: Mapping[str, str] = {
    **{name: f"{row.text} {{d}}, {{a}};" for name, row in _PLAIN.items()},
    "exp": f"mul.rn.f32 {{d}}, {{a}}, {_hexadecimal(LOG2_E)}; ex2.approx.f32 {{d}}, {{d}};",
    "log": f"lg2.approx.f32 {{d}}, {{a}}; mul.rn.f32 {{d}}, {{d}}, {_hexadecimal(LN_2)};",
}
_COMPOSED_ERRORS = {
    "exp": "largest error 2 + floor(|1.173 x|) ulp",
    "log": "largest absolute error 2**-21.41 in [0.5, 2], largest error 3 ulp elsewhere",
}


def _approximate(name: str, dtype: DType) -> Row:
    if dtype == float32 and name in _PLAIN:
        return _PLAIN[name]
    error = _COMPOSED_ERRORS[name] if name in _COMPOSED_ERRORS else _SINGLE[name].error
    notes = error + (", then rounded" if dtype in HALVES else "")
    # PTX has tanh and ex2 of 16-bit floats too, of another accuracy: these rows have names of ours.
    text = f"approx_{name}.{dtype.ptx}"
    code, section = _asm(dtype, _STATEMENTS[name]), "Mathematical Functions"
    return _row(text, dtype, code, _FAST_FUNCTIONS[name], notes, section)


APPROXIMATE: dict[tuple[str, str], Row] = {
    (name, dtype.name): _approximate(name, dtype) for name in _STATEMENTS for dtype in (*HALVES, float32)
}
"""Rows (d, a) of one type, by function and type."""
