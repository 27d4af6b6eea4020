"""The names of one function being traced, and where it looks up what it does not bind itself.

What it takes from outside (globals, closure cells, attributes of modules) is noted as a `Capture`, so that a later
call can see by identity whether the traced program is still the one that Python would run.
"""

from __future__ import annotations

import ast
import builtins
import enum
import types
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from warpjit.errors import Loc, TraceError
from warpjit.frontend.liveness import Liveness
from warpjit.frontend.source import FunctionSource, of_function
from warpjit.frontend.values import Unbound, Value
from warpjit.ir.dtypes import DType
from warpjit.layout import Axis, ComposeLayout, TileLayout

MISSING = object()


@dataclass(frozen=True, eq=False)
class Capture:
    """A value that a kernel took from outside: `read()` gives what stands there now."""

    name: str
    holder: Any
    value: Any
    read: Callable[[Any, str], Any]

    @property
    def unchanged(self) -> bool:
        return self.read(self.holder, self.name) is self.value


def _of_cell(cell: Any, name: str) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _of_globals(names: Any, name: str) -> Any:
    return names.get(name, MISSING)


def _of_module(module: Any, name: str) -> Any:
    return getattr(module, name, MISSING)


REFUSED = (list, dict, set, bytearray)
PLAIN = (
    int,
    float,
    bool,
    str,
    bytes,
    type(None),
    DType,
    TileLayout,
    ComposeLayout,
    Axis,
    enum.Enum,
    type,
    types.ModuleType,
)


def check_captured(name: str, value: Any) -> None:
    """TraceError: a value whose changes could not be noticed, or a tensor."""
    if isinstance(value, REFUSED):
        what = type(value).__name__
        raise TraceError(f"{name} is a captured {what}: it may change unnoticed. Use a tuple, or pass it as a constant")
    if (
        type(value).__module__.partition(".")[0] in ("torch", "numpy")
        and hasattr(value, "shape")
        and hasattr(value, "dtype")
    ):
        raise TraceError(f"{name} is a captured tensor: pass it as an argument of the kernel")
    if isinstance(value, tuple | frozenset):
        for item in value:
            check_captured(name, item)
    if is_dataclass(value) and not isinstance(value, type):
        if not value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise TraceError(f"{name} is a captured {type(value).__name__}: only frozen dataclasses can be captured")
        for item in fields(value):
            check_captured(f"{name}.{item.name}", getattr(value, item.name))


class Scope:
    """One call of one function. `parent` is the scope that a nested function was defined in."""

    def __init__(
        self,
        source: FunctionSource,
        function: Callable[..., Any] | None,
        *,
        node: ast.FunctionDef | ast.Lambda | None = None,
        parent: Scope | None = None,
        outer: Loc | None = None,
        captures: dict[tuple[int, str], Capture],
    ):
        self.source = source
        self.node = node or source.node
        self.parent = parent
        self.outer = outer
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
        self._locs: dict[int, Loc] = {}

    @property
    def inlined(self) -> bool:
        return self.outer is not None

    def loc(self, node: ast.AST) -> Loc:
        found = self._locs.get(id(node))
        if found is None:
            found = self.source.loc(node)
            if self.outer is not None:
                found = found.within(self.outer)
            self._locs[id(node)] = found
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
            value = _of_cell(self.cells[name], name)
            if value is MISSING:
                raise TraceError(f"{name} has no value yet in the enclosing function")
            return self._capture(name, self.cells[name], value, _of_cell)
        if name in self.globals:
            return self._capture(name, self.globals, self.globals[name], _of_globals)
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise TraceError(f"the name {name} is not defined")

    def _capture(self, name: str, holder: Any, value: Any, read: Callable[[Any, str], Any]) -> Value:
        check_captured(name, value)
        self.captures.setdefault((id(holder), name), Capture(name, holder, value, read))
        return value

    def attribute(self, owner: Any, name: str) -> Value:
        """`owner.name` of a static object; a module's attribute is a capture."""
        value = getattr(owner, name)
        if isinstance(owner, types.ModuleType) and not owner.__name__.startswith("warpjit."):
            return self._capture(name, owner, value, _of_module)
        return value


_LIVENESS: dict[ast.AST, Liveness] = {}
_SOURCES: dict[types.CodeType, FunctionSource] = {}


def _liveness(node: ast.FunctionDef | ast.Lambda) -> Liveness:
    found = _LIVENESS.get(node)
    if found is None:
        found = _LIVENESS[node] = Liveness(node)
    return found


def helper_source(function: Callable[..., Any]) -> FunctionSource:
    """The source of a helper, read once for each code object. SourceError as in `of_function`."""
    code = function.__code__
    found = _SOURCES.get(code)
    if found is None:
        found = _SOURCES[code] = of_function(function)
    return found
