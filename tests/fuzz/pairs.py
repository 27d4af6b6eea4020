"""Two 16-bit floats in one register, for the oracle: every operation is that of the halves."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .numbers import Invalid, Number, cast


class Pair:
    """`T.float16x2` and `T.bfloat16x2`."""

    def __init__(self, kind: str, low: Any, high: Any):
        self.kind, self.halves = kind, (cast(low, kind), cast(high, kind))

    def __getitem__(self, index: Any) -> Number:
        return self.halves[operator.index(index)]

    def __neg__(self) -> Pair:
        return by_halves(operator.neg)(self)

    def __abs__(self) -> Pair:
        return by_halves(abs)(self)


def by_halves(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes pairs as well; a Python number beside one stands for both halves."""

    def run(*values: Any, **words: Any) -> Any:
        pairs = [value for value in values if isinstance(value, Pair)]
        if not pairs:
            return function(*values, **words)
        if any(isinstance(value, Number) or getattr(value, "kind", pairs[0].kind) != pairs[0].kind for value in values):
            raise Invalid("a pair with another type")
        halves = [
            function(*(value[half] if isinstance(value, Pair) else value for value in values), **words)
            for half in (0, 1)
        ]
        return Pair(pairs[0].kind, *halves)

    return run


for _name in ("add", "sub", "mul"):
    _operation = by_halves(getattr(operator, _name))
    setattr(Pair, f"__{_name}__", _operation)
    setattr(Pair, f"__r{_name}__", lambda self, other, operation=_operation: operation(other, self))


def pair_of(kind: str) -> Callable[..., Pair]:
    """`T.float16x2(low, high)`, or of one number for both halves."""
    return lambda low, high=None: Pair(kind, low, low if high is None else high)
