"""Simple statements: assignment in its forms, calls for their effect, nested functions, and `pass`."""

from __future__ import annotations

import ast

from warpjit.errors import TraceError
from warpjit.frontend import memory
from warpjit.frontend.calls import convert
from warpjit.frontend.classes import assign_attribute, check_assignable
from warpjit.frontend.closure import Closure
from warpjit.frontend.containers import ContainerMethod, call_method, set_item
from warpjit.frontend.debugging import debugs, in_debug
from warpjit.frontend.expressions import attribute, binary, subscript
from warpjit.frontend.language.types import ScalarType
from warpjit.frontend.targets import assign, element
from warpjit.frontend.tracer import STATEMENTS, Tracer


def _assign(tracer: Tracer, node: ast.Assign) -> None:
    tracer.hint = next((target.id for target in node.targets if isinstance(target, ast.Name)), "")
    value = tracer.evaluate(node.value)
    tracer.hint = ""
    for target in node.targets:
        tracer.builder.loc = tracer.scope.loc(node)
        assign(tracer, target, value)


def _aug_assign(tracer: Tracer, node: ast.AugAssign) -> None:
    """The target's parts are evaluated once, before the value."""
    kind = type(node.op)
    if isinstance(node.target, ast.Name):
        old = tracer.evaluate(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        value = tracer.evaluate(node.value)
        tracer.builder.loc = tracer.scope.loc(node)
        if isinstance(old, list) and kind is ast.Add:  # in place: other names of the list see it
            call_method(tracer, ContainerMethod(old, "extend"), [value], {})
            return
        assign(tracer, node.target, binary(tracer, kind, old, value))
        return
    if isinstance(node.target, ast.Attribute):
        _aug_attribute(tracer, node, node.target)
        return
    holder = tracer.evaluate(node.target.value)
    if isinstance(holder, list | dict):
        index = tracer.evaluate(node.target.slice)
        old = subscript(tracer, holder, index)
        set_item(tracer, holder, index, binary(tracer, kind, old, tracer.evaluate(node.value)))
        return
    owner, items = element(tracer, node.target, holder)
    place = memory.indices(owner, items)
    old = memory.load(tracer.builder, owner, place)
    value = tracer.evaluate(node.value)
    tracer.builder.loc = tracer.scope.loc(node)
    memory.store(tracer.builder, owner, place, binary(tracer, kind, old, value))


def _aug_attribute(tracer: Tracer, node: ast.AugAssign, target: ast.Attribute) -> None:
    owner = tracer.evaluate(target.value)
    check_assignable(tracer, owner, target.attr)
    old = attribute(tracer, owner, target.attr)
    if isinstance(old, list) and isinstance(node.op, ast.Add):
        call_method(tracer, ContainerMethod(old, "extend"), [tracer.evaluate(node.value)], {})
        return
    value = tracer.evaluate(node.value)
    tracer.builder.loc = tracer.scope.loc(node)
    assign_attribute(tracer, owner, target.attr, binary(tracer, type(node.op), old, value))


def _ann_assign(tracer: Tracer, node: ast.AnnAssign) -> None:
    """`x: T.int32 = 0` converts; any other annotation is only a note to the reader."""
    if node.value is None:
        return
    kind = tracer.evaluate(node.annotation)
    value = tracer.evaluate(node.value)
    tracer.builder.loc = tracer.scope.loc(node)
    assign(tracer, node.target, convert(tracer, value, kind.dtype) if isinstance(kind, ScalarType) else value)


def _expression(tracer: Tracer, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return  # a docstring or a comment in quotes
    if debugs(tracer, node.value):
        in_debug(tracer, lambda: tracer.evaluate(node.value))
        return
    value = tracer.evaluate(node.value)
    if not isinstance(node.value, ast.Call | ast.NamedExpr) and value is not None:
        raise TraceError("this expression has no effect")


def _pass(tracer: Tracer, node: ast.Pass) -> None:
    return


def _function(tracer: Tracer, node: ast.FunctionDef) -> None:
    if node.decorator_list:
        raise TraceError(f"{node.name}: a function inside a kernel cannot have decorators")
    tracer.bind(node.name, Closure.of(tracer, node))


STATEMENTS.update(
    {
        ast.Assign: _assign,
        ast.AugAssign: _aug_assign,
        ast.AnnAssign: _ann_assign,
        ast.Expr: _expression,
        ast.Pass: _pass,
        ast.FunctionDef: _function,
    }
)
