"""What the mathematical functions under `T` and `T.approx` do while tracing.

A number that is known while tracing is computed at once, in float64; a device value becomes one operation of its own
type. `T.sqrt`, `T.fma` and what operators stand for are in `intrinsics` and `arithmetic`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from warpjit.errors import TraceError
from warpjit.frontend.calls import INTRINSICS
from warpjit.frontend.literals import describe
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, Value
from warpjit.ir import facts as fact
from warpjit.isa.row import Row
from warpjit.isa.scalar_math import APPROXIMATE, MATH, evaluate

Rows = Mapping[tuple[str, str], Row]


def _computed(shown: str, name: str, number: int | float) -> float:
    """The value of a number that is known while tracing."""
    try:
        return evaluate(name, float(number))
    except OverflowError:
        raise TraceError(f"{shown}: expected a number in float64's range but got an int beyond it") from None


def _function(prefix: str, name: str, rows: Rows) -> Callable[[Tracer, Value], Value]:
    """The handler of `prefix` + name, whose operations are `rows[name, type]`."""
    types = [dtype for function, dtype in rows if function == name]
    expected = "a float" if "float64" in types else f"{', '.join(types[:-1])} or {types[-1]}"

    def run(tracer: Tracer, x: Value) -> Value:
        if isinstance(x, int | float) and not isinstance(x, bool):
            return _computed(prefix + name, name, x)
        row = rows.get((name, x.dtype.name)) if isinstance(x, Scalar) else None
        if row is None or not isinstance(x, Scalar):
            raise TraceError(f"{prefix}{name}: expected {expected} but got {describe(x)}")
        tracer.require_device(prefix + name)
        facts = fact.of_type(x.dtype, x.uniformity)
        return tracer.builder.operate(row, (tracer.builder.atom(x),), facts, loops=x.loops)

    return run


INTRINSICS.update(
    {
        f"{prefix}{name}": _function(prefix, name, rows)
        for prefix, rows in (("T.", MATH), ("T.approx.", APPROXIMATE))
        for name, _ in rows
    }
)
