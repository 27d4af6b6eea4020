"""Comprehensions and generators over what is known while tracing: Python's loop, run by the tracer.

Their targets are names of a scope of their own, as in Python; the items may be values of the device. A generator
stands as the argument of a call: it is a tuple there, but for `any` and `all`, which stop where Python's do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.containers import made, python
from warpjit.frontend.loops import MAX_EXPANDED, Unrolled, iterable
from warpjit.frontend.names import Comprehension
from warpjit.frontend.ranges import Range
from warpjit.frontend.scope import Scope
from warpjit.frontend.targets import assign
from warpjit.frontend.tracer import EXPRESSIONS, Tracer
from warpjit.frontend.values import Scalar, Value, is_kernel_value

_SHELLS: dict[Comprehension, ast.Lambda] = {}
"""For each comprehension a function whose parameters are its targets: what its scope calls its own names."""


def _shell(node: Comprehension) -> ast.Lambda:
    found = _SHELLS.get(node)
    if found is None:
        targets = [part for generator in node.generators for part in ast.walk(generator.target)]
        names = dict.fromkeys(part.id for part in targets if isinstance(part, ast.Name))
        given = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        found = _SHELLS[node] = ast.Lambda(given, ast.copy_location(ast.Constant(None), node))
    return found


def _scope(tracer: Tracer, node: Comprehension) -> Scope:
    outer = tracer.scope
    return Scope(
        outer.source,
        None,
        node=_shell(node),
        parent=outer,
        outer=outer.outer,
        owner=outer.owner,
        captures=tracer.captures,
    )


def _within(tracer: Tracer, scope: Scope, run: Callable[[], Value]) -> Value:
    """What `run` gives with the names of `scope`."""
    outer, tracer.scope = tracer.scope, scope
    try:
        return run()
    finally:
        tracer.scope = outer


def _items(tracer: Tracer, node: ast.expr) -> Sequence[Value]:
    items = tracer.evaluate(node)
    if isinstance(items, Range):
        raise TraceError("a comprehension over a range of the device: its length must be known while tracing")
    items = items.items if isinstance(items, Unrolled) else python(tuple, iterable(items))
    if len(items) > MAX_EXPANDED:
        raise TraceError(f"a comprehension over more than {MAX_EXPANDED:,} items")
    return items


def _rounds(tracer: Tracer, node: Comprehension, scope: Scope, depth: int = 0) -> Iterator[None]:
    """Comes by once for each item of the result, with the targets bound in `scope`."""
    generator = node.generators[depth]
    items = (
        _items(tracer, generator.iter) if depth == 0 else _within(tracer, scope, lambda: _items(tracer, generator.iter))
    )

    def take(item: Value) -> bool:
        assign(tracer, generator.target, item)
        for test in generator.ifs:
            value = tracer.condition(test)
            if isinstance(value, Scalar):
                raise TraceError("the condition of a comprehension must be known while tracing")
            if not value:
                return False
        return True

    for item in items:
        if not _within(tracer, scope, lambda item=item: take(item)):  # type: ignore[misc]
            continue
        if depth + 1 < len(node.generators):
            yield from _rounds(tracer, node, scope, depth + 1)
        else:
            yield


def _collect(tracer: Tracer, node: Comprehension, item: Callable[[], Value]) -> list[Value]:
    scope = _scope(tracer, node)
    return [_within(tracer, scope, item) for _ in _rounds(tracer, node, scope)]


def _list(tracer: Tracer, node: ast.ListComp) -> Value:
    return made(tracer, _collect(tracer, node, lambda: tracer.evaluate(node.elt)))


def _dict(tracer: Tracer, node: ast.DictComp) -> Value:
    def item() -> Value:
        key = tracer.evaluate(node.key)
        if is_kernel_value(key):
            raise TraceError(f"a key of a dictionary must be known while tracing, not {arithmetic.describe(key)}")
        return key, tracer.evaluate(node.value)

    return made(tracer, python(dict, _collect(tracer, node, item)))


def generator(tracer: Tracer, node: ast.GeneratorExp) -> tuple[Value, ...]:
    """All items of a generator that is consumed at once."""
    return tuple(_collect(tracer, node, lambda: tracer.evaluate(node.elt)))


def lazily(tracer: Tracer, node: ast.GeneratorExp) -> list[Callable[[], Value]]:
    """For each item what evaluates it, where it is asked for."""
    scope = _scope(tracer, node)
    rounds: list[dict[str, Any]] = [dict(scope.names) for _ in _rounds(tracer, node, scope)]

    def later(names: dict[str, Any]) -> Callable[[], Value]:
        def item() -> Value:
            scope.names = dict(names)
            return tracer.condition(node.elt)

        return lambda: _within(tracer, scope, item)

    return [later(names) for names in rounds]


def _refuse(tracer: Tracer, node: ast.GeneratorExp) -> Value:
    raise TraceError(
        "a generator can only be the argument of tuple, list, sum, min, max, any, all, …: make a tuple of it"
    )


EXPRESSIONS.update({ast.ListComp: _list, ast.DictComp: _dict, ast.GeneratorExp: _refuse})
