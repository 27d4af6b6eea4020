"""The names of one function being traced, and where it looks up what it does not bind itself.

What it takes from outside (globals, closure cells, attributes of modules) is noted as a `Capture`, so that a later
call can see by identity whether the traced program is still the one that Python would run.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from warpjit.errors import Loc, TraceError
from warpjit.frontend.captures import (
    MISSING,
    Capture,
    Captures,
    can_change,
    check_captured,
    of_cell,
    of_globals,
    of_object,
)
from warpjit.frontend.liveness import Liveness
from warpjit.frontend.source import FunctionSource, of_function
from warpjit.frontend.values import Unbound, Value


class Scope:
    """One call of one function, or a comprehension in it.

    parent   the scope that a nested function or a comprehension stands in
    owner    the scope of the function: where a walrus in a comprehension binds
    """

    def __init__(
        self,
        source: FunctionSource,
        function: Callable[..., Any] | None,
        *,
        node: ast.FunctionDef | ast.Lambda | None = None,
        parent: Scope | None = None,
        outer: Loc | None = None,
        owner: Scope | None = None,
        captures: Captures,
    ):
        self.source = source
        self.node = node or source.node
        self.parent = parent
        self.outer = outer
        self.owner = owner or self
        self.names: dict[str, Value] = {}
        self.bound: dict[str, Loc] = {}
        self.liveness = _liveness(self.node)
        self.captures = captures
        self.globals: dict[str, Any] = (
            function.__globals__ if function is not None else (parent.globals if parent else {})
        )
        self.cells = (
            dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)) if function else {}
        )
        self.result: Value = MISSING
        self._locs: dict[ast.AST, Loc] = {}

    @property
    def inlined(self) -> bool:
        return self.outer is not None

    def loc(self, node: ast.AST) -> Loc:
        found = self._locs.get(node)
        if found is None:
            frame = self.source.frame(node)
            found = self._locs[node] = Loc((*self.outer.frames, frame) if self.outer is not None else (frame,))
        return found

    def lookup(self, name: str) -> Value:
        """What `name` means here. TraceError: nothing, or nothing yet."""
        value = self.names.get(name, MISSING)
        if isinstance(value, Unbound):
            raise TraceError(f"{name} may have no value here: it is assigned on some paths only")
        if value is not MISSING:
            return value
        if name in self.liveness.local:
            raise TraceError(f"{name} is read before it is assigned")
        if self.parent is not None:
            return self.parent.lookup(name)
        return self._outside(name)

    def _outside(self, name: str) -> Value:
        if name in self.cells:
            value = of_cell(self.cells[name], name)
            if value is MISSING:
                raise TraceError(f"{name} has no value yet in the enclosing function")
            return self._capture(name, self.cells[name], value, of_cell)
        if name in self.globals:
            return self._capture(name, self.globals, self.globals[name], of_globals)
        if hasattr(builtins, name):  # a global of this name may be defined later
            return self._capture(name, self.globals, MISSING, of_globals, getattr(builtins, name))
        raise TraceError(f"the name {name} is not defined")

    def _capture(
        self, name: str, holder: Any, there: Any, read: Callable[[Any, str], Any], value: Value = MISSING
    ) -> Value:
        """Note that `there` stands at a name, and give what the name means (without `value`, the same)."""
        key = (id(holder), name)
        if key not in self.captures:
            if value is MISSING:
                check_captured(name, there)
            self.captures[key] = Capture(name, holder, there, read)
        return plain(there) if value is MISSING else value

    def attribute(self, owner: Any, name: str) -> Value:
        """`owner.name` of a static object. What may change is a capture (not what is made anew at each look)."""
        value = getattr(owner, name)
        if can_change(owner) and getattr(owner, name) is value:
            return self._capture(name, owner, value, of_object)
        return plain(value)

    def missing(self, owner: Any, name: str, default: Value) -> Value:
        """`default`, since a static object has no attribute of that name: one that comes later is noticed."""
        return self._capture(name, owner, MISSING, of_object, default) if can_change(owner) else default


def plain(value: Any) -> Any:
    """A number of numpy's as Python's; any other value as it is."""
    return value.item() if isinstance(value, np.number | np.bool_) else value


_LIVENESS: dict[ast.AST, Liveness] = {}
_SOURCES: dict[tuple[str, types.CodeType], FunctionSource] = {}


def _liveness(node: ast.FunctionDef | ast.Lambda) -> Liveness:
    found = _LIVENESS.get(node)
    if found is None:
        found = _LIVENESS[node] = Liveness(node)
    return found


def helper_source(function: Callable[..., Any], caller: FunctionSource) -> FunctionSource:
    """The source of a helper, read once for each code object; where it stands in the caller's file, the text of that
    is what was read then. SourceError as in `of_function`."""
    key = (function.__code__.co_filename, function.__code__)  # equal code may stand in two files
    found = _SOURCES.get(key)
    if found is None:
        found = _SOURCES[key] = of_function(function, caller.origin)
    return found
