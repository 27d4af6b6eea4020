"""The accurate mathematical functions under `T`. The fast ones are in `approx`; `T.sqrt`, `T.fma`, ... in `core`."""

# The bodies never run (see `core`). Errors: CUDA C++ Programming Guide, "Mathematical Functions".

from __future__ import annotations

from typing import TYPE_CHECKING

from warpjit.frontend.language.intrinsic import intrinsic

if TYPE_CHECKING:
    from warpjit.frontend.language import AnyFloat, Number


@intrinsic()
def exp(a: Number) -> AnyFloat:
    """e to the power `a`. Largest error 2 ulp (float64: 1)."""


@intrinsic()
def exp2(a: Number) -> AnyFloat:
    """2 to the power `a`. Largest error 2 ulp (float64: 1)."""


@intrinsic()
def log(a: Number) -> AnyFloat:
    """The natural logarithm; of 0 -inf, of a negative number NaN. Largest error 1 ulp."""


@intrinsic()
def log2(a: Number) -> AnyFloat:
    """The logarithm to base 2; of 0 -inf, of a negative number NaN. Largest error 1 ulp."""


@intrinsic()
def sin(a: Number) -> AnyFloat:
    """The sine of an angle in radians, however large; of an infinity NaN. Largest error 2 ulp.

    Large angles are reduced with many digits of pi, in a branch that may keep them in local memory: a stack frame of 32
    or 40 bytes (float32: as the compiler decides; float64: always), which `@warpjit(strict=True)` refuses.
    """


@intrinsic()
def cos(a: Number) -> AnyFloat:
    """The cosine of an angle in radians, however large; of an infinity NaN. Largest error 2 ulp. See `T.sin`."""


@intrinsic()
def tanh(a: Number) -> AnyFloat:
    """The hyperbolic tangent. Largest error 2 ulp (float64: 1)."""


@intrinsic()
def erf(a: Number) -> AnyFloat:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to `a`. Largest error 2 ulp."""


@intrinsic()
def rsqrt(a: Number) -> AnyFloat:
    """1 / sqrt(a), exactly rounded (float64: largest error 1 ulp); of a zero an infinity of its sign, below it NaN."""


@intrinsic()
def rcp(a: Number) -> AnyFloat:
    """1 / a, exactly rounded; of a zero an infinity of its sign.

    As a division it calls a subroutine for arguments that are subnormal or have a subnormal reciprocal.
    """


@intrinsic()
def floor(a: Number) -> AnyFloat:
    """The largest integer that is not above `a`, as a float of the same type; zeros keep their sign."""


@intrinsic()
def ceil(a: Number) -> AnyFloat:
    """The smallest integer that is not below `a`, as a float of the same type; zeros keep their sign."""


@intrinsic()
def round(a: Number) -> AnyFloat:
    """The nearest integer, of two the even one, as a float of the same type; zeros keep their sign."""


@intrinsic()
def trunc(a: Number) -> AnyFloat:
    """The integer part of `a`, as a float of the same type; zeros keep their sign."""


__all__ = ["ceil", "cos", "erf", "exp", "exp2", "floor", "log", "log2", "rcp", "round", "rsqrt", "sin", "tanh", "trunc"]
