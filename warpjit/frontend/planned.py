"""Operators before `T.device_entry`: expressions of the launch plan, which the host evaluates at each call.

The plan's integers are Python's and do not wrap. In the body a value has the type in which its operands meet, or int64
where that type might not hold it.
"""

from __future__ import annotations

from warpjit.errors import TraceError
from warpjit.frontend.builder import Builder
from warpjit.frontend.literals import describe, literal, natural
from warpjit.frontend.values import Scalar, Value, is_number
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import PlanExpr

SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "min": "min", "max": "max"}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def plan_of(value: Value) -> PlanExpr:
    """A host value as an expression of the launch plan. TraceError: it exists on the device only."""
    if is_number(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, Scalar) and value.plan is not None:
        return value.plan
    if isinstance(value, Scalar) and value.static is not None:
        return value.static
    raise TraceError(f"expected a value that is known at the launch but got {describe(value)}")


def _refuse(what: str) -> TraceError:
    return TraceError(
        "before T.device_entry only + - * // % min max abs, T.cdiv, comparisons and conditional expressions of "
        f"integers can be used, not {what}"
    )


def _operand(builder: Builder, value: Value, other: Value) -> Scalar:
    """An integer or bool: a literal takes the other side's type where it fits."""
    if is_number(value) and not isinstance(value, bool | float):
        wanted = _declared(builder, other) if isinstance(other, Scalar) and other.dtype.is_int else dtypes.int32
        return literal(builder, value, wanted if wanted.min <= value <= wanted.max else dtypes.int64)
    return natural(builder, value)


def _declared(builder: Builder, value: Scalar) -> DType:
    """The type that a value has for being what it is, not for its range."""
    return builder.widened.get(value.plan, value.dtype) if value.dtype == dtypes.int64 else value.dtype


def binary(builder: Builder, op: str, a: Value, b: Value) -> Scalar:
    """`op` is a key of SYMBOLS; other operations are refused."""
    left, right = _operand(builder, a, b), _operand(builder, b, a)
    symbol = SYMBOLS.get(op)
    if symbol is None or left.dtype.is_float or right.dtype.is_float:
        raise _refuse(f"{op} of {describe(a)} and {describe(b)}")
    base = dtypes.promote(*(dtypes.int32 if x.dtype.is_bool else _declared(builder, x) for x in (left, right)))
    facts = fact.TRANSFER[op](left.facts, right.facts)
    if left.plan is None and right.plan is None and facts.constant is not None:
        return literal(builder, facts.constant, base if facts.fits(base) else dtypes.int64)
    return _number(builder, (symbol, plan_of(left), plan_of(right)), base, facts)


def _number(builder: Builder, expression: PlanExpr, base: DType, facts: Facts) -> Scalar:
    dtype = base if facts.fits(base) else dtypes.int64
    if not facts.fits(dtype):
        facts = fact.of_type(dtype, Uniformity.GRID)
    if dtype != base:
        builder.widened[expression] = base
    return builder.planned(expression, dtype, facts.at(Uniformity.GRID), "size")


def convert(builder: Builder, value: Scalar, dtype: DType) -> Scalar:
    """An integer in a wider type: the same expression."""
    if value.dtype.is_bool and dtype.is_int:
        return builder.planned(("select", plan_of(value), 1, 0), dtype, Facts(0, 1, 1, Uniformity.GRID), "size")
    if not dtype.is_int or not value.facts.fits(dtype):
        raise TraceError(f"before T.device_entry {describe(value)} cannot be converted to {dtype}")
    return builder.planned(plan_of(value), dtype, value.facts, "size")


def unary(builder: Builder, op: str, value: Scalar) -> Scalar:
    """The magnitude; other operations are refused."""
    if op != "abs" or value.dtype.is_float:
        raise _refuse(f"{op} of {describe(value)}")
    return select(builder, compare(builder, "lt", value, 0), binary(builder, "sub", 0, value), value)


def _flag(builder: Builder, expression: PlanExpr) -> Scalar:
    return builder.planned(expression, dtypes.bool_, Facts(0, 1, 1, Uniformity.GRID), "flag")


def compare(builder: Builder, op: str, a: Value, b: Value) -> Scalar:
    return _flag(builder, (COMPARISONS[op], plan_of(a), plan_of(b)))


def negate(builder: Builder, value: Scalar) -> Scalar:
    return _flag(builder, ("not", plan_of(value)))


def join(builder: Builder, op: str, a: Scalar, b: Scalar) -> Scalar:
    """`and`, `or`: the second is evaluated where the first leaves the result open."""
    return _flag(builder, (op, plan_of(a), plan_of(b)))


def select(builder: Builder, condition: Scalar, a: Value, b: Value) -> Scalar:
    """`a if condition else b`"""
    left, right = _operand(builder, a, b), _operand(builder, b, a)
    expression = ("select", plan_of(condition), plan_of(left), plan_of(right))
    if left.dtype == right.dtype and not left.dtype.is_int:
        return builder.planned(expression, left.dtype, left.facts.join(right.facts).at(Uniformity.GRID), "chosen")
    if left.dtype.is_float or right.dtype.is_float:
        raise _refuse(f"a choice between {describe(a)} and {describe(b)}")
    base = dtypes.promote(_declared(builder, left), _declared(builder, right))
    return _number(builder, expression, base, left.facts.join(right.facts))
