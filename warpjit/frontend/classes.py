"""Classes in a kernel: objects made of values of the device, their attributes, properties and methods.

A frozen dataclass or a named tuple is a bundle: structure whose parts may be anything, which is never changed. An
object of another class is made here (`objects`), so that its attributes can be assigned; `__init__` and methods are
inlined like helpers. Python's own way to make an object is taken where all arguments are static and no method uses `T`.
"""

from __future__ import annotations

import abc
import copy
import dataclasses
import inspect
import types

from warpjit.errors import TraceError
from warpjit.frontend.calls import BUILTINS, CALLABLE_OBJECTS, CALLS, call, for_device, inline, reaches
from warpjit.frontend.captures import note_reads
from warpjit.frontend.containers import made, python
from warpjit.frontend.literals import describe
from warpjit.frontend.objects import kernel_class
from warpjit.frontend.structure import bundle
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import KernelObject, Pointer, Scalar, TensorValue, Value, bundle_fields, of_user

MISSING = dataclasses.MISSING
HOOKS = ("__setattr__", "__getattribute__", "__getattr__", "__slots__")
"""What a class whose objects a kernel makes must not have: it would see, or hide, each attribute."""


def constructs(kind: Value) -> bool:
    """Whether a call of `kind` makes an object that this file knows."""
    return type(kind) in (type, abc.ABCMeta) and of_user(kind) and not issubclass(kind, BaseException)


def construct(tracer: Tracer, kind: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`kind(*args, **kwargs)` of a user's class."""
    static = not for_device([*args, *kwargs.values()]) and not _uses_language(kind)
    if issubclass(kind, tuple):
        return python(kind, *args, **kwargs)
    if bundle_fields(kind) is not None:
        if static:
            note_reads(tracer.captures, kind)
            return python(kind, *args, **kwargs)
        result = bundle(kind, _fields(tracer, kind, args, kwargs))
        _run_hook(tracer, result, "__post_init__")
        return result
    if static:
        return _by_python(tracer, kind, args, kwargs)
    problem = _unmakeable(kind)
    if problem is not None:
        raise TraceError(f"an object of {kind.__name__} cannot be made in a kernel: {problem}")
    result = object.__new__(kernel_class(kind))
    tracer.objects.add(result, tracer.builder.loc)
    if _generated(kind):
        for name, value in _fields(tracer, kind, args, kwargs).items():
            assign_attribute(tracer, result, name, value)
        _run_hook(tracer, result, "__post_init__")
    elif isinstance(kind.__init__, types.FunctionType):
        inline(tracer, kind.__init__, [result, *args], kwargs)
    elif args or kwargs:
        raise TraceError(f"{kind.__name__}() takes no arguments")
    return result


def _by_python(tracer: Tracer, kind: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """An object of static values, made by Python. If it is one of this kernel alone, its attributes can be assigned."""
    note_reads(tracer.captures, kind)
    result = python(kind, *args, **kwargs)
    if _unmakeable(kind) is None:
        inside = vars(result)
        inside.update({name: made(tracer, value) for name, value in inside.items()})
        tracer.objects.add(result, tracer.builder.loc)
    return result


def _unmakeable(kind: type) -> str | None:
    """Why a kernel cannot make an object of a class whose attributes it follows; None: it can."""
    for name in (*HOOKS, "__new__"):
        holder = next((each for each in kind.__mro__ if name in vars(each)), object)
        if holder is not object:
            return f"{holder.__name__} has {name}. Use a plain class, or a frozen dataclass"
    return None


def _generated(kind: type) -> bool:
    """Whether `__init__` is the one that `dataclass` writes."""
    holder = next(each for each in kind.__mro__ if "__init__" in vars(each))
    parameters, init = vars(holder).get("__dataclass_params__"), vars(holder)["__init__"]
    if parameters is None or not parameters.init or not isinstance(init, types.FunctionType):
        return False
    return init.__code__.co_filename == "<string>"  # one that the class has is left as it is


def _uses_language(kind: type) -> bool:
    return any(reaches(each) for parent in kind.__mro__ for each in _functions(parent))


def _functions(kind: type) -> list[types.FunctionType]:
    """The functions that a user's class defines, those behind its properties too."""
    inside = list(vars(kind).values()) if of_user(kind) else []
    plain = [each.fget if isinstance(each, property) else getattr(each, "__func__", each) for each in inside]
    return [each for each in plain if isinstance(each, types.FunctionType)]


def _fields(tracer: Tracer, kind: type, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    """The fields of a dataclass as its `__init__` would set them."""
    if not _generated(kind):
        raise TraceError(
            f"{kind.__name__} has an __init__ of its own: of a frozen dataclass, expected the generated one"
        )
    try:
        given = inspect.signature(kind).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TraceError(f"{kind.__name__}: {error}") from None
    result: dict[str, Value] = {}
    for item in dataclasses.fields(kind):
        if item.name in given:
            result[item.name] = tracer.held(given.pop(item.name), item.name)
        elif item.default is not MISSING:
            result[item.name] = item.default
        elif item.default_factory is not MISSING:
            result[item.name] = made(tracer, call(tracer, item.default_factory, [], {}))
    if given:
        raise TraceError(f"{kind.__name__}: InitVar {', '.join(given)} is not part of the language")
    return result


def _run_hook(tracer: Tracer, value: Value, name: str) -> None:
    hook = getattr(type(value), name, None)
    if isinstance(hook, types.FunctionType):
        inline(tracer, hook, [value], {})


# ---- attributes -------------------------------------------------------------------------------------------------


def attribute(tracer: Tracer, owner: Value, name: str) -> Value:
    """`owner.name` of an object of a user's class. AttributeError as Python's."""
    kind = type(owner)
    own = isinstance(owner, KernelObject) or tracer.objects.find(owner) is not None
    inside = vars(owner) if hasattr(owner, "__dict__") else {}
    fixed = isinstance(owner, tuple) and name in getattr(kind, "_fields", ())
    if fixed or name in inside or name in (bundle_fields(kind) or ()):
        own = own or fixed
        value = getattr(owner, name) if own else tracer.scope.attribute(owner, name)
        return tracer.fresh(value) if isinstance(value, Scalar) else value
    found = inspect.getattr_static(kind, name, None)
    if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
        if own or for_device([owner]) or reaches(found.fget) or _reaches_method(kind, found.fget):
            return inline(tracer, found.fget, [owner], {})
        note_reads(tracer.captures, found.fget)
        return tracer.scope.attribute(owner, name)
    if isinstance(found, types.FunctionType):
        tracer.scope.attribute(_user_class(kind), name)  # a change of it is noticed
        return types.MethodType(found, owner)
    if found is not None and not hasattr(found, "__get__"):
        return tracer.scope.attribute(_user_class(kind), name)
    return getattr(owner, name) if own else tracer.scope.attribute(owner, name)


def _user_class(kind: type) -> type:
    """The class as the user wrote it."""
    return kind.__mro__[1] if issubclass(kind, KernelObject) else kind


def check_assignable(tracer: Tracer, owner: Value, name: str) -> None:
    """TraceError: `owner.name` cannot be assigned."""
    kind = type(owner)
    found = inspect.getattr_static(kind, name, None)
    if isinstance(found, property) and found.fset is None and tracer.objects.find(owner) is not None:
        raise TraceError(f"{kind.__name__}.{name} is a property that cannot be assigned")
    if bundle_fields(kind) is not None:
        raise TraceError(
            f"{kind.__name__} is frozen, so {name} cannot be assigned: make a new one, "
            f"x = dataclasses.replace(x, {name}=...)"
        )
    if tracer.objects.find(owner) is None:
        raise TraceError(
            f"{name} of {describe(owner)} cannot be assigned: only attributes of objects that the kernel made can"
        )


def assign_attribute(tracer: Tracer, owner: Value, name: str, value: Value) -> None:
    """`owner.name = value`."""
    check_assignable(tracer, owner, name)
    found = inspect.getattr_static(type(owner), name, None)
    if isinstance(found, property) and isinstance(found.fset, types.FunctionType):
        inline(tracer, found.fset, [owner, value], {})
        return
    mine = tracer.objects.find(owner)
    assert mine is not None
    mine.set(name, tracer.held(value, name), tracer.builder.loc)


# ---- methods ----------------------------------------------------------------------------------------------------


def _bound_method(tracer: Tracer, function: types.MethodType, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A method of an object or class: inlined like a helper, with what it is bound to in front."""
    plain, owner = function.__func__, function.__self__
    if isinstance(owner, tuple) and plain.__name__ in ("_replace", "_asdict", "_make"):
        return python(function, *args, **kwargs)
    if not isinstance(plain, types.FunctionType):
        raise TraceError(f"{function.__qualname__} is not a function of the language")
    kind = owner if isinstance(owner, type) else type(owner)
    mine = tracer.objects.find(owner) is not None
    if mine or for_device([owner, *args, *kwargs.values()]) or reaches(plain) or _reaches_method(kind, plain):
        return inline(tracer, plain, [owner, *args], kwargs)
    note_reads(tracer.captures, plain)
    return python(function, *args, **kwargs)


def _reaches_method(kind: type, function: types.FunctionType) -> bool:
    """Whether a function uses the language through other methods of its class."""
    used = set(function.__code__.co_names)
    return of_user(kind) and any(
        each.__name__ in used and each is not function and reaches(each)
        for parent in kind.__mro__
        for each in _functions(parent)
    )


def method_of(owner: Value, name: str) -> types.MethodType | None:
    """A special method of an object of a user's class, such as `__call__`; None where there is none."""
    if isinstance(owner, type) or not of_user(type(owner)):
        return None
    found = inspect.getattr_static(type(owner), name, None)
    return types.MethodType(found, owner) if isinstance(found, types.FunctionType) else None


def _replace(tracer: Tracer, owner: Value, /, **changes: Value) -> Value:
    """`dataclasses.replace` with values of the device."""
    kind = type(owner)
    if not dataclasses.is_dataclass(owner) or isinstance(owner, type | Scalar | TensorValue | Pointer):
        raise TraceError(f"dataclasses.replace: expected an object of a dataclass but got {describe(owner)}")
    fields = {item.name: getattr(owner, item.name) for item in dataclasses.fields(kind) if item.init}
    return construct(tracer, kind, [], {**fields, **changes})


def _copy(tracer: Tracer, owner: Value) -> Value:
    """`copy.copy`: another object with the same attributes."""
    if tracer.objects.find(owner) is None:
        return python(copy.copy, owner)
    result = object.__new__(type(owner))
    vars(result).update(vars(owner))
    tracer.objects.add(result, tracer.builder.loc)
    return result


def _call_object(tracer: Tracer, owner: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    method = method_of(owner, "__call__")
    assert method is not None
    return _bound_method(tracer, method, args, kwargs)


def _super(tracer: Tracer, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`super()`: the class in whose body the method stands, and the method's first argument."""
    if args or kwargs:
        return python(super, *args, **kwargs)
    scope = tracer.scope.owner
    given = scope.node.args.posonlyargs + scope.node.args.args
    if "__class__" not in scope.cells or not given:
        raise TraceError("super() must stand in a method")
    return super(scope.cells["__class__"].cell_contents, scope.names[given[0].arg])


CALLABLE_OBJECTS += [
    (lambda value: value is super, _super),
    (constructs, construct),
    (lambda value: method_of(value, "__call__") is not None, _call_object),
]
CALLS[types.MethodType] = _bound_method
BUILTINS[dataclasses.replace] = _replace
BUILTINS[copy.copy] = _copy
