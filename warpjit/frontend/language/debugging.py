"""Assertions and printing, while tracing and on the device.

`assert condition, "text"` and `print(...)` may stand in a kernel. As `T.device_assert` they are executed by kernels
with `debug`: `@warpjit(debug=True)`, or WARPJIT_DEBUG=1 when the kernel is decorated. In others they are traced, so
that mistakes in them are found, and cost nothing. A condition that is known while tracing is checked then, always.

On the GPU what is printed appears on the process's stdout when the device is synchronised, threads in any order (the
oldest is lost where it is more than the driver's buffer of 1 MB holds). A failed assertion ends the kernel: the next
synchronisation raises torch's error of a device-side assertion, and the process cannot use the device any more. In the
simulator output goes to `sys.stdout` when the kernel is done, CTA by CTA and warp by warp: of one call the lanes in
order. A failed assertion is a SimulationError with CTA, warp, lane and values.
"""

# The bodies never run (see `core`).

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpjit.frontend.language.intrinsic import intrinsic

if TYPE_CHECKING:
    from warpjit.frontend.language import Number


@intrinsic()
def static_assert(condition: Any, message: str = "") -> None:
    """Checks what is known while tracing; raises TraceError with `message` where it is false, or is not known."""


@intrinsic()
def static_print(*values: Any) -> None:
    """Prints while tracing: of scalars the type and what is known of them, of tensors type, shape and layout."""


@intrinsic()
def device_assert(condition: Number, message: Any = "") -> None:
    """Ends the kernel where `condition` is false, if the kernel has `debug`. `message` may be an f-string of values.

    A message with values is printed like a line of `T.printf` before.
    """


@intrinsic()
def printf(format: str, *args: Any) -> None:
    """Each active thread prints, in every kernel: `if lane == 0: T.printf("%d %g\\n", i, x)`.

    format  C's: `%d %i` for signed integers of up to 32 bits, `%u` for unsigned ones, `%x %X %o %c` for either, with
            `ll` those of 64 bits; `%e %f %g` for floats of any width; `%s` for strings that are known while tracing
    args    one for each conversion, at most 32

    `print` writes device values as `%d`, `%u` and `%g`, bools as True and False, and takes f-strings with formats that
    C knows: `print(f"row {i}: {x:.3f}")`.
    Raises TraceError: a value that does not fit its conversion, too many or too few.
    """


__all__ = ["device_assert", "printf", "static_assert", "static_print"]
