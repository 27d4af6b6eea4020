"""The fast mathematical functions under `T.approx`: one instruction of the multifunction unit, or that and a product.

Of float32; float16 and bfloat16 compute in float32 and are rounded once. Subnormal numbers are kept, which costs three
instructions more in exp2, log2, rsqrt and sqrt and seven in rcp (sm_90a, nvcc 13.0); the forms that take and give zeros
instead are `T.ptx["ex2.approx.ftz.f32"](x)` and so on. A number that is known while tracing is computed in float64.

The simulator computes in float64 and rounds once. It does not have the device's errors, but for those of the products
that are named below. Errors are those that the PTX manual states in the section of each instruction, and for `exp` and
`log` the CUDA C++ Programming Guide in "Intrinsic Functions" (`__expf`, `__logf`).

Raises TraceError: not a float, or float64.
"""

# The bodies never run (see `core`).

from __future__ import annotations

from typing import TYPE_CHECKING

from warpjit.frontend.language.intrinsic import intrinsic

if TYPE_CHECKING:
    from warpjit.frontend.language import Number, ShortFloat


@intrinsic("T.approx.")
def exp2(a: Number) -> ShortFloat:
    """2 to the power `a` (`ex2.approx.f32`). Largest error 2 ulp."""


@intrinsic("T.approx.")
def exp(a: Number) -> ShortFloat:
    """e to the power `a`: 2 to the power of the float32 product a · log2(e).

    Largest error 2 + floor(|1.173 · a|) ulp. Where the product with log2(e) can be part of a factor that is there
    anyway, `T.approx.exp2` is faster and more accurate.
    """


@intrinsic("T.approx.")
def log2(a: Number) -> ShortFloat:
    """The logarithm to base 2 (`lg2.approx.f32`). Largest absolute error 2**-22 in (0.5, 2), else relative."""


@intrinsic("T.approx.")
def log(a: Number) -> ShortFloat:
    """The natural logarithm: the float32 product of `T.approx.log2` and log(2).

    Largest absolute error 2**-21.41 in [0.5, 2], largest error 3 ulp elsewhere.
    """


@intrinsic("T.approx.")
def sin(a: Number) -> ShortFloat:
    """The sine of an angle in radians (`sin.approx.f32`), after a float32 product with 1 / (2 pi).

    Largest absolute error 2**-20.5 in [-2 pi, 2 pi] and 2**-14.7 in [-100 pi, 100 pi]; none is stated beyond.
    """


@intrinsic("T.approx.")
def cos(a: Number) -> ShortFloat:
    """The cosine of an angle in radians (`cos.approx.f32`). Errors as of `T.approx.sin`."""


@intrinsic("T.approx.")
def tanh(a: Number) -> ShortFloat:
    """The hyperbolic tangent (`tanh.approx.f32`). Largest relative error 2**-11."""


@intrinsic("T.approx.")
def rcp(a: Number) -> ShortFloat:
    """1 / a (`rcp.approx.f32`). Largest error 1 ulp."""


@intrinsic("T.approx.")
def rsqrt(a: Number) -> ShortFloat:
    """1 / sqrt(a) (`rsqrt.approx.f32`). Largest relative error 2**-22.9."""


@intrinsic("T.approx.")
def sqrt(a: Number) -> ShortFloat:
    """The square root (`sqrt.approx.f32`). Largest relative error 2**-23."""


__all__ = ["cos", "exp", "exp2", "log", "log2", "rcp", "rsqrt", "sin", "sqrt", "tanh"]
