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

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TraceError(f"{self.name} means something only inside a function decorated with @warpjit")

    def __repr__(self) -> str:
        return self.name


class Namespace(types.SimpleNamespace):
    """Names of the language under a name, `T.cuda.tile` for one. Nobody changes what they mean."""


def intrinsic(prefix: str = "T.") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function's name an intrinsic, called `prefix` + name in messages."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        return cast(Callable[P, R], Intrinsic(function, prefix))

    return wrap
