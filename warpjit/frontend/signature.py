"""A kernel's parameters, as its annotations describe them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from warpjit.errors import TraceError
from warpjit.frontend.language.types import ScalarType, Tensor, constexpr
from warpjit.ir.dtypes import DType


class ParameterKind(Enum):
    """What an argument may be."""

    ANY = "any"  # unannotated: decided by the argument
    TENSOR = "tensor"
    SCALAR = "scalar"
    CONSTANT = "constant"


@dataclass(frozen=True)
class Parameter:
    """One parameter. `tensor` for a tensor annotation, `dtype` for a scalar one."""

    name: str
    kind: ParameterKind
    tensor: Tensor | None = None
    dtype: DType | None = None
    default: Any = inspect.Parameter.empty

    @property
    def described(self) -> bool:
        """Whether the annotation alone says how to compile for it."""
        if self.kind is ParameterKind.TENSOR:
            return self.tensor is not None and self.tensor.shape is not None and self.tensor.dtype is not None
        return self.kind is ParameterKind.SCALAR


@dataclass(frozen=True)
class Signature:
    """All parameters: positional ones in order, then the keyword-only constants."""

    positional: tuple[Parameter, ...]
    keyword: tuple[Parameter, ...]
    python: inspect.Signature

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.positional + self.keyword


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
    return Signature(tuple(positional), tuple(keyword), python)


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
        return Parameter(item.name, ParameterKind.SCALAR, dtype=annotation.dtype, default=item.default)
    raise TraceError(
        f"{function.__qualname__}: the annotation of {item.name}, {annotation!r}, is not T.Tensor(...), a scalar type "
        "such as T.int32, or T.constexpr"
    )


def _evaluated(function: Callable[..., Any], item: inspect.Parameter, local_names: Mapping[str, Any]) -> Any:
    """The annotation's value; under `from __future__ import annotations` it is a string."""
    if not isinstance(item.annotation, str):
        return item.annotation
    names = dict(inspect.getclosurevars(function).nonlocals)
    try:
        return eval(item.annotation, function.__globals__, {**local_names, **names})
    except Exception as error:
        raise TraceError(
            f"{function.__qualname__}: the annotation of {item.name}, {item.annotation!r}, could not be evaluated: "
            f"{type(error).__name__}: {error}"
        ) from None
