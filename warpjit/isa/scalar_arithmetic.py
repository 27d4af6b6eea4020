"""Arithmetic rows: `ARITHMETIC[(operation, dtype name)]`.

Integers wrap at their width. Three flags among an operation's params let the code be shorter where facts allow it;
they change no result:

    nowrap       signed add, sub, mul, neg: the exact result fits, so C++'s signed arithmetic may be used; shl: that,
                 and the count is in range
    nonnegative  floordiv, mod: both operands are >= 0 (and the divisor > 0), so no fix-up to flooring is needed
    bounded      shl, shr: the count is at least 0 and below the width

float32 and float64 are written as C++ (+ - * / may be contracted by the compiler unless the kernel forbids it);
16-bit floats are inline PTX, rounded once an operation. Comparisons and bit logic stand in `scalar_compare` and
`scalar_bits`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from warpjit.ir import numerics
from warpjit.ir.dtypes import DType
from warpjit.isa.needs import EVERYWHERE, since
from warpjit.isa.row import Asm, Code, Cxx, Needs, Row
from warpjit.isa.scalar_text import (
    C_TYPES,
    FLOATS,
    HALVES,
    INTEGERS,
    is_bfloat,
    plain,
    result,
    unsigned_c,
    value,
    widened_asm,
    widened_cxx,
)

_INFIX = {"add": "+", "sub": "-", "mul": "*"}

_MEANINGS: dict[str, Callable[..., object]] = {
    "add": numerics.add,
    "sub": numerics.subtract,
    "mul": numerics.multiply,
    "div": numerics.divide,
    "floordiv": numerics.floor_quotient,
    "mod": numerics.floor_remainder,
    "min": numerics.minimum,
    "max": numerics.maximum,
    "min_nan": numerics.minimum_nan,
    "max_nan": numerics.maximum_nan,
    "neg": numerics.negate,
    "abs": numerics.absolute,
    "sqrt": numerics.sqrt,
    "fma": numerics.fma,
    "shl": numerics.shift_left,
    "shr": numerics.shift_right,
}

_NAMES = {"min_nan": "min.NaN", "max_nan": "max.NaN"}
"""What PTX calls the operations that it does not call by our name."""

_OPERANDS = {**dict.fromkeys(("neg", "abs", "sqrt"), ("a",)), "fma": ("a", "b", "c")}


def _row(operation: str, dtype: DType, code: Code, needs: Needs = EVERYWHERE) -> Row:
    names = _OPERANDS.get(operation, ("a", "b"))
    return Row(
        text=f"{_NAMES.get(operation, operation)}.{dtype.ptx}",
        operands=(result("d", dtype), *(value(name, dtype) for name in names)),
        code=code,
        meaning=plain(_MEANINGS[operation]),
        needs=needs,
        pure=True,
        moves=operation in ("shl", "shr"),
        divisor="b" if dtype.is_int and operation in ("floordiv", "mod") else "",
        section="Integer Arithmetic Instructions" if dtype.is_int else "Floating-Point Instructions",
    )


def _chosen(flag: str, short: Cxx, general: Cxx) -> Code:
    """`short` where the flag is set."""
    return lambda params: short if params.get(flag) else general


# ---- integers ----------------------------------------------------------------------------------------


def _wrapping(operation: str, dtype: DType) -> Code:
    sign, unsigned = _INFIX[operation], unsigned_c(dtype)
    general = Cxx(f"{{d}} = ({C_TYPES[dtype.name]})(({unsigned}){{a}} {sign} ({unsigned}){{b}});")
    return _chosen("nowrap", Cxx(f"{{d}} = {{a}} {sign} {{b}};"), general) if dtype.bits >= 32 else general


def _negated(dtype: DType) -> Code:
    general = Cxx(f"{{d}} = ({C_TYPES[dtype.name]})(0 - ({unsigned_c(dtype)}){{a}});")
    return _chosen("nowrap", Cxx("{d} = - {a};"), general) if dtype.signed and dtype.bits >= 32 else general


def _absolute(dtype: DType) -> Code:
    if not dtype.signed:
        return Cxx("{d} = {a};")
    unsigned = unsigned_c(dtype)
    return Cxx(f"{{d}} = ({C_TYPES[dtype.name]})({{a}} < 0 ? 0 - ({unsigned}){{a}} : ({unsigned}){{a}});")


# The remainder's sign is the dividend's; where it is the wrong one, the quotient is one too large.
_WRONG_SIGN = "({a} % {b} != 0 && ({a} < 0) != ({b} < 0))"


def _floor_quotient(dtype: DType) -> Code:
    c_type, unsigned = C_TYPES[dtype.name], unsigned_c(dtype)
    short = Cxx(f"{{d}} = ({c_type})(({unsigned}){{a}} / ({unsigned}){{b}});")
    general = Cxx(f"{{d}} = ({c_type})(({unsigned})({{a}} / {{b}}) - ({unsigned}){_WRONG_SIGN});")
    return _chosen("nonnegative", short, general) if dtype.signed else short


def _floor_remainder(dtype: DType) -> Code:
    c_type, unsigned = C_TYPES[dtype.name], unsigned_c(dtype)
    short = Cxx(f"{{d}} = ({c_type})(({unsigned}){{a}} % ({unsigned}){{b}});")
    general = Cxx(f"{{d}} = ({c_type})({{a}} % {{b}} + ({_WRONG_SIGN} ? {{b}} : 0));")
    return _chosen("nonnegative", short, general) if dtype.signed else short


def _extremum(sign: str) -> Cxx:
    return Cxx(f"{{d}} = {{a}} {sign} {{b}} ? {{a}} : {{b}};")


def _shifted_left(dtype: DType) -> Code:
    c_type, unsigned = C_TYPES[dtype.name], unsigned_c(dtype)
    shifted = f"({c_type})(({unsigned}){{a}} << {{b}})"
    short = Cxx(f"{{d}} = {shifted};")
    general = Cxx(f"{{d}} = ({unsigned}){{b}} < {dtype.bits} ? {shifted} : ({c_type})0;")

    def choose(params: Mapping[str, int]) -> Cxx:
        return short if params.get("bounded") or params.get("nowrap") else general

    return choose


def _shifted_right(dtype: DType) -> Code:
    c_type, unsigned = C_TYPES[dtype.name], unsigned_c(dtype)
    short = Cxx(f"{{d}} = ({c_type})({{a}} >> {{b}});")
    beyond = f"({c_type})({{a}} >> {dtype.bits - 1})" if dtype.signed else f"({c_type})0"
    general = Cxx(f"{{d}} = ({unsigned}){{b}} < {dtype.bits} ? ({c_type})({{a}} >> {{b}}) : {beyond};")
    return _chosen("bounded", short, general)


_INTEGER_CODE: dict[str, Callable[[DType], Code]] = {
    **{operation: partial(_wrapping, operation) for operation in _INFIX},
    "neg": _negated,
    "abs": _absolute,
    "floordiv": _floor_quotient,
    "mod": _floor_remainder,
    "min": lambda dtype: _extremum("<"),
    "max": lambda dtype: _extremum(">"),
    "shl": _shifted_left,
    "shr": _shifted_right,
}


# ---- floats ------------------------------------------------------------------------------------------


def _wide(operation: str, dtype: DType) -> Code:
    """float32 and float64."""
    infix = {**_INFIX, "div": "/"}.get(operation)
    if infix:
        return Cxx(f"{{d}} = {{a}} {infix} {{b}};")
    if operation == "neg":
        return Cxx("{d} = - {a};")
    if operation in _NAMES:
        return _extremum_or_nan(operation, dtype)
    names = _OPERANDS.get(operation, ("a", "b"))
    rounding = {"sqrt": ".rn", "fma": ".rn"}.get(operation, "")
    return Asm(f"{operation}{rounding}.{dtype.ptx} {{d}}, {', '.join('{' + name + '}' for name in names)};")


def _extremum_or_nan(operation: str, dtype: DType) -> Code:
    """PTX has no .NaN of float64."""
    if dtype.bits == 32:
        return Asm(f"{_NAMES[operation]}.f32 {{d}}, {{a}}, {{b}};")
    return Asm(
        f"{{{{ .reg .pred p, q; .reg .f64 x; {operation[:3]}.f64 x, {{a}}, {{b}}; setp.nan.f64 p, {{a}}, {{a}}; "
        "setp.nan.f64 q, {b}, {b}; selp.f64 x, {b}, x, q; selp.f64 {d}, {a}, x, p; }}"
    )


_BF16_BY_FMA = {
    # Before sm_90 bf16 has no add, sub, mul: a * 1 + b, b * -1 + a and a * b + -0 round once and keep zeros' signs.
    "add": "{{ .reg .b16 k; mov.b16 k, 0x3F80; fma.rn.bf16 {d}, {a}, k, {b}; }}",
    "sub": "{{ .reg .b16 k; mov.b16 k, 0xBF80; fma.rn.bf16 {d}, {b}, k, {a}; }}",
    "mul": "{{ .reg .b16 k; mov.b16 k, 0x8000; fma.rn.bf16 {d}, {a}, {b}, k; }}",
}


def _half(operation: str, dtype: DType) -> Code:
    """float16 and bfloat16: one instruction where there is one, else by way of float32, which has bits to spare."""
    if operation in _INFIX:
        return Asm(_BF16_BY_FMA[operation] if is_bfloat(dtype) else f"{operation}.rn.f16 {{d}}, {{a}}, {{b}};")
    names = _OPERANDS.get(operation, ("a", "b"))
    if operation in ("sqrt", "div"):
        registers = ", ".join(f"x_{name}" for name in names)
        return widened_asm(dtype, f"{operation}.rn.f32 x_d, {registers};", *names)
    rounding = ".rn" if operation == "fma" else ""
    name = _NAMES.get(operation, operation)
    return Asm(f"{name}{rounding}.{dtype.ptx} {{d}}, {', '.join('{' + each + '}' for each in names)};")


# fmod by doubling and halving the divisor: every step is exact, and few are needed unless the quotient is huge.
_REMAINDER = (
    "const {t} wj__m = wj__b < 0 ? -wj__b : wj__b; {t} wj__r = wj__a < 0 ? -wj__a : wj__a, wj__k = wj__m; "
    "if (!(wj__r - wj__r == 0) || !(wj__m > 0)) {{{{ wj__r = (wj__a * wj__b) / (wj__a * wj__b); }}}} "
    "else {{{{ if (wj__m - wj__m == 0) {{{{ while (wj__k + wj__k <= wj__r) wj__k = wj__k + wj__k; "
    "while (wj__k >= wj__m) {{{{ if (wj__r >= wj__k) wj__r = wj__r - wj__k; if (wj__k == wj__m) break; "
    "wj__k = wj__k * ({t})0.5; }}}} }}}} "
    "if (wj__a < 0) wj__r = -wj__r; }}}} "
    "const bool wj__low = wj__r != 0 && (wj__r < 0) != (wj__b < 0);"
)
_MODULO = "wj__d = wj__r == 0 ? (wj__b < 0 ? -({t})0 : ({t})0) : wj__low ? wj__r + wj__b : wj__r;"
_QUOTIENT = (
    "const {t} wj__q = wj__a / wj__b; {t} wj__n = (wj__a - wj__r) / wj__b, wj__f; if (wj__low) wj__n = wj__n - 1; "
    'asm("cvt.rmi.{p}.{p} %0, %1;" : "={c}"(wj__f) : "{c}"(wj__n)); '
    "if (wj__n - wj__f > ({t})0.5) wj__f = wj__f + 1; "
    'if (wj__n == 0) asm("copysign.{p} %0, %1, %2;" : "={c}"(wj__f) : "{c}"(wj__q), "{c}"(({t})0)); '
    "wj__d = wj__b == 0 ? wj__q : wj__f;"
)


def _float_floor(operation: str, dtype: DType) -> Code:
    """Python's // and % of floats: the exact remainder first, then the quotient that belongs to it."""
    wide = dtype.name == "float64"
    words = {"t": "double" if wide else "float", "p": "f64" if wide else "f32", "c": "d" if wide else "f"}
    last = _QUOTIENT if operation == "floordiv" else _MODULO
    return widened_cxx(dtype, f"{_REMAINDER} {last}".format(**words), "a", "b")


def _float_code(operation: str, dtype: DType) -> Code:
    if operation in ("floordiv", "mod"):
        return _float_floor(operation, dtype)
    return _half(operation, dtype) if dtype in HALVES else _wide(operation, dtype)


def _float_needs(operation: str, dtype: DType) -> Needs:
    newer = operation in _NAMES or (dtype in HALVES and operation in ("min", "max"))
    return since(80) if is_bfloat(dtype) or (newer and dtype.bits < 64) else EVERYWHERE


_FLOAT_OPERATIONS = ("add", "sub", "mul", "div", "floordiv", "mod", "min", "max", *_NAMES, "neg", "abs", "sqrt", "fma")

ARITHMETIC: dict[tuple[str, str], Row] = {
    **{
        (operation, dtype.name): _row(operation, dtype, code(dtype))
        for operation, code in _INTEGER_CODE.items()
        for dtype in INTEGERS
    },
    **{
        (operation, dtype.name): _row(operation, dtype, _float_code(operation, dtype), _float_needs(operation, dtype))
        for operation in _FLOAT_OPERATIONS
        for dtype in FLOATS
    },
}
"""Rows (d, a[, b[, c]]), all of one type, by operation and type: + the bit logic of `scalar_bits` in `scalar`."""
