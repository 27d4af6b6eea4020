"""Which names a piece of a function's source binds, reads and captures, whatever the order.

Follows Python's scopes: the body of a nested `def`, `lambda` or class is another scope, and so are the targets of
a comprehension (but a walrus in it binds outside). The order in which things happen is `liveness`'s.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from typing import TypeAlias

Names: TypeAlias = frozenset[str]
NONE: Names = frozenset()

Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
AnyFunction: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound(nodes: Iterable[ast.AST]) -> Names:
    """The names that `nodes` may bind in the scope that they stand in."""
    return _union(map(_bound, nodes))


@functools.lru_cache(maxsize=4096)  # asked for whenever a loop or branch is traced; nobody changes a tree
def _bound(node: ast.AST) -> Names:
    return frozenset(name for part in _same_scope(node) for name in _binds(part))


def parameters(function: AnyFunction) -> Names:
    """The names of a function's parameters."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return frozenset(parameter.arg for parameter in every if parameter is not None)


def body_of(function: AnyFunction) -> list[ast.AST]:
    """Its statements; the expression of a lambda."""
    return [function.body] if isinstance(function, ast.Lambda) else list(function.body)


def local(function: AnyFunction) -> Names:
    """The names that belong to a function: parameters, and what its body binds and does not declare otherwise."""
    body = body_of(function)
    return (parameters(function) | bound(body)) - _declared(body, (ast.Global, ast.Nonlocal))


def reads(node: ast.AST) -> Names:
    """The names of its own scope that `node` may read, at once or (in nested functions) later."""
    if isinstance(node, ast.Name):
        return frozenset((node.id,)) if isinstance(node.ctx, ast.Load | ast.Del) else NONE
    if isinstance(node, SCOPES):
        return _union(reads(part) for part in outside(node)) | free(node)
    if isinstance(node, COMPREHENSIONS):
        return _comprehension_reads(node)
    inside = _union(reads(child) for child in ast.iter_child_nodes(node))
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return inside | {node.target.id}
    return inside


def free(scope: AnyFunction | ast.ClassDef) -> Names:
    """The names that a nested scope reads and does not bind: it sees them when it runs."""
    if isinstance(scope, ast.ClassDef):  # its names do not hide outer ones from its functions
        return _union(reads(part) for part in scope.body)
    body = body_of(scope)
    return _union(reads(part) for part in body) - local(scope) - _declared(body, (ast.Global,))


def makes_functions(body: Iterable[ast.AST]) -> bool:
    """Whether something in `body` may read names later: `captured` of a part is empty otherwise."""
    kinds = (*SCOPES, ast.GeneratorExp)
    return any(isinstance(part, kinds) for node in body for part in ast.walk(node))


def captured(node: ast.AST) -> Names:
    """The names that something which `node` makes may read later: nested functions, and generators that are kept."""
    found = NONE
    consumed = set()
    for part in _same_scope(node):
        if isinstance(part, ast.Call):  # sum(x for x in xs) runs at once
            consumed |= {argument for argument in part.args if isinstance(argument, ast.GeneratorExp)}
        if isinstance(part, SCOPES):
            found |= free(part)
        if isinstance(part, ast.GeneratorExp) and part not in consumed:
            found |= reads(part)
    return found


def _union(sets: Iterable[Names]) -> Names:
    return NONE.union(*sets)


def _declared(body: Iterable[ast.AST], kinds: tuple[type[ast.Global] | type[ast.Nonlocal], ...]) -> Names:
    parts = (part for node in body for part in _same_scope(node))
    return frozenset(name for part in parts if isinstance(part, kinds) for name in part.names)


def outside(scope: AnyFunction | ast.ClassDef) -> list[ast.expr]:
    """What a nested definition evaluates where it stands: decorators, defaults, annotations, bases."""
    if isinstance(scope, ast.ClassDef):
        return [*scope.decorator_list, *scope.bases, *(keyword.value for keyword in scope.keywords)]
    parts = [*scope.args.defaults, *(default for default in scope.args.kw_defaults if default is not None)]
    if isinstance(scope, ast.Lambda):
        return parts
    given = scope.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    parts = [*scope.decorator_list, *parts]
    parts += [item.annotation for item in every if item is not None and item.annotation is not None]
    return parts + ([scope.returns] if scope.returns is not None else [])


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """`node` and the nodes under it that belong to its scope, in order."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += reversed([*_parts(part)])


def _parts(node: ast.AST) -> Iterable[ast.AST]:
    """The nodes right under one that belong to its scope."""
    if isinstance(node, SCOPES):
        return outside(node)
    if isinstance(node, ast.comprehension):
        return [node.iter, *node.ifs]
    if isinstance(node, ast.AnnAssign) and node.value is None and isinstance(node.target, ast.Name):
        return []
    return ast.iter_child_nodes(node)


def _binds(node: ast.AST) -> list[str]:
    """The names that this one node binds."""
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Store) else []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).split(".")[0]]
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


def _comprehension_reads(node: Comprehension) -> Names:
    first = node.generators[0].iter  # is evaluated outside
    targets = frozenset(
        part.id
        for generator in node.generators
        for part in ast.walk(generator.target)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    )
    inside = _union(reads(child) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.comprehension))
    for generator in node.generators:
        parts = [generator.target, *generator.ifs, *([] if generator.iter is first else [generator.iter])]
        inside |= _union(reads(part) for part in parts)
    return reads(first) | (inside - targets)
