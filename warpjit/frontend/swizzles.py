"""Swizzled offsets of runtime coordinates, computed part by part.

The swizzle is linear over bits: where two parts of a sum share no bit, the sum is their XOR, and each part can be
swizzled on its own. So what a lane contributes is swizzled once, and a constant or a uniform index costs one XOR more,
or nothing at all. Parts whose bits may meet are swizzled together. Multiples of the period stay outside.
"""

from __future__ import annotations

from functools import reduce

from warpjit.frontend import arithmetic
from warpjit.frontend.builder import Builder
from warpjit.frontend.values import Linear, Scalar
from warpjit.ir.dtypes import DType
from warpjit.ir.nodes import Local
from warpjit.layout import ComposeLayout
from warpjit.record import record


@record
class Part:
    """A part of an offset, and the bits that it may have (None: it may be negative, or has no bound)."""

    sum: Linear
    bits: int | None

    @staticmethod
    def of(builder: Builder, linear: Linear) -> Part:
        facts = builder.linear_facts(linear)
        if facts.lo is None or facts.lo < 0 or facts.hi is None:
            return Part(linear, None)
        if not linear.terms:
            return Part(linear, linear.constant)
        step = facts.multiple & -facts.multiple
        below = (1 << facts.hi.bit_length()) - 1
        return Part(linear, below & ~(step - 1) if step else 0)

    def meets(self, other: Part) -> bool:
        """Whether adding the two may carry."""
        return self.bits is None or other.bits is None or bool(self.bits & other.bits)


def swizzled(builder: Builder, layout: ComposeLayout, offset: int | Scalar) -> int | Scalar:
    """The swizzle of `offset`, in elements."""
    if isinstance(offset, int):
        return int(layout.swizzle(offset))
    assert offset.linear is not None
    outside, inside = arithmetic.split(builder, offset.linear, layout.period)
    whole = Part.of(builder, inside)
    if whole.bits is None or whole.bits > offset.dtype.max:  # what is inside alone may not fit: the whole sum does
        return _together(builder, layout, offset)
    apart, constant = _apart(builder, inside)
    images = [_image(builder, layout, offset.dtype, part) for part in apart]
    fixed = int(layout.swizzle(constant))
    reachable = reduce(lambda bits, part: bits | _image_bits(layout, part.bits or 0), apart, 0)
    if not images:
        return builder.integer(offset.dtype, outside.times(layout.period).plus(Linear((), fixed)))
    mixed = reduce(lambda a, b: arithmetic.binary(builder, "xor", a, b), images)
    if fixed & reachable:
        mixed, fixed = arithmetic.binary(builder, "xor", mixed, fixed), 0
    assert mixed.linear is not None
    return builder.integer(offset.dtype, outside.times(layout.period).plus(mixed.linear).plus(Linear((), fixed)))


def _apart(builder: Builder, linear: Linear) -> tuple[list[Part], int]:
    """Parts whose bits never meet, and the constant among them (0 where it had to go into a part)."""
    parts: list[Part] = []
    for term in [*(Linear((term,)) for term in linear.terms), Linear((), linear.constant)]:
        merged = Part.of(builder, term)
        while True:
            met = [part for part in parts if part.meets(merged)]
            if not met:
                break
            parts = [part for part in parts if part not in met]
            merged = Part.of(builder, reduce(Linear.plus, (part.sum for part in met), merged.sum))
        parts.append(merged)
    return [part for part in parts if part.sum.terms], sum(part.sum.constant for part in parts if not part.sum.terms)


def _moving(layout: ComposeLayout) -> tuple[int, int]:
    """(mask of the bits that are read, how far they go down; negative: up)."""
    mask = ((1 << layout.swizzle_len) - 1) << layout.per_element
    return (mask << layout.atom_len, layout.atom_len) if layout.swizzle_inner else (mask, -layout.atom_len)


def _image_bits(layout: ComposeLayout, bits: int) -> int:
    """The bits that the swizzle of a part with `bits` may have."""
    mask, shift = _moving(layout)
    moved = bits & mask
    return bits | (moved >> shift if shift >= 0 else moved << -shift)


def _image(builder: Builder, layout: ComposeLayout, dtype: DType, part: Part) -> Scalar:
    x = builder.integer(dtype, part.sum)
    mask, _ = _moving(layout)
    if part.bits is not None and not part.bits & mask:
        return x
    return _together(builder, layout, x)


def _together(builder: Builder, layout: ComposeLayout, x: Scalar) -> Scalar:
    """x ^ its bits moved: computed once in a block, as any pure operation is."""
    key = ("swizzle", layout, x.dtype, x.linear)
    known = builder.block.computed.get(key)
    if known is not None:
        return builder.scalar_of(known)
    mask, shift = _moving(layout)
    if shift >= 0:
        bits = arithmetic.binary(builder, "and", arithmetic.binary(builder, "shr", x, shift), mask >> shift)
    else:
        bits = arithmetic.binary(builder, "shl", arithmetic.binary(builder, "and", x, mask), -shift)
    image = arithmetic.binary(builder, "xor", x, bits)
    assert isinstance(image.atom, Local)
    builder.block.computed[key] = image.atom
    return image
