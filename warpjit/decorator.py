"""`warpjit`, the decorator: one object that also carries the package's functions.

What a kernel is made of is loaded with the first kernel: the names of the language come without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from warpjit import config
from warpjit.errors import ArgumentError

if TYPE_CHECKING:
    from warpjit.compiled import Compiled
    from warpjit.kernel import Kernel
    from warpjit.tuner import Config as Choosable
    from warpjit.tuner import Tuned


class Decorator:
    """`@warpjit` or `@warpjit(contract=…, strict=…, unverified=…, debug=…)` makes a kernel of a Python function.

    contract    a product and a sum may be fused into one operation (True); False: every operation rounds by itself
    strict      a stack frame or spilled registers raise CompileError
    unverified  instructions may be used whose rows were never compared with a device; False: they raise TraceError
    debug       `assert`, `T.device_assert` and `print` in a kernel are executed; None: if WARPJIT_DEBUG=1 was set
                when the kernel was decorated; False: they are only traced

    Raises SourceError where the function's source cannot be had, TraceError for an annotation that is no type,
    ArgumentError for an option that is no bool.
    """

    @property
    def compile(self) -> Callable[..., Compiled]:
        """`warpjit.compile(kernel, *args, target=None, **constants)`: see there."""
        from warpjit.compiled import compile  # noqa: PLC0415  the decorator's name does without

        return compile

    @property
    def autotune(self) -> Callable[..., Callable[[Kernel], Tuned]]:
        """`@warpjit.autotune(configs, …)` above `@warpjit`: see there."""
        from warpjit.tuner import autotune  # noqa: PLC0415  the decorator's name does without

        return autotune

    @property
    def Config(self) -> type[Choosable]:
        """A configuration to tune with: see there."""
        from warpjit.tuner import Config  # noqa: PLC0415  the decorator's name does without

        return Config

    @property
    def space(self) -> Callable[..., tuple[Choosable, ...]]:
        """Configurations from ranges: see there."""
        from warpjit.tuner import space  # noqa: PLC0415  the decorator's name does without

        return space

    @overload
    def __call__(self, function: Callable[..., Any], /) -> Kernel: ...

    @overload
    def __call__(
        self, /, *, contract: bool = True, strict: bool = False, unverified: bool = False, debug: bool | None = None
    ) -> Callable[[Callable[..., Any]], Kernel]: ...

    def __call__(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        contract: bool = True,
        strict: bool = False,
        unverified: bool = False,
        debug: bool | None = None,
    ) -> Any:
        from warpjit.kernel import Kernel, Options  # noqa: PLC0415  the decorator's name does without

        names = sys._getframe(1).f_locals  # where string annotations may find names of an enclosing function
        checks = config.read().debug if debug is None else debug
        options = {"contract": contract, "strict": strict, "unverified": unverified, "debug": checks}
        for name, value in options.items():
            if type(value) is not bool:
                raise ArgumentError(f"warpjit: {name}: expected a bool but got {type(value).__name__} {value!r}")
        chosen = Options(**options)
        if function is not None:
            return Kernel(function, chosen, names)
        return lambda decorated: Kernel(decorated, chosen, names)

    def __repr__(self) -> str:
        return "warpjit"


warpjit = Decorator()
jit = warpjit
