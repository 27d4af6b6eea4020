"""Python's builtins on values of the device: numbers are computed, the rest arranges values while tracing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.branches import short_circuit
from warpjit.frontend.calls import BUILTINS, call, convert
from warpjit.frontend.containers import python
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, TensorValue, Value, is_kernel_value, is_number
from warpjit.ir import dtypes


def _items(value: Value, function: str) -> list[Value]:
    if isinstance(value, Scalar | TensorValue) or not isinstance(value, Iterable):
        raise TraceError(f"{function}: expected a tuple but got {arithmetic.describe(value)}")
    return list(value)


def _extreme(op: str) -> Callable[..., Value]:
    def run(tracer: Tracer, first: Value, *more: Value) -> Value:
        items = [first, *more] if more else _items(first, op)
        result = items[0]
        for item in items[1:]:
            static = is_number(result) and is_number(item)
            pick = min if op == "min" else max
            result = pick(result, item) if static else arithmetic.binary(tracer.builder, op, result, item)
        return result

    return run


def _absolute(tracer: Tracer, value: Value) -> Value:
    return arithmetic.unary(tracer.builder, "abs", tracer.scalar(value))


def _length(tracer: Tracer, value: Value) -> Value:
    return value.shape[0] if isinstance(value, TensorValue) else len(_items(value, "len"))


def _is_instance(tracer: Tracer, value: Value, kind: Any) -> Value:
    return python(isinstance, value, kind)


def _sum(tracer: Tracer, items: Value, start: Value = 0) -> Value:
    total = start
    for item in _items(items, "sum"):
        total = (
            total + item
            if is_number(total) and is_number(item)
            else arithmetic.binary(tracer.builder, "add", total, item)
        )
    return total


def _sequence(function: Callable[..., Any]) -> Callable[..., Value]:
    """A builtin that only arranges values."""

    def run(tracer: Tracer, first: Value, *more: Value, **options: Value) -> Value:
        name = function.__name__
        sequences = [first, *more] if function is zip else [first]
        lists = [_items(value, name) for value in sequences]
        return python(lambda: tuple(function(*lists, *([] if function is zip else more), **options)))

    return run


def quantify(tracer: Tracer, op: str, items: Sequence[Callable[[], Value]]) -> Value:
    """`any` ("or") and `all` ("and"): an item is evaluated only where those before it leave the result open."""

    def truth(item: Callable[[], Value]) -> Callable[[], Value]:
        def run() -> Value:
            value = tracer.decisive(item())
            return arithmetic.truth(tracer.builder, value) if isinstance(value, Scalar) else bool(value)

        return run

    return short_circuit(tracer, op, [truth(item) for item in items]) if items else op == "and"


def _quantifier(op: str, name: str) -> Callable[..., Value]:
    def run(tracer: Tracer, items: Value) -> Value:
        return quantify(tracer, op, [lambda item=item: item for item in _items(items, name)])  # type: ignore[misc]

    return run


def _map(tracer: Tracer, function: Value, *sequences: Value) -> Value:
    lists = [_items(each, "map") for each in sequences]
    return tuple(call(tracer, function, list(args), {}) for args in zip(*lists, strict=False))


def _sorted(tracer: Tracer, items: Value, *, key: Value = None, reverse: Value = False) -> Value:
    values = _items(items, "sorted")
    keys = [value if key is None else call(tracer, key, [value], {}) for value in values]
    if is_kernel_value(keys):
        raise TraceError("sorted: device values have no order that is known while tracing")
    order = python(sorted, range(len(values)), key=keys.__getitem__, reverse=reverse)
    return [values[index] for index in order]


def _dict(tracer: Tracer, items: Value = (), /, **named: Value) -> Value:
    return python(dict, items, **named)


BUILTINS.update(
    {
        min: _extreme("min"),
        max: _extreme("max"),
        abs: _absolute,
        int: lambda tracer, value: convert(tracer, value, dtypes.int32),
        float: lambda tracer, value: convert(tracer, value, dtypes.float32),
        bool: lambda tracer, value: arithmetic.truth(tracer.builder, value),
        len: _length,
        isinstance: _is_instance,
        sum: _sum,
        zip: _sequence(zip),
        enumerate: _sequence(enumerate),
        reversed: _sequence(reversed),
        tuple: _sequence(tuple),
        list: lambda tracer, items: _items(items, "list"),
        any: _quantifier("or", "any"),
        all: _quantifier("and", "all"),
        map: _map,
        sorted: _sorted,
        dict: _dict,
    }
)
