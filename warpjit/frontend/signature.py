"""A kernel's parameters, as its annotations describe them, and how a call's arguments meet them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from warpjit.errors import ArgumentError, TraceError
from warpjit.frontend.language.types import SCALAR_TYPES, ScalarType, Tensor, constexpr
from warpjit.ir.dtypes import DType
from warpjit.record import record

NOTHING = inspect.Parameter.empty
"""Stands where there is no default and no value."""


class ParameterKind(Enum):
    """What an argument may be."""

    ANY = "any"  # unannotated: decided by the argument
    TENSOR = "tensor"
    SCALAR = "scalar"
    CONSTANT = "constant"


@record
class Parameter:
    """One parameter. `tensor` for a tensor annotation, `dtype` for a scalar one; `owner`: what a method belongs to."""

    name: str
    kind: ParameterKind
    tensor: Tensor | None = None
    dtype: DType | None = None
    default: Any = NOTHING
    owner: bool = False

    def otherwise(self, specs: bool) -> Any:
        """The value where none is given: the default, with `specs` what the annotation describes, else NOTHING."""
        if self.default is not NOTHING or not specs:
            return self.default
        if self.tensor is not None and self.tensor.shape is not None and self.tensor.dtype is not None:
            return self.tensor
        return SCALAR_TYPES[self.dtype.name] if self.dtype is not None else NOTHING


@dataclass(frozen=True)
class Signature:
    """All parameters: positional ones in order, then the keyword-only constants. `name` is the kernel's."""

    name: str
    positional: tuple[Parameter, ...]
    keyword: tuple[Parameter, ...]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.positional + self.keyword

    @cached_property
    def by_name(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters}

    def __str__(self) -> str:
        words = [parameter.name for parameter in self.positional]
        words += ["*", *(parameter.name for parameter in self.keyword)] if self.keyword else []
        return f"{self.name}({', '.join(words)})"

    def of_method(self) -> Signature:
        """The signature of which the first parameter is what the method belongs to. TraceError: there is none."""
        if not self.positional:
            raise TraceError(f"{self}: expected a first parameter, such as self, of a kernel in a class but got none")
        first, *others = self.positional
        owner = Parameter(first.name, ParameterKind.CONSTANT, owner=True)
        return Signature(self.name, (owner, *others), self.keyword)

    def bind(self, args: Sequence[Any], named: Mapping[str, Any], *, specs: bool = False) -> Sequence[Any]:
        """One value for each of `parameters`, as Python would bind them.

        With `specs`, a parameter that is not given is described by its annotation. ArgumentError: too many arguments,
        unknown names, a parameter given twice or not at all.
        """
        if len(args) == len(self.parameters) and not named and not self.keyword:
            return args
        given = self._given(args, named)
        values = [given.get(parameter.name, parameter.otherwise(specs)) for parameter in self.parameters]
        absent = [item.name for item, value in zip(self.parameters, values, strict=True) if value is NOTHING]
        if absent:
            wanted = "arguments or specs (the annotations do not say all)" if specs else "arguments"
            raise ArgumentError(f"{self}: expected {wanted} for {', '.join(absent)}")
        return values

    def _given(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(self.positional):
            hint = " (what stands after * is given by name)" if self.keyword else ""
            raise ArgumentError(
                f"{self}: expected at most {len(self.positional)} positional arguments but got {len(args)}{hint}"
            )
        given = {parameter.name: value for parameter, value in zip(self.positional, args, strict=False)}
        for name, value in named.items():
            if name not in self.by_name:
                raise ArgumentError(f"{self}: expected names of its parameters but got {name!r}")
            if name in given:
                raise ArgumentError(f"{self}: expected {name} once but got it by position and by name")
            given[name] = value
        return given


def of_function(function: Callable[..., Any], local_names: Mapping[str, Any]) -> Signature:
    """The signature of a kernel. `local_names`: where string annotations may find names besides the globals.

    TraceError: `*args` or `**kwargs`, or an annotation that is no type of the language.
    """
    python = inspect.signature(function)
    positional: list[Parameter] = []
    keyword: list[Parameter] = []
    for item in python.parameters.values():
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            raise TraceError(f"{function.__qualname__}: a kernel cannot have *{item.name}: pass a tuple")
        only_keyword = item.kind is item.KEYWORD_ONLY
        parameter = _parameter(function, item, only_keyword, local_names)
        (keyword if only_keyword else positional).append(parameter)
    return Signature(function.__name__, tuple(positional), tuple(keyword))


def _parameter(
    function: Callable[..., Any], item: inspect.Parameter, only_keyword: bool, local_names: Mapping[str, Any]
) -> Parameter:
    annotation = _evaluated(function, item, local_names)
    if only_keyword or annotation is constexpr:
        return Parameter(item.name, ParameterKind.CONSTANT, default=item.default)
    if annotation is item.empty:
        return Parameter(item.name, ParameterKind.ANY, default=item.default)
    if isinstance(annotation, Tensor):
        return Parameter(item.name, ParameterKind.TENSOR, annotation, default=item.default)
    if annotation is Tensor:
        return Parameter(item.name, ParameterKind.TENSOR, Tensor(), default=item.default)
    if isinstance(annotation, ScalarType):
        if not annotation.dtype.passed:
            raise TraceError(f"{function.__qualname__}: {item.name}: a number of a call cannot be a {annotation.dtype}")
        return Parameter(item.name, ParameterKind.SCALAR, dtype=annotation.dtype, default=item.default)
    raise TraceError(
        f"{function.__qualname__}: the annotation of {item.name}, {annotation!r}, is not T.Tensor(...), a scalar type "
        "such as T.int32, or T.constexpr"
    )


def _evaluated(function: Callable[..., Any], item: inspect.Parameter, local_names: Mapping[str, Any]) -> Any:
    """The annotation's value; under `from __future__ import annotations` it is a string."""
    if not isinstance(item.annotation, str):
        return item.annotation
    names = _closed_over(function)
    try:
        return eval(item.annotation, function.__globals__, {**local_names, **names})
    except Exception as error:
        raise TraceError(
            f"{function.__qualname__}: the annotation of {item.name}, {item.annotation!r}, could not be evaluated: "
            f"{type(error).__name__}: {error}"
        ) from None


def _closed_over(function: Callable[..., Any]) -> dict[str, Any]:
    """The names of an enclosing function that have a value already."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # assigned after the decoration
    return found
