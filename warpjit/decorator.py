"""`warpjit`, the decorator: one object that also carries the package's functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, overload

from warpjit.compiled import compile
from warpjit.kernel import Kernel, Options


class Decorator:
    """`@warpjit` or `@warpjit(contract=..., strict=..., unverified=...)` makes a kernel of a Python function.

    contract    a product and a sum may be fused into one operation (True); False: every operation rounds by itself
    strict      a stack frame or spilled registers raise CompileError
    unverified  instructions may be used whose rows were never compared with a device; False: they raise TraceError

    Raises SourceError where the function's source cannot be had, TraceError for an annotation that is no type.
    """

    compile = staticmethod(compile)

    @overload
    def __call__(self, function: Callable[..., Any], /) -> Kernel: ...

    @overload
    def __call__(
        self, /, *, contract: bool = True, strict: bool = False, unverified: bool = False
    ) -> Callable[[Callable[..., Any]], Kernel]: ...

    def __call__(self, function: Callable[..., Any] | None = None, /, **options: bool) -> Any:
        names = sys._getframe(1).f_locals  # where string annotations may find names of an enclosing function
        if function is not None:
            return Kernel(function, Options(), names)
        chosen = Options(**options)
        return lambda decorated: Kernel(decorated, chosen, names)

    def __repr__(self) -> str:
        return "warpjit"


warpjit = Decorator()
jit = warpjit
