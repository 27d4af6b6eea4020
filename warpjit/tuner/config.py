"""What is chosen among: a configuration, and the product of ranges that gives many."""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any

from warpjit.errors import ArgumentError
from warpjit.frontend.specialize import constant_kind


class Config:
    """Values for a kernel's compile-time constants, by their names: `Config(BM=128, stages=3)`.

    max_registers   of a thread (16 to 255), in place of what the kernel asks for; None: as the kernel says

    The values are its attributes. Two are equal if their values are, with their types. Raises ArgumentError: a value
    that is no compile-time constant.
    """

    __slots__ = ("_values", "max_registers", "text")

    def __init__(self, *, max_registers: int | None = None, **constants: Any) -> None:
        for name, value in constants.items():
            constant_kind(name, value)
        self._values = dict(constants)
        self.max_registers = max_registers
        words = [f"{name}={text_of(name, value)}" for name, value in sorted(constants.items())]
        self.text = ", ".join(words if max_registers is None else [*words, f"max_registers={max_registers}"])

    @property
    def constants(self) -> Mapping[str, Any]:
        """The values without `max_registers`, by name."""
        return dict(self._values)

    def __getattr__(self, name: str) -> Any:
        if name != "_values" and name in self._values:
            return self._values[name]
        raise AttributeError(f"there is no {name} in {self!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Config({self.text})"


def space(
    *,
    where: Callable[[Config], bool] | None = None,
    max_registers: Iterable[int | None] = (None,),
    **ranges: Iterable[Any],
) -> tuple[Config, ...]:
    """All combinations of `ranges`, `space(BM=[64, 128], stages=[2, 3])`, for which `where(config)` holds, in order.

    ArgumentError: there is none.
    """
    for name, values in ranges.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ArgumentError(f"{name}: expected the values to try, in a list, but got {values!r}")
    every = _product(ranges, max_registers)
    chosen = tuple(config for config in every if where is None or where(config))
    if not chosen:
        raise ArgumentError("space: expected at least one configuration but got none")
    return chosen


def _product(ranges: Mapping[str, Iterable[Any]], limits: Iterable[int | None]) -> Iterator[Config]:
    for *values, limit in itertools.product(*ranges.values(), limits):
        yield Config(max_registers=limit, **dict(zip(ranges, values, strict=True)))


def text_of(name: str, value: Any) -> str:
    """A compile-time constant as records and keys name it: the same in every process.

    ArgumentError: an object that prints as its address.
    """
    if isinstance(value, FunctionType):
        return f"{value.__module__}.{value.__qualname__}#{_code(value)}"
    if isinstance(value, tuple):
        return f"({', '.join(text_of(name, item) for item in value)}{',' if len(value) == 1 else ''})"
    text = repr(value)
    if f"{id(value):x}" in text:
        raise ArgumentError(
            f"{name}: expected a constant that prints as what it is, since tuning remembers it by that, but got {text}"
        )
    return text


@functools.lru_cache(maxsize=256)
def _code(function: FunctionType) -> str:
    """A digest of what a function does, so far as it stands in itself."""
    digest = hashlib.sha256()
    stack: list[Any] = [function.__code__]
    while stack:
        code = stack.pop()
        digest.update(code.co_code + repr(code.co_names).encode())
        for constant in code.co_consts:
            if hasattr(constant, "co_code"):
                stack.append(constant)
            else:
                digest.update(repr(constant).encode() + b"\0")
    return digest.hexdigest()[:12]
