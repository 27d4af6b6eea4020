"""Operators on the language's scalars: types meet, integers stay sums as long as they can, conditions teach.

Each function takes the `Builder` first and gives a `Scalar`. Operands may be static numbers where one side is a
`Scalar`: a literal takes the other side's type and must fit. Two static operands never come here.
"""

from __future__ import annotations

from collections.abc import Callable

from warpjit.errors import TraceError
from warpjit.frontend import planned
from warpjit.frontend.builder import Builder
from warpjit.frontend.literals import describe, literal, natural
from warpjit.frontend.planned import plan_of
from warpjit.frontend.refine import refinements
from warpjit.frontend.values import Linear, Scalar, Value, constant, is_number
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts
from warpjit.ir.nodes import Const, Local
from warpjit.isa.row import Row
from warpjit.isa.scalar import ARITHMETIC, COMPARE, CONVERT, SELECT
from warpjit.isa.scalar_float8 import by_way_of

BITWISE = ("and", "or", "xor")

__all__ = ["binary", "ceiling_division", "common", "compare", "convert", "describe", "fused_multiply_add"]
__all__ += ["join_conditions", "literal", "natural", "negate", "plan_of", "select", "truth", "unary"]


# ---- literals and types -------------------------------------------------------------------------------


def common(builder: Builder, a: Value, b: Value, *, keep_bool: bool = False) -> tuple[Scalar, Scalar]:
    """Both operands in the type in which they meet. Two bools in arithmetic are int32 unless `keep_bool`."""
    if isinstance(a, Scalar) and a.dtype.is_int and type(b) is int:  # most often
        return a, literal(builder, b, a.dtype)
    if isinstance(a, Scalar) and isinstance(b, Scalar) and a.dtype != b.dtype:
        keep_bool = True  # a bool takes the other's type
    left, right = _unbool(builder, a, keep_bool), _unbool(builder, b, keep_bool)
    if isinstance(left, Scalar) and isinstance(right, Scalar):
        if left.dtype == right.dtype:
            return left, right
        meeting = dtypes.promote(left.dtype, right.dtype)
        return convert(builder, left, meeting), convert(builder, right, meeting)
    if isinstance(left, Scalar):
        left, right = _with_literal(builder, left, right)
        return left, right
    right, left = _with_literal(builder, right, left)
    return left, right


def meeting_type(a: Value, b: Value) -> DType:
    """The type of a choice between two numbers: a bool is one among bools only."""
    types = [
        x.dtype
        if isinstance(x, Scalar)
        else dtypes.bool_
        if isinstance(x, bool)
        else dtypes.int32
        if isinstance(x, int)
        else dtypes.float32
        for x in (a, b)
    ]
    scalars = [isinstance(x, Scalar) for x in (a, b)]
    if all(scalars) or not any(scalars) or types[0] == types[1]:
        return dtypes.promote(*types)
    scalar, other = types if scalars[0] else types[::-1]
    weaker = scalar.is_bool or (scalar.is_int and other.is_float)
    return other if weaker else scalar


def _unbool(builder: Builder, value: Value, keep: bool) -> Value:
    if isinstance(value, Scalar) and value.dtype.is_bool and not keep:
        return convert(builder, value, dtypes.int32)
    if not isinstance(value, Scalar) and not is_number(value):
        raise TraceError(f"expected a number but got {describe(value)}")
    return value


def _with_literal(builder: Builder, scalar: Scalar, value: int | float) -> tuple[Scalar, Scalar]:
    if scalar.dtype.is_int and isinstance(value, float):
        scalar = convert(builder, scalar, dtypes.float32)
    if scalar.dtype.is_bool and not isinstance(value, bool):
        scalar = convert(builder, scalar, dtypes.int32 if isinstance(value, int) else dtypes.float32)
    return scalar, literal(builder, value, scalar.dtype)


def convert(builder: Builder, scalar: Scalar, dtype: DType) -> Scalar:
    """The value in another type: exact where the type holds it, else as CUDA converts (integers wrap)."""
    if scalar.dtype == dtype:
        return scalar
    if scalar.dtype.is_pair or dtype.is_pair:
        raise TraceError(_PAIRED[dtype.is_pair].format(of=scalar.dtype, to=dtype))
    if builder.host and scalar.plan is not None:
        return planned.convert(builder, scalar, dtype)
    if isinstance(scalar.atom, Const) and not dtype.is_int:
        return literal(builder, bool(scalar.atom.value) if dtype.is_bool else scalar.atom.value, dtype)
    if dtype.is_int and scalar.linear is not None:
        facts = builder.linear_facts(scalar.linear).meet(scalar.facts)
        if facts.fits(dtype):
            return builder.valued(dtype, scalar.linear, facts)
    if scalar.dtype.is_bool and dtype.is_int:
        facts = Facts(0, 1, 1, scalar.uniformity)
    else:
        facts = fact.of_type(dtype, scalar.uniformity)
    row = CONVERT.get((dtype.name, scalar.dtype.name))
    if row is None:
        step = by_way_of(dtype, scalar.dtype)
        if step is None:
            raise TraceError(f"{scalar.dtype} is not converted to {dtype}: no instruction of the table does")
        return convert(builder, convert(builder, scalar, step), dtype)
    return builder.operate(row, (builder.atom(scalar),), facts, loops=scalar.loops)


def typed(builder: Builder, value: Value, dtype: DType) -> Scalar:
    """A number in a type: a value of the device converted, a static number as a literal, which must fit."""
    return convert(builder, value, dtype) if isinstance(value, Scalar) else literal(builder, value, dtype)


_PAIRED = {
    True: "expected a {to}, for example T.{to}(x, y), but got a {of}",
    False: "a {of} is no {to}: take a half, x[0] or x[1], or its bits, T.reinterpret(x, T.uint32)",
}
"""What is said of a conversion to a pair, and of one from a pair."""


# ---- arithmetic ---------------------------------------------------------------------------------------


def binary(builder: Builder, op: str, a: Value, b: Value) -> Scalar:
    """`op` is a key of ARITHMETIC: add sub mul div floordiv mod min max and or xor shl shr."""
    if builder.host:
        return planned.binary(builder, op, a, b)
    if op in ("shl", "shr"):
        return _shift(builder, op, a, b)
    left, right = common(builder, a, b, keep_bool=op in BITWISE)
    if op == "div" and left.dtype.is_int:
        left, right = (convert(builder, x, dtypes.float32) for x in (left, right))
    if left.dtype.is_int:
        return INTEGER.get(op, _integer)(builder, op, left, right)
    return _emit(builder, op, left, right)


def extreme(builder: Builder, op: str, a: Value, b: Value, nan: bool) -> Scalar:
    """min or max; with `nan` a NaN where an operand is one. Integers have none."""
    if not nan or builder.host:
        return binary(builder, op, a, b)
    left, right = common(builder, a, b)
    return binary(builder, op if left.dtype.is_int else f"{op}_nan", left, right)


def _shift(builder: Builder, op: str, a: Value, b: Value) -> Scalar:
    """The count keeps its own value: it need not have the type of what is shifted."""
    left = _unbool(builder, natural(builder, a), False)
    if isinstance(b, float) or (isinstance(b, Scalar) and b.dtype.is_float):
        raise TraceError(f"expected an integer to shift by but got {describe(b)}")
    counted = literal(builder, b, left.dtype) if is_number(b) else _unbool(builder, b, False)
    assert isinstance(counted, Scalar)
    if not left.dtype.is_int:
        raise TraceError(f"expected an integer to shift but got {describe(left)}")
    if counted.dtype.bits > left.dtype.bits and not counted.facts.fits(left.dtype):
        # Cut to the narrower type, 256 would be 0.
        wide = dtypes.dtype(f"{'int' if left.dtype.signed else 'uint'}{counted.dtype.bits}")
        return convert(builder, _shift(builder, op, convert(builder, left, wide), counted), left.dtype)
    right = convert(builder, counted, left.dtype)
    count = right.facts.constant
    if op == "shl" and count is not None and 0 <= count < left.dtype.bits - 1:
        power = constant(left.dtype, 1 << count)
        return _multiply(builder, "mul", left, power)
    if op == "shr" and count is not None and 0 <= count < left.dtype.bits - 1 and left.facts.fits(left.dtype):
        if left.facts.lo is not None and left.facts.lo >= 0:
            return _divide(builder, "floordiv", left, constant(left.dtype, 1 << count))
    return _integer(builder, op, left, right)


def _row(op: str, dtype: DType) -> Row:
    """The row of an operation. TraceError: the type has none."""
    row = ARITHMETIC.get((op, dtype.name))
    if row is None:
        raise TraceError(f"{op} is not defined for {dtype}")
    return row


def _emit(builder: Builder, op: str, a: Scalar, b: Scalar) -> Scalar:
    row = _row(op, a.dtype)
    facts = fact.of_type(a.dtype, max(a.uniformity, b.uniformity))
    return builder.operate(row, (builder.atom(a), builder.atom(b)), facts, loops=a.loops | b.loops)


def _integer(builder: Builder, op: str, a: Scalar, b: Scalar) -> Scalar:
    """An operation that makes a new local; it wraps unless its range is proven."""
    row = _row(op, a.dtype)
    facts = (
        fact.TRANSFER[op](a.facts, b.facts)
        if op in fact.TRANSFER
        else Facts(uniformity=max(a.uniformity, b.uniformity))
    )
    fits = facts.fits(a.dtype)
    params: tuple[tuple[str, int], ...] = ()
    if fits and a.dtype.signed and op in ("add", "sub", "mul", "shl"):
        params = (("nowrap", 1),)
    known = facts if fits else fact.wrapped(facts, a.dtype, op)
    return builder.operate(row, (builder.atom(a), builder.atom(b)), known, params=params, loops=a.loops | b.loops)


def _sum(builder: Builder, op: str, a: Scalar, b: Scalar) -> Scalar:
    assert a.linear is not None and b.linear is not None
    facts = fact.TRANSFER[op](a.facts, b.facts)
    linear = a.linear.plus(b.linear, 1 if op == "add" else -1)
    exact = builder.linear_facts(linear)
    if facts.fits(a.dtype):
        return builder.valued(a.dtype, linear, exact.meet(facts))
    if exact.fits(a.dtype):
        return builder.valued(a.dtype, linear, exact)
    return _wrapped(builder, _integer(builder, op, a, b), linear)


def _wrapped(builder: Builder, result: Scalar, linear: Linear) -> Scalar:
    """Note what a result that may have wrapped equals modulo 2**bits."""
    assert isinstance(result.atom, Local)
    builder.wrapped[result.atom.name] = builder.modular(linear)
    return result


def _multiply(builder: Builder, op: str, a: Scalar, b: Scalar) -> Scalar:
    assert a.linear is not None and b.linear is not None
    facts = fact.mul(a.facts, b.facts)
    for x, y in ((a, b), (b, a)):
        factor = y.facts.constant
        if factor is not None:
            assert x.linear is not None
            linear = x.linear.times(factor)
            if facts.fits(a.dtype):
                return builder.integer(a.dtype, linear, facts)
            return _wrapped(builder, _integer(builder, op, a, b), linear)
    return _integer(builder, op, a, b)


def _divide(builder: Builder, op: str, a: Scalar, b: Scalar) -> Scalar:
    """Floor division and modulo: whole multiples of a constant divisor are taken out of the sum first."""
    divisor = b.facts.constant
    if divisor == 0 and builder.block.dead:
        return constant(a.dtype, 0)
    if divisor == 0:
        raise TraceError("division by zero")
    if divisor is None or divisor < 0 or a.linear is None:
        return _division(builder, op, a, b)
    quotient, rest = split(builder, a.linear, divisor)
    facts = builder.linear_facts(rest)
    if rest == a.linear:
        facts = facts.meet(a.facts)
    if facts.lo is None or facts.hi is None or not facts.fits(a.dtype):
        return _division(builder, op, a, b)
    if facts.lo // divisor == facts.hi // divisor:  # the rest never leaves one period
        turns = facts.lo // divisor
        if op == "floordiv":
            return builder.integer(a.dtype, quotient.plus(Linear((), turns)))
        return builder.integer(a.dtype, rest.plus(Linear((), -turns * divisor)))
    if facts.multiple % divisor == 0 and op == "mod":
        return constant(a.dtype, 0)
    part = builder.valued(a.dtype, rest, facts)
    result = _division(builder, op, part, b)
    if op == "mod":
        if isinstance(result.atom, Const) or not result.linear or not result.linear.terms:
            return result
        builder.moduli[result.linear.terms[0][0].name] = (rest, divisor)
        return result
    assert result.linear is not None
    return builder.integer(a.dtype, quotient.plus(result.linear))


def split(builder: Builder, linear: Linear, divisor: int) -> tuple[Linear, Linear]:
    """(q, r) with linear = divisor·q + r, where q holds every term whose coefficient is a multiple of the divisor."""
    whole = tuple((local, c // divisor) for local, c in linear.terms if c % divisor == 0)
    rest = tuple((local, c) for local, c in linear.terms if c % divisor)
    return Linear(whole, linear.constant // divisor), Linear(rest, linear.constant % divisor)


def _division(builder: Builder, op: str, a: Scalar, b: Scalar) -> Scalar:
    facts = fact.TRANSFER[op](a.facts, b.facts)
    known = facts.meet(fact.of_type(a.dtype, facts.uniformity))
    nonnegative = a.facts.lo is not None and a.facts.lo >= 0 and b.facts.lo is not None and b.facts.lo >= 0
    params = (("nonnegative", 1),) if nonnegative and a.dtype.signed else ()
    row = ARITHMETIC[op, a.dtype.name]
    operands = (builder.atom(a), builder.atom(b))
    builder.block.divisors.append(operands[1])
    return builder.operate(row, operands, known, params=params, loops=a.loops | b.loops)


def _extreme(builder: Builder, op: str, a: Scalar, b: Scalar) -> Scalar:
    """min and max of integers: decided where the ranges decide."""
    low, high = (a, b) if op == "min" else (b, a)
    for x, y in ((low, high), (high, low)):
        if x.facts.hi is not None and y.facts.lo is not None and x.facts.hi <= y.facts.lo:
            return x if op == "min" else y
    return _integer(builder, op, a, b)


INTEGER: dict[str, Callable[[Builder, str, Scalar, Scalar], Scalar]] = {
    "add": _sum,
    "sub": _sum,
    "mul": _multiply,
    "floordiv": _divide,
    "mod": _divide,
    "min": _extreme,
    "max": _extreme,
}


def ceiling_division(builder: Builder, a: Value, b: Value) -> Scalar:
    """⌈a / b⌉ for b > 0: (a + b − 1) // b where that cannot wrap, else a // b and one more if a rest is left."""
    for value in (a, b):
        if isinstance(value, float) or (isinstance(value, Scalar) and not value.dtype.is_int):
            raise TraceError(f"T.cdiv: expected integers but got {describe(value)}")
    left, right = common(builder, a, b)
    if right.facts.hi is not None and right.facts.hi <= 0 and not builder.block.dead:
        got = f"at most {right.facts.hi}" if right.facts.constant is None else right.facts.constant
        raise TraceError(f"T.cdiv: b: expected a positive integer but got {got}")
    if builder.host:
        return binary(builder, "floordiv", binary(builder, "add", left, binary(builder, "sub", right, 1)), right)
    sum_facts = fact.add(left.facts, right.facts)
    if sum_facts.fits(left.dtype):
        last = binary(builder, "sub", right, 1)
        return binary(builder, "floordiv", binary(builder, "add", left, last), right)
    more = compare(builder, "gt", binary(builder, "mod", left, right), 0)
    return binary(builder, "add", binary(builder, "floordiv", left, right), convert(builder, more, left.dtype))


def unary(builder: Builder, op: str, value: Scalar) -> Scalar:
    """op: neg, invert, abs, sqrt."""
    if op == "neg" and (value.dtype.is_int or value.dtype.is_bool):
        return binary(builder, "sub", 0, value)
    if builder.host:
        return planned.unary(builder, op, value)
    if op == "invert" and not value.dtype.is_float and not value.dtype.is_pair:
        if value.dtype.is_bool:
            value = convert(builder, value, dtypes.int32)
        return binary(
            builder, "xor", value, literal(builder, -1 if value.dtype.signed else value.dtype.max, value.dtype)
        )
    if value.dtype.is_bool:
        value = convert(builder, value, dtypes.int32)
    if op == "abs" and value.dtype.kind == "uint":
        return value
    row = _row(op, value.dtype)
    facts = fact.of_type(value.dtype, value.uniformity)
    if op == "abs" and value.dtype.is_int and fact.absolute(value.facts).fits(value.dtype):
        facts = fact.absolute(value.facts)
    return builder.operate(row, (builder.atom(value),), facts, loops=value.loops)


def fused_multiply_add(builder: Builder, a: Value, b: Value, c: Value) -> Scalar:
    """a · b + c, rounded once."""
    for value in (a, b, c):
        if not isinstance(value, Scalar) and not is_number(value):
            raise TraceError(f"T.fma: expected numbers but got {describe(value)}")
    operands = [x for x in (a, b, c) if isinstance(x, Scalar)]
    meeting = operands[0].dtype
    for operand in operands[1:]:
        meeting = dtypes.promote(meeting, operand.dtype)
    row = ARITHMETIC.get(("fma", meeting.name))
    if row is None:
        raise TraceError(f"T.fma: expected floats but got operands that meet in {meeting}")
    parts = [typed(builder, x, meeting) for x in (a, b, c)]
    facts = Facts(uniformity=max(part.uniformity for part in parts))
    loops = parts[0].loops | parts[1].loops | parts[2].loops
    return builder.operate(row, tuple(builder.atom(part) for part in parts), facts, loops=loops)


# ---- conditions ---------------------------------------------------------------------------------------


def compare(builder: Builder, op: str, a: Value, b: Value) -> Scalar:
    """A bool, which knows what it says of its operands; of pairs a mask, 0xFFFF in each half for which it holds."""
    if builder.host:
        return planned.compare(builder, op, a, b)
    left, right = common(builder, a, b, keep_bool=op in ("eq", "ne"))
    uniformity = max(left.uniformity, right.uniformity)
    row = COMPARE.get((op, left.dtype.name))
    if row is None:
        raise TraceError(f"{op} is not defined for {left.dtype}")
    operands = (builder.atom(left), builder.atom(right))
    facts = fact.of_type(row.operands[0].dtype or dtypes.bool_, uniformity)
    result = builder.operate(row, operands, facts, loops=left.loops | right.loops)
    if not left.dtype.is_int:
        return result
    return Scalar(
        result.dtype, result.facts, result.atom, None, result.loops, refines=refinements(builder, op, left, right)
    )


def truth(builder: Builder, value: Value) -> Scalar:
    """The condition `value`: a bool as it is, a number as `!= 0`."""
    scalar = natural(builder, value)
    if scalar.dtype.is_pair:
        raise TraceError(f"a {scalar.dtype} is neither true nor false: compare it, or a half of it, x[0] or x[1]")
    return scalar if scalar.dtype.is_bool else compare(builder, "ne", scalar, 0)


def negate(builder: Builder, value: Scalar) -> Scalar:
    if builder.host:
        return planned.negate(builder, value)
    row = ARITHMETIC["not", "bool"]
    result = builder.operate(row, (builder.atom(value),), value.facts, loops=value.loops)
    return Scalar(result.dtype, result.facts, result.atom, None, result.loops, refines=value.refines[::-1])


def join_conditions(builder: Builder, op: str, a: Scalar, b: Scalar) -> Scalar:
    """`and` / `or` of two conditions that are both computed."""
    result = binary(builder, op, a, b)
    true, false = (a.refines[0] + b.refines[0], ()) if op == "and" else ((), a.refines[1] + b.refines[1])
    return Scalar(result.dtype, result.facts, result.atom, None, result.loops, result.plan, (true, false))


def select(builder: Builder, condition: Scalar, a: Value, b: Value) -> Scalar:
    """`a if condition else b` where both are computed."""
    if builder.host:
        return planned.select(builder, condition, a, b)
    dtype = meeting_type(a, b)
    left, right = (typed(builder, x, dtype) for x in (a, b))
    facts = left.facts.join(right.facts).at(condition.uniformity)
    row = SELECT[left.dtype.name]
    operands = (builder.atom(condition), builder.atom(left), builder.atom(right))
    return builder.operate(row, operands, facts, loops=left.loops | right.loops | condition.loops)
