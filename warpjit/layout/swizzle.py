"""The XOR swizzle: a permutation of addresses that spreads rows over the shared-memory banks.

Only the arithmetic and its checks; `compose` puts it behind a layout, `standard` names the hardware's modes.
"""

from __future__ import annotations

from typing import Any

from warpjit.errors import LayoutError
from warpjit.layout.axis import as_int
from warpjit.record import record


@record
class Swizzle:
    """Of the address bits above the lowest `keep`: XOR `bits` bits into `bits` others that lie `shift` away.

    inner (True): the high group into the low one; False: the low group into the high one. `bits` of 0 is the identity.
    Raises LayoutError unless keep >= 0, bits >= 0 and shift >= bits.
    """

    keep: int
    bits: int
    shift: int
    inner: bool = True

    def __post_init__(self) -> None:
        named = {"per_element": self.keep, "swizzle_len": self.bits, "atom_len": self.shift}
        for name, value in named.items():
            if as_int(value, f"swizzle: {name}") < 0:
                raise LayoutError(f"swizzle: {name}: expected 0 or more but got {value}")
        if self.shift < self.bits:
            raise LayoutError(f"swizzle: atom_len: expected at least swizzle_len, {self.bits}, but got {self.shift}")

    @property
    def period(self) -> int:
        """The number of addresses after which the pattern repeats."""
        return 1 << (self.keep + self.bits + self.shift)

    @property
    def block(self) -> int:
        """Aligned blocks of this many addresses are mapped onto themselves."""
        return 1 << (self.keep + self.bits + (0 if self.inner else self.shift))

    def moves_below(self, span: int) -> bool:
        """Whether any address in [0, span) moves."""
        return self.bits > 0 and span - 1 >= 1 << (self.keep + (self.shift if self.inner else 0))

    def __call__(self, address: Any) -> Any:
        """The swizzled address. Works on ints, int arrays and expressions with & ^ << >>."""
        if self.bits == 0:
            return address
        mask = ((1 << self.bits) - 1) << self.keep
        return address ^ (((address >> self.shift) & mask) if self.inner else ((address & mask) << self.shift))
