"""`ComposeLayout`: a `TileLayout` whose `m` values go through an XOR swizzle.

It has the protocol of `TileLayout`; every operation works on the tile and keeps the swizzle. The swizzle comes after
the tile's offset, so a slice's start is swizzled with the rest of the address, as it must be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from warpjit.errors import LayoutError
from warpjit.layout.axis import Axis, Scope, m
from warpjit.layout.drawn import Drawn
from warpjit.layout.enumeration import Values, fills_box, same_places
from warpjit.layout.evaluation import Coordinate
from warpjit.layout.inverse import no_inverse
from warpjit.layout.iters import Iters, Shape, fuse
from warpjit.layout.swizzle import Swizzle
from warpjit.layout.tile import TileLayout, box_of


@dataclass(frozen=True, repr=False)
class ComposeLayout(Drawn):
    """`m` value x of `tile_layout` -> x with bits exchanged; the other axes stay.

    per_element    log2 of the elements that stay together
    swizzle_len    number of address bits that are XORed (0: nothing happens)
    atom_len       distance of the two bit groups, at least swizzle_len
    swizzle_inner  True: the high group goes into the low one; False: the other way round

    A bare swizzle is `ComposeLayout(p, b, a, TileLayout(S[2 ** (p + b + a)]))`.
    Raises LayoutError unless 0 <= per_element and 0 <= swizzle_len <= atom_len.
    """

    per_element: int
    swizzle_len: int
    atom_len: int
    tile_layout: TileLayout
    swizzle_inner: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.tile_layout, TileLayout):
            raise LayoutError(f"ComposeLayout: tile_layout: expected a TileLayout but got {self.tile_layout!r}")
        Swizzle(self.per_element, self.swizzle_len, self.atom_len, self.swizzle_inner)

    def __repr__(self) -> str:
        numbers = f"{self.per_element}, {self.swizzle_len}, {self.atom_len}"
        return f"ComposeLayout({numbers}, {self.tile_layout!r}{'' if self.swizzle_inner else ', swizzle_inner=False'})"

    @cached_property
    def swizzle(self) -> Swizzle:
        """The function from the tile's `m` value to the layout's."""
        return Swizzle(self.per_element, self.swizzle_len, self.atom_len, self.swizzle_inner)

    @property
    def period(self) -> int:
        """The number of elements after which the swizzle repeats."""
        return self.swizzle.period

    @property
    def shard(self) -> Iters:
        return self.tile_layout.shard

    @property
    def replica(self) -> Iters:
        return self.tile_layout.replica

    @property
    def offset(self) -> Mapping[Axis, int]:
        """The tile's origin, before the swizzle."""
        return self.tile_layout.offset

    @property
    def extents(self) -> Shape:
        return self.tile_layout.extents

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.tile_layout.axes

    def apply(self, *coords: Coordinate, shape: Sequence[int] | None = None) -> dict[str, Any]:
        """See `TileLayout.apply`; expressions must also have & ^ << >>."""
        return self._swizzled(self.tile_layout.apply(*coords, shape=shape))

    def enumerate(self, shape: Sequence[int] | None = None) -> dict[str, Values]:
        """See `TileLayout.enumerate`."""
        return self._swizzled(self.tile_layout.enumerate(shape))

    def enumerate_replicas(self, shape: Sequence[int] | None = None) -> dict[str, Values]:
        """See `TileLayout.enumerate_replicas`."""
        return self._swizzled(self.tile_layout.enumerate_replicas(shape))

    def _swizzled(self, values: dict[str, Any]) -> dict[str, Any]:
        if "m" in values:
            values["m"] = self.swizzle(values["m"])
        return values

    def size(self, axis: Axis | str | None = None) -> int:
        """The tile's size."""
        return self.tile_layout.size(axis)

    def span(self, axis: Axis | str | None = None) -> int:
        """The tile's span; where the swizzle leads beyond it (a span of no whole swizzle blocks), up to there."""
        beyond = self._beyond if axis is None or Axis.get(axis) is m else 0
        return self.tile_layout.span(axis) + beyond

    @cached_property
    def _beyond(self) -> int:
        span = self.tile_layout.span(m)
        if span % self.swizzle.block == 0 or not self.swizzle.moves_below(span):
            return 0
        return max(int(self.enumerate_replicas()["m"].max()) + 1 - span, 0)

    def equivalent(self, other: Layout) -> bool:
        """Whether both put each element at the same set of places."""
        if self.canonicalize() == other.canonicalize():
            return True
        if self.size() != other.size():
            return False
        return same_places(self.enumerate_replicas(), other.enumerate_replicas(), self.size())

    def is_trivial(self) -> bool:
        """Whether this is the identity on `m`: a trivial tile within which the swizzle moves nothing."""
        return self.tile_layout.is_trivial() and not self.swizzle.moves_below(self.tile_layout.span(m))

    def is_contiguous(self) -> bool:
        """Whether neighbouring elements are neighbours in memory: a contiguous tile that the swizzle does not touch."""
        return self.tile_layout.is_contiguous() and not self.swizzle.moves_below(self.tile_layout.span(m))

    def is_bijective(self, axes: Iterable[Axis | str] | Mapping[Axis | str, int]) -> bool:
        """See `TileLayout.is_bijective`."""
        if fuse(self.replica):
            return False
        box = box_of(self, axes)
        return fills_box(self.enumerate(), {axis.name: extent for axis, extent in box.items()})

    def overlaps(self) -> bool:
        """Whether two elements, or two copies, share a place: the swizzle moves addresses one to one."""
        return self.tile_layout.overlaps()

    def get_scope(self) -> tuple[Scope, Scope] | None:
        """See `TileLayout.get_scope`."""
        return self.tile_layout.get_scope()

    def check_well_formed(self) -> None:
        """See `TileLayout.check_well_formed`."""
        self.tile_layout.check_well_formed()

    def canonicalize(self) -> ComposeLayout:
        """The same map over the canonical tile."""
        return self._over(self.tile_layout.canonicalize())

    def group(self, shape: Sequence[int]) -> tuple[ComposeLayout, Shape]:
        """See `TileLayout.group`."""
        grouped, seps = self.tile_layout.group(shape)
        return self._over(grouped), seps

    def permute_dims(self, perm: Sequence[int]) -> ComposeLayout:
        """See `TileLayout.permute_dims`."""
        return self._over(self.tile_layout.permute_dims(perm))

    def permute_by_groups(self, seps: Sequence[int], perm: Sequence[int]) -> ComposeLayout:
        """See `TileLayout.permute_by_groups`."""
        return self._over(self.tile_layout.permute_by_groups(seps, perm))

    def tile(self, outer: TileLayout, outer_shape: Sequence[int], inner_shape: Sequence[int]) -> ComposeLayout:
        """See `TileLayout.tile`. The swizzle applies to the whole: copies are alike if the tile spans its period."""
        return self._over(self.tile_layout.tile(outer, outer_shape, inner_shape))

    def tile_to(self, to_shape: Sequence[int], cur_shape: Sequence[int]) -> ComposeLayout:
        """See `TileLayout.tile_to` and `tile`."""
        return self._over(self.tile_layout.tile_to(to_shape, cur_shape))

    def pack(self, n: int, axis: Axis | str = m) -> ComposeLayout:
        """See `TileLayout.pack`; on `m` the swizzle loses log2(n) of the bits that stay together (LayoutError)."""
        return self._over(self.tile_layout.pack(n, axis), -self._bits("pack", n, axis))

    def unpack(self, n: int, axis: Axis | str = m) -> ComposeLayout:
        """See `TileLayout.unpack`; on `m`, n must be a power of two (LayoutError)."""
        return self._over(self.tile_layout.unpack(n, axis), self._bits("unpack", n, axis))

    def slice(self, starts: Sequence[int], extents: Sequence[int], shape: Sequence[int] | None = None) -> ComposeLayout:
        """See `TileLayout.slice`."""
        return self._over(self.tile_layout.slice(starts, extents, shape))

    def compose(self, inner: Layout) -> ComposeLayout:
        """See `TileLayout.compose`; LayoutError where two swizzles would follow one another."""
        tile = self.tile_layout.compose(inner)
        if isinstance(tile, ComposeLayout):
            raise LayoutError(
                f"{self}: compose: expected a layout without a swizzle but got {inner}: two do not make one"
            )
        return self._over(tile)

    def inverse(self, axes: Iterable[Axis | str] | Mapping[Axis | str, int]) -> Layout:
        """See `TileLayout.inverse`: the swizzle comes after the tile, so in the inverse it comes before.

        Raises LayoutError too where no swizzle after the tile's inverse is the same: where the tile moves the bits that
        the swizzle exchanges apart.
        """
        if not self.swizzle.moves_below(self.tile_layout.span(m)):
            return self.tile_layout.inverse(axes)
        box = box_of(self, axes)
        if not self.is_bijective(box):
            raise no_inverse(self, box)
        turned = self.tile_layout.inverse(box)
        places = dict(zip(box, np.unravel_index(np.arange(self.size()), tuple(box.values())), strict=True))
        places[m] = self.swizzle(places[m])
        wanted = turned.enumerate(tuple(box.values()))[m.name][tuple(places.values())].reshape(-1)
        found = self._turned(turned, box)
        if found is None or not np.array_equal(found.enumerate()[m.name], wanted):
            raise LayoutError(f"{self}: inverse: no swizzle after {turned} is the same as the swizzle before it")
        return found

    def _turned(self, turned: TileLayout, box: Mapping[Axis, int]) -> ComposeLayout | None:
        """A swizzle of the element's index: its lowest bits are where the tile's inverse puts those of the address."""
        where = list(box).index(m)
        bits: list[int] = []
        for bit in (self.per_element, self.per_element + self.atom_len):
            place = [0 for _ in box]
            place[where] = 1 << bit
            index = turned.apply(*place, shape=tuple(box.values()))[m.name] if place[where] < box[m] else 0
            if not index or index & (index - 1):
                return None
            bits.append(index.bit_length() - 1)
        low, high = bits
        if abs(high - low) < self.swizzle_len:
            return None
        inner = self.swizzle_inner if high > low else not self.swizzle_inner
        return ComposeLayout(min(low, high), self.swizzle_len, abs(high - low), turned, inner)

    def _over(self, tile: TileLayout, more_bits: int = 0) -> ComposeLayout:
        if tile is self.tile_layout and not more_bits:
            return self
        return replace(self, tile_layout=tile, per_element=self.per_element + more_bits)

    def _bits(self, what: str, n: int, axis: Axis | str) -> int:
        if Axis.get(axis) is not m:
            return 0
        if n & (n - 1):
            raise LayoutError(f"{self}: {what}: n: expected a power of two but got {n}")
        bits = n.bit_length() - 1
        if what == "pack" and bits > self.per_element:
            raise LayoutError(
                f"{self}: pack: n: expected at most {1 << self.per_element}, the elements that the swizzle keeps "
                f"together, but got {n}"
            )
        return bits


Layout: TypeAlias = TileLayout | ComposeLayout
"""Either kind of layout."""
