"""A digest of a value's content, that another process finds again for an equal value.

Numbers with their types, floats by their bits, strings, data types, layouts, frozen dataclasses, enums, tuples,
functions (what their source says, and all that it reads), modules by name. No address, path, line or order of a set is
in it. What has no such content (`NoDigest`) is never guessed: a trace that took it from outside is not kept.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import functools
import hashlib
import opcode
import reprlib
import struct
import types
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from warpjit.errors import SourceError
from warpjit.frontend.captures import MISSING, reads, trusted
from warpjit.frontend.source import SourceFile, of_function

Form: TypeAlias = Any
"""Nested tuples of strings, ints and bytes: what is hashed, by its `repr`."""

PURE = {
    *("builtins", "math", "cmath", "operator", "_operator", "functools", "_functools", "itertools", "dataclasses"),
    *("typing", "enum", "collections", "abc", "fractions", "numbers", "types", "numpy", "ml_dtypes", "warpjit"),
}
"""Packages of which a function gives the same for the same arguments in every process, on every machine."""
TORCH = {"finfo", "iinfo", "dtype", "Size"}
IMPURE = {
    *("id", "hash", "open", "input", "eval", "exec", "compile", "globals", "locals", "vars", "dir", "__import__"),
    *("breakpoint", "getattr", "hasattr", "attrgetter", "numpy.random"),
}
"""Functions whose answer is a process's own, or which read what cannot be seen."""
_IMPORT = opcode.opmap["IMPORT_NAME"]


class NoDigest(Exception):
    """A value without a content that can be compared with another process's."""


def digest(form: Form) -> str:
    """The sha256, in hex, of a form."""
    return hashlib.sha256(repr(form).encode()).hexdigest()


class Forms:
    """The forms of values.

    inlined  the ids of functions whose reads are compared one by one: their form is their source alone
    known    a text that was read already
    """

    def __init__(self, inlined: Collection[int] = (), known: SourceFile | None = None) -> None:
        self._inlined, self._known = inlined, known
        self._met: dict[int, int] = {}

    def digest(self, value: Any) -> str:
        """A value's digest. NoDigest: it has none."""
        self._met = {}
        return digest(self.form(value))

    def digest_of_code(self, function: types.FunctionType) -> str:
        """The digest of what a function's definition says. NoDigest: it is no pure function."""
        return digest(self.code(function))

    def form(self, value: Any) -> Form:
        """A value's form. NoDigest."""
        handler = _PLAIN.get(type(value))
        if handler is not None:
            return handler(value)
        for kind, describe in _KINDS:
            if isinstance(value, kind):
                return describe(self, value)
        return self._object(value)

    # ---- functions ---------------------------------------------------------------------------------

    def code(self, function: types.FunctionType) -> Form:
        """What a function's definition says; where its text cannot be had, what Python compiled of it. NoDigest."""
        if _imports(function.__code__) or _builtins_of(function.__code__, function.__globals__) & IMPURE:
            raise NoDigest(f"{function.__qualname__} imports while it runs, or uses one of {sorted(IMPURE)}")
        return _code(function, self._known)

    def function(self, function: types.FunctionType) -> Form:
        if trusted(function) and not function.__closure__:  # what one closes over may be anything
            return self.named(function)
        if id(function) in self._inlined:
            return "function", self.code(function)
        if id(function) in self._met:
            return "again", self._met[id(function)]
        self._met[id(function)] = len(self._met)
        inside = tuple((each.name, self.form(each.value)) for each in reads(function))
        return "function", self.code(function), self.defaults(function), inside

    def defaults(self, function: types.FunctionType) -> Form:
        named = sorted((function.__kwdefaults__ or {}).items())
        return self.form(function.__defaults__), tuple((name, self.form(value)) for name, value in named)

    def named(self, value: Any) -> Form:
        """A function or class of a package that is known to be pure, by its name."""
        module, name = value.__module__ or "", value.__qualname__
        package = module.partition(".")[0]
        if (package == "torch" and name in TORCH) or (package in PURE and not {name, module} & IMPURE):
            return "named", package, name
        raise NoDigest(f"{module}.{name} may give something else in another process")

    def builtin(self, function: types.BuiltinFunctionType) -> Form:
        owner = function.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            return self.named(function)
        return "bound", function.__name__, self.form(owner)

    def method(self, method: types.MethodType) -> Form:
        return "method", self.form(method.__func__), self.form(method.__self__)

    def wrapped(self, function: Any) -> Form:
        return "wrapped", type(function).__qualname__, self.form(function.__wrapped__)

    def partial(self, function: functools.partial[Any]) -> Form:
        named = tuple((name, self.form(value)) for name, value in sorted(function.keywords.items()))
        return "partial", self.form(function.func), self.form(function.args), named

    # ---- classes and objects -----------------------------------------------------------------------

    def type(self, kind: type) -> Form:
        if trusted(kind):
            return self.named(kind)
        if id(kind) in self._met:
            return "again", self._met[id(kind)]
        self._met[id(kind)] = len(self._met)
        bases = tuple(self.form(base) for base in kind.__bases__)
        inside = tuple((name, self._member(each)) for name, each in vars(kind).items() if _says(kind, name, each))
        return "class", kind.__qualname__, self.form(type(kind)), bases, _declared(self, kind), inside

    def _member(self, member: Any) -> Form:
        if isinstance(member, property):
            return "property", self.form(member.fget)
        if isinstance(member, staticmethod | classmethod):
            return type(member).__name__, self.form(member.__func__)
        return self.form(member)

    def _object(self, value: Any) -> Form:
        kind = type(value)
        package = kind.__module__.partition(".")[0]
        if package == "warpjit" and kind.__name__ == "Row":
            return "row", value.text
        if dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            inside = tuple((each.name, self.form(getattr(value, each.name))) for each in dataclasses.fields(value))
            return "object", self.form(kind), inside
        if package == "warpjit" and isinstance(getattr(value, "function", None), types.FunctionType):
            return "kernel", self.code(value.function)  # a class's: no kernel calls another
        if package == "warpjit" and "__repr__" in vars(kind):
            return "object", kind.__qualname__, _text(value)
        if kind.__module__ == "torch" and kind.__name__ == "dtype":
            return "torch", str(value)
        if package == "numpy" and hasattr(value, "tobytes") and getattr(value, "shape", None) == ():
            return "numpy", str(value.dtype), value.tobytes()
        if package == "numpy" and kind.__name__.endswith("DType"):
            return "numpy", str(value)
        raise NoDigest(f"a {kind.__qualname__} has no content that could be compared")


def _text(value: Any) -> str:
    text = repr(value)
    if " at 0x" in text:
        raise NoDigest(f"{text} is shown by its address")
    return text


_GENERATED = {"<string>", dataclasses.__file__, reprlib.__file__}
"""Where the methods stand that `dataclass` adds to a class: they follow from its fields."""


def _says(kind: type, name: str, member: Any) -> bool:
    """Whether a member of a class is the user's: not what Python or `dataclass` adds."""
    if isinstance(member, types.FunctionType):
        written = "__dataclass_params__" in vars(kind) and member.__code__.co_filename in _GENERATED
        return not (name.startswith("__") and written) and not trusted(member)
    if isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType) or isinstance(member, kind):
        return False  # slots; an enum's members, which the class's form would lead back to
    if type(member).__name__ == "_tuplegetter" or (issubclass(kind, enum.Enum | tuple) and name.startswith("_")):
        return False
    return not (name.startswith("__") and name.endswith("__")) and not name.startswith("_abc_")


def _declared(forms: Forms, kind: type) -> Form:
    """What a class says besides its members: the fields of its objects with their defaults, the values of an enum.

    Neither stands in the class where Python keeps it elsewhere: the default of a slot, the order of fields.
    """
    if issubclass(kind, enum.Enum):
        return tuple((name, forms.form(member._value_)) for name, member in kind.__members__.items())
    if dataclasses.is_dataclass(kind):
        fields = dataclasses.fields(kind)
        defaults = [tuple(map(forms.form, _given(each.default, each.default_factory))) for each in fields]
        return tuple((each.name, each.init, each.kw_only, said) for each, said in zip(fields, defaults, strict=True))
    names: tuple[str, ...] = getattr(kind, "_fields", ()) if issubclass(kind, tuple) else ()
    known = getattr(kind, "_field_defaults", {})
    return tuple((name, tuple(map(forms.form, _given(known.get(name, dataclasses.MISSING))))) for name in names)


def _given(*defaults: Any) -> list[Any]:
    return [each for each in defaults if each is not dataclasses.MISSING]


def _enum(forms: Forms, value: enum.Enum) -> Form:
    return "enum", value.name, forms.form(value.value), forms.form(type(value))


def _tuple(forms: Forms, value: tuple[Any, ...]) -> Form:
    kind = type(value)
    named = () if kind is tuple else (forms.form(kind), getattr(kind, "_fields", ()))
    return "tuple", named, tuple(forms.form(item) for item in value)


def _set(forms: Forms, value: frozenset[Any]) -> Form:
    return "frozenset", tuple(sorted(repr(forms.form(item)) for item in value))


_PLAIN: dict[type, Callable[[Any], Form]] = {
    type(None): lambda value: "None",
    bool: lambda value: ("bool", int(value)),
    int: lambda value: ("int", hex(value)),
    float: lambda value: ("float", struct.pack("<d", value)),
    complex: lambda value: ("complex", struct.pack("<dd", value.real, value.imag)),
    str: lambda value: ("str", value),
    bytes: lambda value: ("bytes", value),
    type(Ellipsis): lambda value: "...",
    type(MISSING): lambda value: "missing" if value is MISSING else _no_object(),
    types.ModuleType: lambda value: ("module", value.__name__),
    range: lambda value: ("range", value.start, value.stop, value.step),
    slice: lambda value: ("slice", repr(value)),
}


def _no_object() -> Form:
    raise NoDigest("a bare object has no content")


_KINDS: list[tuple[Any, Callable[[Forms, Any], Form]]] = [
    (enum.Enum, _enum),
    (types.FunctionType, Forms.function),
    (types.BuiltinFunctionType, Forms.builtin),
    (types.MethodType, Forms.method),
    (functools._lru_cache_wrapper, Forms.wrapped),
    (functools.partial, Forms.partial),
    (types.ModuleType, lambda forms, value: ("module", value.__name__)),
    (type, Forms.type),
    (tuple, _tuple),
    (frozenset, _set),
]
"""In this order: an enum may be an int, a named tuple is a tuple."""


# ---- code -----------------------------------------------------------------------------------------------------

_CODES: dict[types.CodeType, tuple[str, Form]] = {}


def _code(function: types.FunctionType, known: SourceFile | None) -> Form:
    code = function.__code__
    found = _CODES.get(code)
    if found is None or found[0] != code.co_filename:  # equal code may stand in two files
        try:
            said: Form = ("source", of_function(function, known).fingerprint)
        except SourceError:
            said = ("bytecode", _bytecode(code))
        found = _CODES[code] = (code.co_filename, said)
    return found[1]


def _bytecode(code: types.CodeType) -> Form:
    constants = tuple(
        _bytecode(each) if isinstance(each, types.CodeType) else Forms().form(each) for each in code.co_consts
    )
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return code.co_code, names, counts, constants


def _imports(code: types.CodeType) -> bool:
    return _IMPORT in code.co_code[::2] or any(
        _imports(each) for each in code.co_consts if isinstance(each, types.CodeType)
    )


def _builtins_of(code: types.CodeType, names: Mapping[str, Any]) -> set[str]:
    """The builtins that a piece of code names."""
    inside = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    own = {name for name in code.co_names if name not in names and hasattr(builtins, name)}
    return own.union(*(_builtins_of(each, names) for each in inside))
