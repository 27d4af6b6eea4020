"""Kernels in classes: what `object.kernel` is, and how a kernel's place in a class is known.

The object is the kernel's first argument and a compile-time constant of it: see `frontend.specialize`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

INSPECTED = (
    *("bind", "simulate", "source", "ptx", "cubin", "sass", "resources", "specialization"),
    *("tune", "best", "tuning_report"),
)
"""Methods of a kernel that take what a call takes."""


class Binding(Enum):
    """What a kernel gets as its first argument where it is an attribute of a class."""

    NONE = "none"
    OBJECT = "object"
    CLASS = "class"


def binding_of(function: Callable[..., Any]) -> Binding:
    """How `@warpjit` found a function: in the body of a class, below @classmethod or @staticmethod, or elsewhere."""
    if isinstance(function, staticmethod):
        return Binding.NONE
    if isinstance(function, classmethod):
        return Binding.CLASS
    around = getattr(function, "__qualname__", "").rpartition(".")[0]
    return Binding.OBJECT if around and not around.endswith("<locals>") else Binding.NONE


class KernelMethod:
    """`object.kernel`: the kernel with the object as its first argument. It is called, and looked into, as a kernel."""

    __slots__ = ("kernel", "owner")

    def __init__(self, kernel: Any, owner: Any):
        self.kernel, self.owner = kernel, owner

    def __repr__(self) -> str:
        return f"<{self.kernel!r} of {type(self.owner).__name__}>"

    def __call__(self, *args: Any, **constants: Any) -> None:
        """Run the kernel. Raises as it does, and ArgumentError: the object can change."""
        self.kernel(self.owner, *args, **constants)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.kernel, name)
        if name == "warmup":
            return lambda calls=((),), **how: found(self._with_owners(calls), **how)
        return functools.partial(found, self.owner) if name in INSPECTED else found

    def _with_owners(self, calls: Any) -> Any:
        """What is no list of calls stays what it is: the kernel says so."""
        if isinstance(calls, Mapping | str) or not isinstance(calls, Iterable):
            return calls
        return [self._with_owner(call) for call in calls]

    def _with_owner(self, call: Any) -> Any:
        if isinstance(call, Mapping):
            return {self.kernel.signature.parameters[0].name: self.owner, **call}
        return (self.owner, *call) if isinstance(call, tuple) else call
