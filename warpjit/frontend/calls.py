"""Calls: names of the language, conversions, Python's builtins, methods, instructions, and helpers.

A helper is inlined when an argument or a captured name is a kernel value or its names reach `T`; any other
function is called by Python on static arguments.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
import types
from collections.abc import Callable
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, pairs
from warpjit.frontend.captures import MISSING, note_function, note_reads
from warpjit.frontend.closure import Closure
from warpjit.frontend.containers import ContainerMethod, call_method, python
from warpjit.frontend.digest import IMPURE
from warpjit.frontend.language.constant import constant
from warpjit.frontend.language.cuda import KernelAttributes, LaunchConfig
from warpjit.frontend.language.intrinsic import Intrinsic, positional
from warpjit.frontend.language.types import ScalarType
from warpjit.frontend.methods import METHODS
from warpjit.frontend.scope import Scope, helper_source
from warpjit.frontend.source import FunctionSource
from warpjit.frontend.tracer import Poisoned, Tracer
from warpjit.frontend.values import Method, Scalar, Value, is_kernel_value, is_number, of_user
from warpjit.ir import dtypes
from warpjit.isa.row import Row

MAX_DEPTH = 64

INTRINSICS: dict[str, Callable[..., Value]] = {}
"""Handlers of the language's names, by full name: each file that has some adds them (`trace` loads all of them)."""
BUILTINS: dict[Any, Callable[..., Value]] = {}
"""What Python's builtins do with values of the device: filled by `builtin_functions`."""


def call(tracer: Tracer, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`function(*args, **kwargs)`."""
    known = CALLS.get(type(function))
    if known is not None:
        return known(tracer, function, args, kwargs)
    if function is print:
        return _builtin(tracer, "print", INTRINSICS["print"], args, kwargs)
    if function is LaunchConfig or function is KernelAttributes:
        return python(function, *args, **kwargs)
    if function is constant:
        if is_kernel_value(args) or is_kernel_value(kwargs):
            raise TraceError("T.constant: expected what is known while tracing but got values of the device")
        return python(function, *args, **kwargs)
    try:
        builtin = BUILTINS.get(function)
    except TypeError:
        builtin = None
    if builtin is not None and for_device([*args, *kwargs.values()]):
        return _builtin(tracer, function.__name__, builtin, args, kwargs)
    for applies, handler in CALLABLE_OBJECTS:
        if applies(function):
            return handler(tracer, function, args, kwargs)
    if isinstance(function, types.FunctionType) and (for_device([*args, *kwargs.values()]) or reaches(function)):
        return inline(tracer, function, args, kwargs)
    if is_kernel_value(args) or is_kernel_value(kwargs):
        name = getattr(function, "__qualname__", repr(function))
        name = name.replace("KernelList", "list").replace("KernelDict", "dict")
        raise TraceError(f"{name} is no function of the language: expected static arguments but got device values")
    if not callable(function):
        raise TraceError(f"{arithmetic.describe(function)} cannot be called")
    if function in FRAMES or (function in (vars, dir) and not args):
        raise TraceError(f"{function.__name__} is no function of the language: it would see what traces the kernel")
    note_reads(tracer.captures, function)
    tracer.hidden |= hides(function, [*args, *kwargs.values()])
    return python(function, *args, **kwargs)


FRAMES: list[Any] = [globals, locals, eval, exec, breakpoint]
"""Builtins that look at whoever calls them."""


def hides(function: Callable[..., Any], args: list[Value]) -> bool:
    """Whether what Python's function gives may depend on what no capture shows: on a module that it is given, or on the
    process."""
    name = getattr(function, "__name__", "")
    return any(isinstance(each, types.ModuleType) for each in args) or (
        name in IMPURE and getattr(builtins, name, None) is function
    )


CALLABLE_OBJECTS: list[tuple[Callable[[Value], bool], Callable[..., Value]]] = []
"""Which classes and objects of the user's can be called, and how: filled by `classes`."""


def for_device(args: list[Value]) -> bool:
    """Whether one of the arguments has a meaning in a kernel only."""
    return is_kernel_value(args) or any(
        isinstance(value, Closure | Intrinsic | Row) or (isinstance(value, types.FunctionType) and reaches(value))
        for value in args
    )


_signature = functools.cache(inspect.signature)
_positional = functools.cache(lambda handler: positional(_signature(handler)))
"""Of the package's own functions, which are there for good."""


def _apply(name: str, handler: Callable[..., Value], given: tuple[Any, ...], kwargs: dict[str, Value]) -> Value:
    """`handler(*given, **kwargs)`. TraceError as Python's TypeError, under the name that the user called."""
    least, most = _positional(handler)
    if not kwargs and least <= len(given) <= most:
        return handler(*given)
    try:
        bound = _signature(handler).bind(*given, **kwargs)
    except TypeError as error:
        raise TraceError(f"{name}: {error}") from None
    return handler(*bound.args, **bound.kwargs)


def _builtin(
    tracer: Tracer, name: str, handler: Callable[..., Value], args: list[Value], kwargs: dict[str, Value]
) -> Value:
    return _apply(name, handler, (tracer, *args), kwargs)


# ---- what can be called -----------------------------------------------------------------------------------


def _intrinsic(tracer: Tracer, function: Intrinsic, args: list[Value], kwargs: dict[str, Value]) -> Value:
    handler = INTRINSICS[function.name]
    least, most = function.positional
    if not kwargs and least <= len(args) <= most:
        return handler(tracer, *args)
    try:
        bound = function.signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TraceError(f"{function.name}{_names_only(function.signature)}: {error}") from None
    return handler(tracer, *bound.args, **bound.kwargs)


def _names_only(signature: inspect.Signature) -> inspect.Signature:
    bare = [item.replace(annotation=item.empty) for item in signature.parameters.values()]
    return inspect.Signature(bare)


def _conversion(tracer: Tracer, function: ScalarType, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if function.dtype.is_pair and not kwargs:
        tracer.require_device(repr(function))
        return pairs.make(tracer.builder, function.dtype, *args)
    if len(args) != 1 or kwargs:
        raise TraceError(f"{function!r}: expected one value but got {len(args) + len(kwargs)}")
    return convert(tracer, args[0], function.dtype)


def convert(tracer: Tracer, value: Value, dtype: dtypes.DType) -> Scalar:
    """`T.float32(value)`: a literal of this type, or a conversion."""
    if dtype.is_pair:
        return pairs.make(tracer.builder, dtype, value)
    if isinstance(value, Scalar):
        return arithmetic.convert(tracer.builder, value, dtype)
    if is_number(value):
        if dtype.is_int and isinstance(value, float) and math.isfinite(value):
            value = int(value)
        return arithmetic.literal(tracer.builder, bool(value) if dtype.is_bool else value, dtype)
    raise TraceError(f"T.{dtype}: expected a number but got {arithmetic.describe(value)}")


def _method(tracer: Tracer, function: Method, args: list[Value], kwargs: dict[str, Value]) -> Value:
    method = METHODS[type(function.owner)][function.name]
    return _apply(function.name, method, (tracer.builder, function.owner, *args), kwargs)


def _closure(tracer: Tracer, function: Closure, args: list[Value], kwargs: dict[str, Value]) -> Value:
    scope = Scope(
        function.scope.source,
        None,
        node=function.node,
        parent=function.scope,
        outer=tracer.builder.loc,
        captures=tracer.captures,
    )
    return _run(
        tracer, scope, function.name, bind_arguments(function.node, function.name, args, kwargs, function.defaults)
    )


CALLS: dict[type, Callable[..., Value]] = {
    Intrinsic: _intrinsic,
    ScalarType: _conversion,
    Method: _method,
    Closure: _closure,
    ContainerMethod: call_method,
}
"""What can be called, by its type; `classes` and `instructions` add theirs."""


# ---- helpers ----------------------------------------------------------------------------------------------


def reaches(function: types.FunctionType, seen: set[types.CodeType] | None = None) -> bool:
    """Whether a function's captured values are kernel values, or its names reach the language."""
    seen = set() if seen is None else seen
    if function.__code__ in seen:
        return False
    seen.add(function.__code__)
    names = set(function.__code__.co_names)
    for code in function.__code__.co_consts:
        if isinstance(code, types.CodeType):
            names |= set(code.co_names)
    values = [function.__globals__.get(name) for name in names]
    for cell in function.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:
            continue
    return any(_of_language(value, seen) for value in values)


def _of_language(value: Value, seen: set[types.CodeType]) -> bool:
    if isinstance(value, types.FunctionType):
        return reaches(value, seen)
    if isinstance(value, type) and of_user(value):
        inside = (getattr(each, "__func__", each) for each in vars(value).values())
        return any(reaches(each, seen) for each in inside if isinstance(each, types.FunctionType))
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("warpjit.frontend.language")
    return isinstance(value, Intrinsic | ScalarType | Row) or is_kernel_value(value)


def inline(tracer: Tracer, function: types.FunctionType, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The helper's body, traced here."""
    source: FunctionSource = helper_source(function, tracer.scope.source)
    note_function(tracer.captures, function)
    scope = Scope(source, function, outer=tracer.builder.loc, captures=tracer.captures)
    return _run(tracer, scope, function.__qualname__, _arguments(function, args, kwargs))


def _arguments(function: types.FunctionType, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    """What the parameters get. TraceError as Python's TypeError."""
    code = function.__code__
    plain = not (code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
    if plain and not kwargs and len(args) == code.co_argcount:
        return dict(zip(code.co_varnames, args, strict=False))
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise TraceError(f"{function.__qualname__}: {error}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def bind_arguments(
    node: ast.FunctionDef | ast.Lambda,
    name: str,
    args: list[Value],
    kwargs: dict[str, Value],
    defaults: dict[str, Value],
) -> dict[str, Value]:
    """Arguments to parameters of a function that exists as syntax only. TraceError as Python's TypeError."""
    given = node.args
    plain = not (given.posonlyargs or given.vararg or given.kwonlyargs or given.kwarg)
    if plain and not kwargs and len(args) == len(given.args):
        return {item.arg: value for item, value in zip(given.args, args, strict=True)}
    parameters = []
    kinds = inspect.Parameter
    groups = (
        (node.args.posonlyargs, kinds.POSITIONAL_ONLY),
        (node.args.args, kinds.POSITIONAL_OR_KEYWORD),
        ([node.args.vararg] if node.args.vararg else [], kinds.VAR_POSITIONAL),
        (node.args.kwonlyargs, kinds.KEYWORD_ONLY),
        ([node.args.kwarg] if node.args.kwarg else [], kinds.VAR_KEYWORD),
    )
    for items, kind in groups:
        for item in items:
            parameters.append(kinds(item.arg, kind, default=defaults.get(item.arg, kinds.empty)))
    try:
        bound = inspect.Signature(parameters).bind(*args, **kwargs)
    except TypeError as error:
        raise TraceError(f"{name}: {error}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def _run(tracer: Tracer, scope: Scope, name: str, arguments: dict[str, Value]) -> Value:
    if scope.outer is not None and len(scope.outer.frames) > MAX_DEPTH:
        raise TraceError(
            f"{name} calls itself too deeply: a helper is inlined, so its recursion must end while tracing"
        )
    outer, terminated, loc = tracer.scope, tracer.terminated, tracer.builder.loc
    scope.names.update(arguments)
    tracer.scope, tracer.terminated = scope, False
    failed = tracer.failures
    try:
        if isinstance(scope.node, ast.Lambda):
            scope.result = tracer.evaluate(scope.node.body)
        else:
            tracer.execute(scope.node.body)
    finally:
        tracer.scope, tracer.terminated, tracer.builder.loc = outer, terminated, loc
    if tracer.failures > failed:
        raise Poisoned
    return None if scope.result is MISSING else scope.result
