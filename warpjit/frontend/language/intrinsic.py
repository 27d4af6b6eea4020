"""A name of the language that only means something inside a kernel.

The Python function under `@intrinsic` gives the name, the signature and the documentation; its body never
runs. What a call does is the tracer's: `warpjit.frontend.intrinsics` has one handler for each.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

from warpjit.errors import TraceError

P = ParamSpec("P")
R = TypeVar("R")


class Intrinsic:
    """Callable in a kernel; anywhere else an error that says so."""

    def __init__(self, function: Callable[..., Any], prefix: str):
        self.name = prefix + function.__name__
        self._function = function
        functools.update_wrapper(self, function)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self._function)

    @functools.cached_property
    def positional(self) -> tuple[int, int]:
        return positional(self.signature)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TraceError(f"{self.name} means something only inside a function decorated with @warpjit")

    def __repr__(self) -> str:
        return self.name


def positional(signature: inspect.Signature) -> tuple[int, int]:
    """The least and the most arguments of a call without keywords that is sure to be legal, which need not be bound
    one by one; (1, 0) where there is none."""
    parameters = signature.parameters.values()
    if any(each.kind is each.VAR_POSITIONAL or _is_wanted_by_name(each) for each in parameters):
        return 1, 0
    named = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return sum(each.default is each.empty for each in named), len(named)


def _is_wanted_by_name(parameter: inspect.Parameter) -> bool:
    return parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty


class Namespace(types.SimpleNamespace):
    """Names of the language under a name, `T.cuda.tile` for one. Nobody changes what they mean."""


def intrinsic(prefix: str = "T.") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function's name an intrinsic, called `prefix` + name in messages."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        return cast(Callable[P, R], Intrinsic(function, prefix))

    return wrap
