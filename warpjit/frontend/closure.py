"""A function defined inside a kernel or helper: its syntax, and the scope whose names it sees when it runs."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpjit.frontend.scope import Scope
from warpjit.frontend.values import Value

if TYPE_CHECKING:
    from warpjit.frontend.tracer import Tracer


@dataclass(frozen=True, eq=False)
class Closure:
    """`defaults` are evaluated where the function is defined, as Python does."""

    node: ast.FunctionDef | ast.Lambda
    scope: Scope
    defaults: dict[str, Value]

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    @classmethod
    def of(cls, tracer: Tracer, node: ast.FunctionDef | ast.Lambda) -> Closure:
        args = node.args
        positional = [*args.posonlyargs, *args.args]
        pairs: list[tuple[ast.arg, Any]] = list(
            zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True)
        )
        pairs += [(arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default]
        return cls(node, tracer.scope, {arg.arg: tracer.evaluate(default) for arg, default in pairs})
