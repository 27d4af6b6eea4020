"""How the values of a name meet where control paths meet: at the end of branches and of loop iterations.

A value that both paths share stays what it is. Numbers meet in a typed local of the device, which each path
assigns where it ends. Tuples and frozen dataclasses of one structure meet part by part. What is no number and has no
parts (a tensor, a layout, a string) cannot meet another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from warpjit.errors import Finding, Loc, Note
from warpjit.frontend import arithmetic
from warpjit.frontend.structure import alike, mapped, pairs, parts
from warpjit.frontend.tracer import Reject, Tracer
from warpjit.frontend.values import KernelObject, Poison, Scalar, Unbound, Value, is_number
from warpjit.ir import dtypes
from warpjit.ir.dtypes import DType
from warpjit.ir.nodes import Assign, Local
from warpjit.record import record

RESULT, RETURNED = "return value", "has returned"
"""Names of a helper: what it returns, and whether a `return` in a loop has ended it."""


@record
class Bound:
    """A name's value at the end of a path, and where it got it."""

    value: Value
    loc: Loc


def same(a: Value, b: Value) -> bool:
    """Whether two paths left the very same value."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Unbound | KernelObject):
        return False
    if alike(a, b):
        return all(same(pair.a, pair.b) for pair in pairs("", a, b))
    if isinstance(a, Scalar) and a.dtype == b.dtype and a.linear is not None and a.linear == b.linear:
        return True
    try:
        if isinstance(a, float):
            return repr(a) == repr(b)
        return bool(a == b)
    except Exception:
        return False


def or_zero(tracer: Tracer, bound: Bound, other: Bound) -> Bound:
    """A value; where there is none, zeros in place of the numbers of another."""

    def zero(key: str, leaf: Value) -> Value:
        dtype = number_type(leaf)
        return leaf if dtype is None else arithmetic.literal(tracer.builder, 0, dtype)

    return Bound(mapped("", other.value, zero), other.loc) if isinstance(bound.value, Unbound) else bound


def number_type(value: Value) -> DType | None:
    """The device type of a number; None for what is no number."""
    if isinstance(value, Scalar):
        return value.dtype
    for kind, dtype in ((bool, dtypes.bool_), (int, dtypes.int32), (float, dtypes.float32)):
        if isinstance(value, kind):
            return dtype
    return None


def meeting_type(tracer: Tracer, name: str, values: Sequence[Bound], at: Loc) -> DType:
    """The one type of a name that several paths give a number; Reject names both types and both lines."""
    for bound in values:
        if number_type(bound.value) is None:
            _check_shapes(name, values, at)
            others = [other for other in values if other is not bound]
            notes = [Note(f"{name} is {kind(bound.value)} from here", bound.loc)]
            notes += [Note(f"and {kind(other.value)} from here", other.loc) for other in others[:1]]
            message = (
                f"{name} would be carried by the control flow, but {kind(bound.value)} cannot be: only numbers can"
            )
            raise Reject(Finding(message, at, tuple(notes)))
    typed = [bound for bound in values if isinstance(bound.value, Scalar)]
    if not typed:
        return _literal_type(name, values, at)
    first = typed[0]
    assert isinstance(first.value, Scalar)
    for other in typed[1:]:
        if other.value.dtype != first.value.dtype:
            raise _differ(name, first, other, at)
    for other in values:
        if is_number(other.value):
            if not _meets(other.value, first.value.dtype):
                raise _differ(
                    name, *((other, first) if values.index(other) < values.index(first) else (first, other)), at
                )
            arithmetic.literal(tracer.builder, other.value, first.value.dtype)
    return first.value.dtype


def _check_shapes(name: str, values: Sequence[Bound], at: Loc) -> None:
    """Reject values of which some have parts, and not the same ones: names both kinds and both lines."""
    if len(values) < 2 or all(parts(bound.value) is None for bound in values):
        return
    first, second = values[:2]
    notes = (Note(f"{kind(first.value)} from here", first.loc), Note(f"{kind(second.value)} from here", second.loc))
    raise Reject(Finding(f"{name} would change from {kind(first.value)} to {kind(second.value)}", at, notes))


def hint(key: str) -> str:
    """A name for the local that holds a part: "state.stage" is state_stage."""
    return re.sub(r"\W+", "_", key).strip("_")


def _literal_type(name: str, values: Sequence[Bound], at: Loc) -> DType:
    kinds = [number_type(bound.value) for bound in values]
    if dtypes.float32 in kinds and dtypes.bool_ not in kinds:
        return dtypes.float32
    for bound, dtype in zip(values, kinds, strict=True):
        if dtype != kinds[0]:
            raise _differ(name, values[0], bound, at)
    assert kinds[0] is not None
    return kinds[0]


def _meets(literal: Value, dtype: DType) -> bool:
    """Whether a static number is of the kind of a type."""
    return isinstance(literal, bool) == dtype.is_bool and not (isinstance(literal, float) and dtype.is_int)


def _differ(name: str, a: Bound, b: Bound, at: Loc) -> Reject:
    types = [number_type(bound.value) for bound in (a, b)]
    notes = (Note(f"{types[0]} from here", a.loc), Note(f"{types[1]} from here", b.loc))
    return Reject(
        Finding(f"{name} would change its type from {types[0]} to {types[1]}: convert one of them", at, notes)
    )


def kind(value: Value) -> str:
    """A value's kind in a sentence."""
    names = {
        "KernelDict": "a dictionary",
        "KernelList": "a list",
        "TensorValue": "a tensor",
        "str": "a string",
        "NoneType": "None",
        "Pointer": "a pointer",
    }
    dtype = number_type(value)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return f"a tuple of {len(value)}"
    return (
        f"{'an' if dtype.name[0] in 'aeiou' else 'a'} {dtype}"
        if dtype is not None
        else names.get(type(value).__name__, f"a {type(value).__name__}")
    )


def lift(tracer: Tracer, value: Value, dtype: DType) -> Scalar:
    """A number as a scalar of the meeting type."""
    if isinstance(value, Scalar):
        return value
    return arithmetic.literal(tracer.builder, value, dtype)


def assign_all(tracer: Tracer, pairs: Sequence[tuple[Local, Scalar]]) -> None:
    """Assign several carried locals at once: what one of them is read for is copied first if it is overwritten."""
    builder = tracer.builder
    atoms = [(local, builder.atom(value)) for local, value in pairs]
    targets = {local for local, _ in pairs}
    moved: dict[Any, Any] = {}
    for local, atom in atoms:
        if atom in targets and atom != local and isinstance(atom, Local):
            if atom not in moved:
                copy = builder.local("t", atom.dtype, builder.facts_of(atom))
                builder.emit(Assign(copy, atom, loc=builder.loc))
                moved[atom] = copy
    for local, atom in atoms:
        if atom != local:
            builder.emit(Assign(local, moved.get(atom, atom), loc=builder.loc))


def poisoned(values: Sequence[Bound]) -> bool:
    return any(isinstance(bound.value, Poison) for bound in values)


def unbound(values: Sequence[Bound]) -> bool:
    return any(isinstance(bound.value, Unbound) for bound in values)
