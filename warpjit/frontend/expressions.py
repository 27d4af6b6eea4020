"""What each kind of expression means. What is static is computed by Python's own operators."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Iterable, KeysView, ValuesView
from types import BuiltinFunctionType, FunctionType
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, classes, memory, pairs, slices
from warpjit.frontend.addresses import static_int
from warpjit.frontend.branches import choose, short_circuit
from warpjit.frontend.builtin_functions import quantify
from warpjit.frontend.calls import CALLABLE_OBJECTS, call, for_device
from warpjit.frontend.closure import Closure
from warpjit.frontend.comprehensions import generator, lazily
from warpjit.frontend.containers import made, method, python
from warpjit.frontend.language.types import Dynamic
from warpjit.frontend.methods import ATTRIBUTES, METHODS
from warpjit.frontend.ranges import Range
from warpjit.frontend.texts import formatted, joined
from warpjit.frontend.tracer import CONDITIONS, EXPRESSIONS, Tracer
from warpjit.frontend.values import Method, Pointer, Scalar, TensorValue, Text, Value, is_kernel_value, of_user

BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.LShift: ("shl", operator.lshift),
    ast.RShift: ("shr", operator.rshift),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
}
UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("neg", operator.neg),
    ast.UAdd: ("pos", operator.pos),
    ast.Invert: ("invert", operator.invert),
}
COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
    ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("not in", lambda a, b: a not in b),
}


def binary(tracer: Tracer, kind: type[ast.operator], left: Value, right: Value) -> Value:
    """`left kind right` on any values."""
    name, function = BINARY[kind]
    left, right = _size(tracer, left), _size(tracer, right)
    if isinstance(left, Pointer) or isinstance(right, Pointer):
        return memory.moved(tracer.builder, name, left, right)
    if not isinstance(left, Scalar) and not isinstance(right, Scalar):
        for side in (left, right):
            if isinstance(side, TensorValue):
                raise _no_operand(name, side)
            if is_kernel_value(side) and not isinstance(side, tuple | list):
                raise TraceError(f"{name} of {arithmetic.describe(side)}: operations work on its attributes")
        return made(tracer, python(function, left, right))
    if name == "pow":
        return _power(tracer, left, right)
    if name == "matmul":
        raise TraceError("@ is not defined for scalars")
    return arithmetic.binary(tracer.builder, name, left, right)


def _no_operand(name: str, value: TensorValue | Pointer) -> TraceError:
    return TraceError(f"{name}: expected a number but got {arithmetic.describe(value)}: read an element with an index")


def _size(tracer: Tracer, value: Value) -> Value:
    """A captured `T.dynamic` size is the scalar that it was bound to."""
    if isinstance(value, Dynamic):
        if value.name not in tracer.sizes:
            raise TraceError(f"T.dynamic({value.name!r}): expected the size of a parameter, but none has it")
        return tracer.sizes[value.name]
    return value


def _power(tracer: Tracer, base: Value, exponent: Value) -> Value:
    if not isinstance(exponent, int) or not 1 <= exponent <= 16:
        raise TraceError(
            f"**: expected an exponent from 1 to 16, known while tracing, but got {arithmetic.describe(exponent)}"
        )
    result = base
    for _ in range(exponent - 1):
        result = arithmetic.binary(tracer.builder, "mul", result, base)
    return result


QUANTIFIERS: dict[Any, str] = {any: "or", all: "and"}


def _constant(tracer: Tracer, node: ast.Constant) -> Value:
    return node.value


def _name(tracer: Tracer, node: ast.Name) -> Value:
    value = tracer.read(node.id)
    return _size(tracer, value) if isinstance(value, Dynamic) else value


def _bin_op(tracer: Tracer, node: ast.BinOp) -> Value:
    left = tracer.evaluate(node.left)
    return binary(tracer, type(node.op), left, tracer.evaluate(node.right))


def _unary_op(tracer: Tracer, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        return _not(tracer, node)
    name, function = UNARY[type(node.op)]
    value = tracer.evaluate(node.operand)
    if isinstance(value, TensorValue | Pointer):
        raise _no_operand(name, value)
    if not isinstance(value, Scalar):
        return python(function, value)
    return value if name == "pos" else arithmetic.unary(tracer.builder, name, value)


def _not(tracer: Tracer, node: ast.UnaryOp) -> Value:
    value = tracer.condition(node.operand)
    if not isinstance(value, Scalar):
        return not value
    return arithmetic.negate(tracer.builder, arithmetic.truth(tracer.builder, value))


def compare(tracer: Tracer, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
    name, function = COMPARE[kind]
    if name not in ("is", "is not") and isinstance(left, TensorValue | Pointer) | isinstance(
        right, TensorValue | Pointer
    ):
        raise _no_operand(name, left if isinstance(left, TensorValue | Pointer) else right)
    if name in ("is", "is not"):
        return (name == "is not") != (left is right)
    if name in ("in", "not in"):
        return _contained(tracer, name, left, right)
    if not isinstance(left, Scalar) and not isinstance(right, Scalar):
        if left is not None and right is not None and (is_kernel_value(left) or is_kernel_value(right)):
            raise TraceError(f"{name!r} of what holds device values: compare its items, one by one")
        return python(function, left, right)
    if left is None or right is None:
        raise TraceError(f"{name}: expected two numbers to compare but got None")
    for side, other in ((left, right), (right, left)):
        if isinstance(side, int) and not isinstance(side, bool):
            tracer.thresholds.note(other, side)
    return arithmetic.compare(tracer.builder, name, left, right)


def _contained(tracer: Tracer, name: str, left: Value, right: Value) -> Value:
    """`left in right`: static, or a comparison with each item."""
    if isinstance(right, Range):
        raise TraceError(f"{name!r} of a range of device values: compare with its ends, start <= x < stop")
    if not is_kernel_value(left) and (isinstance(right, dict | KeysView) or not is_kernel_value(right)):
        return python(COMPARE[ast.In if name == "in" else ast.NotIn][1], left, right)
    if not isinstance(right, tuple | list | range | ValuesView):
        raise TraceError(f"{name!r} of device values: expected a tuple of numbers but got {arithmetic.describe(right)}")
    items = [lambda item=item: compare(tracer, ast.Eq, left, item) for item in right]
    found = short_circuit(tracer, "or", items) if items else False
    if not isinstance(found, Scalar):
        return bool(found) != (name == "not in")
    return found if name == "in" else arithmetic.negate(tracer.builder, found)


def _compare(tracer: Tracer, node: ast.Compare) -> Value:
    """A chain evaluates each operand once, and no further than the first False."""
    left = tracer.evaluate(node.left)
    if len(node.ops) == 1:
        return compare(tracer, type(node.ops[0]), left, tracer.evaluate(node.comparators[0]))
    values = [left]

    def link(index: int) -> Callable[[], Value]:
        def run() -> Value:
            values.append(tracer.evaluate(node.comparators[index]))
            return compare(tracer, type(node.ops[index]), values[index], values[index + 1])

        return run

    return short_circuit(tracer, "and", [link(index) for index in range(len(node.ops))])


def _bool_op(tracer: Tracer, node: ast.BoolOp) -> Value:
    op = "and" if isinstance(node.op, ast.And) else "or"

    def operand(value: ast.expr) -> Callable[[], Value]:
        def run() -> Value:
            result = tracer.evaluate(value)
            if isinstance(result, Scalar) and not result.dtype.is_bool:
                raise TraceError(
                    f"{op}: expected bools but got {arithmetic.describe(result)}: compare it, since {op!r} gives a "
                    "bool on the device"
                )
            return result

        return run

    return short_circuit(tracer, op, [operand(value) for value in node.values])


def _bool_condition(tracer: Tracer, node: ast.BoolOp) -> Value:
    op = "and" if isinstance(node.op, ast.And) else "or"
    return short_circuit(tracer, op, [functools.partial(tracer.condition, value) for value in node.values])


def _if_exp(tracer: Tracer, node: ast.IfExp) -> Value:
    test = tracer.condition(node.test)
    if not isinstance(test, Scalar):
        return tracer.evaluate(node.body if test else node.orelse)
    return choose(tracer, test, lambda: tracer.evaluate(node.body), lambda: tracer.evaluate(node.orelse))


def _tuple(tracer: Tracer, node: ast.Tuple) -> Value:
    return tuple(_items(tracer, node.elts))


def _list(tracer: Tracer, node: ast.List) -> Value:
    return made(tracer, list(_items(tracer, node.elts)))


def _dict(tracer: Tracer, node: ast.Dict) -> Value:
    result: dict[Value, Value] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            python(result.update, tracer.evaluate(value))
        else:
            at = tracer.evaluate(key)
            if is_kernel_value(at):
                raise TraceError(f"a key of a dictionary must be known while tracing, not {arithmetic.describe(at)}")
            python(result.__setitem__, at, tracer.evaluate(value))
    return made(tracer, result)


def _items(tracer: Tracer, nodes: list[ast.expr]) -> list[Value]:
    values: list[Value] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            items = tracer.evaluate(node.value)
            if isinstance(items, Scalar | TensorValue) or not isinstance(items, Iterable):
                raise TraceError(f"*: expected a tuple but got {arithmetic.describe(items)}")
            values.extend(_size(tracer, item) for item in items)
        else:
            values.append(tracer.evaluate(node))
    return values


def _slice(tracer: Tracer, node: ast.Slice) -> Value:
    parts = (None if part is None else tracer.evaluate(part) for part in (node.lower, node.upper, node.step))
    return slice(*parts)


def _joined(tracer: Tracer, node: ast.JoinedStr) -> Value:
    return joined([tracer.evaluate(part) for part in node.values])


CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}


def _formatted(tracer: Tracer, node: ast.FormattedValue) -> Value:
    value = tracer.evaluate(node.value)
    spec = tracer.evaluate(node.format_spec) if node.format_spec else ""
    if not isinstance(spec, str):
        raise TraceError("an f-string: the format of a value must be known while tracing, but it holds device values")
    conversion = CONVERSIONS.get(node.conversion)
    if isinstance(value, Scalar) and conversion is None:
        return formatted(value, spec)
    if is_kernel_value(value):
        raise TraceError(f"an f-string: expected numbers and static values but got {arithmetic.describe(value)}")
    return format(value if conversion is None else conversion(value), spec)


def _subscript(tracer: Tracer, node: ast.Subscript) -> Value:
    owner = tracer.evaluate(node.value)
    index = tracer.evaluate(node.slice)
    return subscript(tracer, owner, index)


def subscript(tracer: Tracer, owner: Value, index: Value) -> Value:
    """`owner[index]` in the reading direction."""
    if isinstance(index, Text):
        raise TraceError("expected an index that is known while tracing but got an f-string of device values")
    if isinstance(owner, Method) and owner.name == "sub":
        return slices.subtensor(tracer.builder, owner.owner, index if isinstance(index, tuple) else (index,))
    if isinstance(owner, TensorValue):
        items = index if isinstance(index, tuple) else (index,)
        if any(isinstance(item, slice) for item in items):
            return slices.subtensor(tracer.builder, owner, items)
        tracer.require_device("a load")
        return memory.load(tracer.builder, owner, memory.indices(owner, items))
    if isinstance(owner, Scalar) and owner.dtype.is_pair:
        return pairs.half(tracer.builder, owner, index)
    special = classes.method_of(owner, "__getitem__")
    if special is not None:
        return call(tracer, special, [index], {})
    if isinstance(index, Scalar):
        index = static_int(index, "the index of a tuple")
    if isinstance(owner, Scalar | Pointer):
        raise TraceError(f"{arithmetic.describe(owner)} has no elements")
    if isinstance(index, slice) and is_kernel_value((index.start, index.stop, index.step)):
        parts = (None if part is None else static_int(part, "a slice of a tuple") for part in _parts(index))
        index = slice(*parts)
    item = python(operator.getitem, owner, index)
    return made(tracer, item) if isinstance(index, slice) else _size(tracer, item)


def _parts(index: slice) -> tuple[Value, Value, Value]:
    return index.start, index.stop, index.step


def _attribute(tracer: Tracer, node: ast.Attribute) -> Value:
    return attribute(tracer, tracer.evaluate(node.value), node.attr)


def attribute(tracer: Tracer, owner: Value, name: str) -> Value:
    if isinstance(owner, TensorValue | Scalar | Pointer):
        known = ATTRIBUTES.get(type(owner), {})
        if name in known:
            return known[name](tracer.builder, owner)
        if name in METHODS.get(type(owner), {}) or (isinstance(owner, TensorValue) and name == "sub"):
            return Method(owner, name)
        legal = sorted([*known, *METHODS.get(type(owner), {}), *(["sub"] if isinstance(owner, TensorValue) else [])])
        kinds = {TensorValue: "a tensor", Scalar: "a scalar", Pointer: "a pointer"}
        raise TraceError(f"{kinds[type(owner)]} has no attribute {name!r}; it has {', '.join(legal) or 'none'}")
    found = method(owner, name)
    if found is not None:
        return found
    try:
        user = of_user(type(owner)) and not isinstance(owner, type)
        value = classes.attribute(tracer, owner, name) if user else tracer.scope.attribute(owner, name)
    except AttributeError as error:
        raise TraceError(f"AttributeError: {error}") from None
    return value


def _getattr(tracer: Tracer, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`getattr(owner, "name")`, with or without a default: what `owner.name` is."""
    if kwargs or len(args) not in (2, 3) or type(args[1]) is not str:
        raise TraceError("getattr: expected an object, a name that is known while tracing, and perhaps a default")
    owner, name, *default = args
    if default and not for_device([owner]) and not hasattr(owner, name):
        return tracer.scope.missing(owner, name, default[0])
    return attribute(tracer, owner, name)


CALLABLE_OBJECTS.append((lambda value: value is getattr, _getattr))


def _call(tracer: Tracer, node: ast.Call) -> Value:
    function = tracer.evaluate(node.func)
    alone = node.args[0] if len(node.args) == 1 else None
    if isinstance(alone, ast.GeneratorExp) and not isinstance(function, FunctionType | Closure):
        if isinstance(function, BuiltinFunctionType) and function in QUANTIFIERS:
            return quantify(tracer, QUANTIFIERS[function], lazily(tracer, alone))
        args: list[Value] = [generator(tracer, alone)]
    else:
        args = _items(tracer, node.args)
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        value = tracer.evaluate(keyword.value)
        if keyword.arg is None and not isinstance(value, dict):
            raise TraceError(f"**: expected a dictionary but got {arithmetic.describe(value)}")
        kwargs.update(value if keyword.arg is None else {keyword.arg: value})
    return made(tracer, call(tracer, function, args, kwargs))


def _lambda(tracer: Tracer, node: ast.Lambda) -> Value:
    return Closure.of(tracer, node)


def _named(tracer: Tracer, node: ast.NamedExpr) -> Value:
    value = tracer.evaluate(node.value)
    tracer.bind(node.target.id, value, tracer.scope.owner)
    return tracer.read(node.target.id)


EXPRESSIONS.update(
    {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.BinOp: _bin_op,
        ast.UnaryOp: _unary_op,
        ast.Compare: _compare,
        ast.BoolOp: _bool_op,
        ast.IfExp: _if_exp,
        ast.Tuple: _tuple,
        ast.List: _list,
        ast.Dict: _dict,
        ast.Slice: _slice,
        ast.JoinedStr: _joined,
        ast.FormattedValue: _formatted,
        ast.Subscript: _subscript,
        ast.Attribute: _attribute,
        ast.Call: _call,
        ast.Lambda: _lambda,
        ast.NamedExpr: _named,
    }
)
CONDITIONS.update({ast.BoolOp: _bool_condition})
