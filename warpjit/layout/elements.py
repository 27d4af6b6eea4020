"""How wide an element is: from a number of bits, the name of a type, or a type.

Layouts count elements; only what speaks of bytes (swizzle modes, banks) asks for their width. Types are not known here.
"""

from __future__ import annotations

import re
from typing import Protocol, TypeAlias

from warpjit.errors import LayoutError
from warpjit.layout.axis import as_int

UNIT_BITS = 128
"""The swizzle moves units of 16 bytes."""


class _HasBits(Protocol):
    @property
    def bits(self) -> int: ...


ElementType: TypeAlias = int | str | _HasBits
"""A bit count, the name of a dtype, or a dtype with `bits`."""


def element_bits(dtype: ElementType) -> int:
    """The bits of an element: a power of two up to 128 (LayoutError)."""
    bits = _named_bits(dtype) if isinstance(dtype, str) else as_int(getattr(dtype, "bits", dtype), "dtype")
    if bits < 1 or bits > UNIT_BITS or bits & (bits - 1):
        raise LayoutError(f"dtype: expected a type of 1, 2, 4, … or {UNIT_BITS} bits but got {dtype!r}, of {bits} bits")
    return bits


def _named_bits(name: str) -> int:
    if name == "bool":
        return 8
    match = re.match(r"(?:u?int|b?float|tf)(\d+)(?:_\w+)?$", name)
    if match is None:
        raise LayoutError(f"dtype: expected a type, its name or a number of bits but got {name!r}")
    # tf32 is stored in 32 bits, and every other name says its width.
    return int(match.group(1))
