"""Assignment targets: names, tuples of targets, elements of tensors, items of lists and dictionaries,
attributes."""

from __future__ import annotations

import ast

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory
from warpjit.frontend.classes import assign_attribute
from warpjit.frontend.containers import made, set_item
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import TensorValue, Value


def assign(tracer: Tracer, target: ast.expr, value: Value) -> None:
    """`target = value`."""
    if isinstance(target, ast.Name):
        tracer.bind(target.id, value)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(tracer, target.elts, value)
    elif isinstance(target, ast.Subscript):
        holder = tracer.evaluate(target.value)
        if isinstance(holder, list | dict):
            set_item(tracer, holder, tracer.evaluate(target.slice), value)
            return
        owner, items = element(tracer, target, holder)
        memory.store(tracer.builder, owner, memory.indices(owner, items), value)
    else:
        assert isinstance(target, ast.Attribute)  # all that Python has
        assign_attribute(tracer, tracer.evaluate(target.value), target.attr, value)


def element(tracer: Tracer, target: ast.Subscript, owner: Value) -> tuple[TensorValue, tuple[Value, ...]]:
    """The tensor, which is `owner`, and the items of `owner[items]` as a target, evaluated once."""
    if not isinstance(owner, TensorValue):
        raise TraceError(f"expected a tensor whose element is assigned but got {arithmetic.describe(owner)}")
    tracer.require_device("a store")
    index = tracer.evaluate(target.slice)
    items = index if isinstance(index, tuple) else (index,)
    if any(isinstance(item, slice) for item in items):
        raise TraceError(f"a slice of {owner.name} cannot be assigned: store element by element, or use an instruction")
    return owner, items


def _unpack(tracer: Tracer, targets: list[ast.expr], value: Value) -> None:
    if not isinstance(value, tuple | list | range):
        raise TraceError(f"expected a tuple to unpack into {len(targets)} names but got {arithmetic.describe(value)}")
    stars = [index for index, target in enumerate(targets) if isinstance(target, ast.Starred)]
    values = list(value)
    if stars:
        first = stars[0]
        after = len(targets) - first - 1
        if len(values) < len(targets) - 1:
            raise TraceError(f"expected at least {len(targets) - 1} values to unpack but got {len(values)}")
        middle = made(tracer, values[first : len(values) - after])
        values = [*values[:first], middle, *values[len(values) - after :]]
    if len(values) != len(targets):
        raise TraceError(f"expected {len(targets)} values to unpack but got {len(values)}")
    for target, item in zip(targets, values, strict=True):
        assign(tracer, target.value if isinstance(target, ast.Starred) else target, item)
