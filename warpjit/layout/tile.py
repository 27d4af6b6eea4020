"""`TileLayout`: where the elements of a tensor lie, as an immutable value with an algebra.

Element x (row-major) is split over the `shard` iters, lands at offset + sum of component * stride on each axis, and is
repeated at every combination of the `replica` iters. An axis that a layout does not name is at 0. XOR swizzles are
added by `compose`; what the axes mean for an instruction is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from math import prod
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from warpjit.errors import Finding, LayoutError
from warpjit.layout.axis import AXIS_RANK, Axis, Scope, as_count, as_int, m
from warpjit.layout.drawn import Drawn
from warpjit.layout.enumeration import Values, axis_values, copies, same_places
from warpjit.layout.evaluation import Coordinate, Plan, evaluate, plan
from warpjit.layout.injectivity import fill_box, overlap
from warpjit.layout.inverse import inverse_iters, no_inverse
from warpjit.layout.iters import Iter, Iters, Shape, as_shape, cut, fuse, regroup, size_of
from warpjit.layout.notation import Spec, row_major, spec_text
from warpjit.layout.packing import divided, divided_offset, is_packable, multiplied, packed_shard, unpacked_shard
from warpjit.layout.recovery import composed, is_index
from warpjit.layout.scopes import ill_formed, scope_of

if TYPE_CHECKING:
    from warpjit.layout.compose import Layout

Terms = tuple[tuple[Axis, int], ...]


@dataclass(frozen=True, init=False, repr=False)
class TileLayout(Drawn):
    """`TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 1 @ warpid] + 5 @ warpid)`.

    shard         iters that split the element's index, most significant first
    replica       iters whose every combination holds a further copy
    offset_terms  (axis, value > 0) of the origin, in a fixed order; `offset` shows them as a mapping

    Equality and hash are structural (see `equivalent` for the map), and `eval(repr(x)) == x`.
    Raises LayoutError where a part means nothing.
    """

    shard: Iters
    replica: Iters
    offset_terms: Terms

    def __init__(self, spec: Spec) -> None:
        if not isinstance(spec, Spec):
            raise LayoutError(f"TileLayout: expected the notation, S[...] + R[...] + offset, but got {spec!r}")
        self._set(spec.shard, spec.replica, spec.offset)

    @classmethod
    def from_iters(
        cls, shard: Iterable[Iter] = (), replica: Iterable[Iter] = (), offset: Mapping[Axis | str, int] | None = None
    ) -> TileLayout:
        """A layout from its parts."""
        terms = tuple((Axis.get(axis), as_int(value, f"offset on {axis}")) for axis, value in (offset or {}).items())
        return cls._of(tuple(shard), tuple(replica), terms)

    @classmethod
    def _of(cls, shard: Iters, replica: Iters = (), terms: Terms = ()) -> TileLayout:
        layout = cls.__new__(cls)
        layout._set(shard, replica, terms)
        return layout

    def _set(self, shard: Iters, replica: Iters, terms: Terms) -> None:
        object.__setattr__(self, "shard", shard)
        object.__setattr__(self, "replica", replica)
        object.__setattr__(self, "offset_terms", _origin(terms) if terms else ())

    def __repr__(self) -> str:
        return f"TileLayout({spec_text(self.shard, self.replica, self.offset_terms)})"

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return TileLayout._of, (self.shard, self.replica, self.offset_terms)

    @cached_property
    def _hash(self) -> int:
        return hash((self.shard, self.replica, self.offset_terms))

    @cached_property
    def offset(self) -> Mapping[Axis, int]:
        """The origin; an axis that is missing has offset 0."""
        return MappingProxyType(dict(self.offset_terms))

    @cached_property
    def extents(self) -> Shape:
        """The extents of the shard iters: the shape in which `apply` takes one coordinate for each iter."""
        return tuple(it.extent for it in self.shard)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Every axis that an iter or the offset names, in order of appearance."""
        named = chain((it.axis for it in (*self.shard, *self.replica)), (axis for axis, _ in self.offset_terms))
        return tuple(dict.fromkeys(named))

    @cached_property
    def _base(self) -> dict[str, int]:
        """The first element's place: an entry for each axis that a shard iter or the offset names."""
        origin = self.offset
        named = dict.fromkeys(chain((it.axis for it in self.shard), origin))
        return {axis.name: origin.get(axis, 0) for axis in named}

    # Where elements are.

    def apply(self, *coords: Coordinate, shape: Sequence[int] | None = None) -> dict[str, Any]:
        """The place of one element: a value for each axis that a shard iter or the offset names.

        One coordinate is the linear index, several are one for each shard iter; with `shape` (of the layout's size)
        they are coordinates of that shape. Ints are checked against the shape (LayoutError); any other object with
        + * // % is combined into an expression and neither checked nor converted. Replicas are not enumerated.
        """
        if shape is None:
            sizes = (self.size(),) if len(coords) == 1 else self.extents
        else:
            sizes = as_shape(shape, "shape")
        if len(coords) != len(sizes):
            wanted = f"for shape {sizes}" if shape is not None else "(one for each iter), or 1 (the linear index),"
            raise LayoutError(f"{self}: expected {len(sizes)} coordinates {wanted} but got {len(coords)}")
        return evaluate(_plan(self, sizes), self._base, self._checked(coords, sizes))

    def _checked(self, coords: tuple[Any, ...], sizes: Shape) -> tuple[Any, ...]:
        for dim, (coord, size) in enumerate(zip(coords, sizes, strict=True)):
            if type(coord) is int:
                if not 0 <= coord < size:
                    raise LayoutError(f"{self}: coordinate of dim {dim}: expected 0 to {size - 1} but got {coord}")
            elif isinstance(coord, Integral):
                plain = tuple(int(c) if isinstance(c, Integral) else c for c in coords)
                return self._checked(plain, sizes)
            elif isinstance(coord, float):
                raise LayoutError(f"{self}: coordinate of dim {dim}: expected an int but got {coord}")
        return coords

    def enumerate(self, shape: Sequence[int] | None = None) -> dict[str, Values]:
        """`apply` of all elements in row-major order: int64 arrays of shape (size,), or of `shape`."""
        sizes = (self.size(),) if shape is None else self._own_shape(shape)
        values = {}
        for name, start in self._base.items():
            values[name] = axis_values(self.shard, Axis.get(name), start).reshape(sizes)
        return values

    def enumerate_replicas(self, shape: Sequence[int] | None = None) -> dict[str, Values]:
        """Like `enumerate`, with all copies on a leading dim (the first copy is the base) and all `axes`."""
        base = self.enumerate(shape)
        if not base:
            sizes = (self.size(),) if shape is None else self._own_shape(shape)
            base = {axis.name: axis_values(self.shard, axis).reshape(sizes) for axis in self.axes}
        return copies(base, self.axes, self.replica)

    # What a layout is.

    def size(self, axis: Axis | str | None = None) -> int:
        """The number of elements: the product of the shard extents, of one axis or of all."""
        if axis is None:
            return self._size
        wanted = Axis.get(axis)
        return prod(it.extent for it in self.shard if it.axis is wanted)

    @cached_property
    def _size(self) -> int:
        return size_of(self.shard)

    def span(self, axis: Axis | str | None = None) -> int:
        """1 + the largest value on an axis, replicas and offset included; without an axis: of all memory axes."""
        if axis is None:
            return 1 + sum(self._last(axis) for axis in self.axes if axis.kind == "memory")
        return 1 + self._last(Axis.get(axis))

    def _last(self, axis: Axis) -> int:
        return self._reach(axis) + self.offset.get(axis, 0)

    def _reach(self, axis: Axis) -> int:
        return sum(it.last for it in (*self.shard, *self.replica) if it.axis is axis)

    def equivalent(self, other: Layout) -> bool:
        """Whether both put each element at the same set of places."""
        if not isinstance(other, TileLayout):
            return other.equivalent(self)
        # Strides are not negative, so the first copy is the least one and origin and shard compare on their own.
        same_base = self.offset_terms == other.offset_terms and fuse(self.shard) == fuse(other.shard)
        return same_base and _same_copies(self.replica, other.replica)

    def is_trivial(self) -> bool:
        """Whether this is the identity on `m`: compact row-major at 0, without replicas."""
        return self.is_contiguous() and not self.offset_terms and all(it.axis is m for it in fuse(self.shard))

    def is_contiguous(self) -> bool:
        """Whether neighbouring elements are neighbours on one memory axis, wherever the first one is; no replicas."""
        if fuse(self.replica) or any(axis.kind != "memory" for axis, _ in self.offset_terms):
            return False
        iters = fuse(self.shard)
        return not iters or (len(iters) == 1 and iters[0].stride == 1 and iters[0].axis.kind == "memory")

    def is_bijective(self, axes: Iterable[Axis | str] | Mapping[Axis | str, int]) -> bool:
        """Whether each place of a box holds exactly one element, and none lies outside; False with replicas.

        The box runs from 0 over the given axes: up to the given extents, or up to the layout's spans.
        """
        if fuse(self.replica) or self.offset_terms:
            return False
        return fill_box(self.shard, box_of(self, axes))

    def overlaps(self) -> bool:
        """Whether two elements, or two copies, share a place."""
        return overlap((*self.shard, *self.replica))

    def get_scope(self) -> tuple[Scope, Scope] | None:
        """(innermost, outermost) thread scope; None for a layout on memory axes only."""
        return scope_of(self.axes)

    def check_well_formed(self) -> None:
        """Raises one LayoutError with everything that is wrong with the owners.

        Two axes that count the same scope in different ones, axes that leave a gap between scopes, and values beyond
        what the axis has. Overlap is a separate question: `overlaps`.
        """
        sentences = ill_formed(self.axes, self._last)
        if sentences:
            raise LayoutError.collect([Finding(f"{self}: {sentence}") for sentence in sentences])

    # Layouts from layouts.

    def canonicalize(self) -> TileLayout:
        """The shortest layout with the same map: unit iters dropped, neighbours fused, replicas sorted by stride."""
        return _canonical(self)

    def group(self, shape: Sequence[int]) -> tuple[TileLayout, Shape]:
        """(layout, seps): the same map, with dim i of `shape` owning the shard iters [seps[i], seps[i + 1]).

        Raises LayoutError where a dim ends inside an iter.
        """
        return _group(self, self._own_shape(shape))

    def permute_dims(self, perm: Sequence[int]) -> TileLayout:
        """The shard iters in a new order: iter i of the result is iter perm[i]."""
        order = _permutation(perm, len(self.shard), f"{self}: permute_dims")
        return self._of(tuple(self.shard[k] for k in order), self.replica, self.offset_terms)

    def permute_by_groups(self, seps: Sequence[int], perm: Sequence[int]) -> TileLayout:
        """Runs of shard iters (as `group` separates them) in a new order: run i of the result is run perm[i]."""
        bounds = tuple(as_int(sep, f"{self}: permute_by_groups: seps") for sep in seps)
        if not bounds or bounds[0] != 0 or bounds[-1] != len(self.shard) or list(bounds) != sorted(bounds):
            raise LayoutError(f"{self}: permute_by_groups: seps: expected 0, …, {len(self.shard)} but got {bounds}")
        order = _permutation(perm, len(bounds) - 1, f"{self}: permute_by_groups")
        runs = [self.shard[bounds[k] : bounds[k + 1]] for k in order]
        return self._of(tuple(chain.from_iterable(runs)), self.replica, self.offset_terms)

    def tile(self, outer: TileLayout, outer_shape: Sequence[int], inner_shape: Sequence[int]) -> TileLayout:
        """Copies of this layout (of `inner_shape`) on a grid (`outer`, of `outer_shape`).

        The result has, dim by dim, outer_shape[i] * inner_shape[i] elements. A step of the grid on an axis is as long
        as this layout is on that axis, its offset not counted, so copies never overlap where `outer` does not.
        """
        if not isinstance(outer, TileLayout):
            raise LayoutError(f"{self}: tile: outer: expected a TileLayout but got {outer!r}")
        grid, grid_seps = outer.group(outer_shape)
        inner, seps = self.group(inner_shape)
        if len(grid_seps) != len(seps):
            raise LayoutError(f"{self}: tile: expected shapes of one rank but got {outer_shape} and {inner_shape}")

        def steps(it: Iter) -> Iter:
            return it.scaled(1 + self._reach(it.axis))

        shard = chain.from_iterable(
            (
                *(steps(it) for it in grid.shard[grid_seps[k] : grid_seps[k + 1]] if it.extent > 1),
                *inner.shard[seps[k] : seps[k + 1]],
            )
            for k in range(len(seps) - 1)
        )
        replica = (*(steps(it) for it in outer.replica), *self.replica)
        moved = tuple((axis, value * (1 + self._reach(axis))) for axis, value in outer.offset_terms)
        return self._of(tuple(shard), replica, self.offset_terms + moved)

    def tile_to(self, to_shape: Sequence[int], cur_shape: Sequence[int]) -> TileLayout:
        """Row-major copies of this layout (of `cur_shape`) that make up `to_shape`, one after another on `m`."""
        grid = grid_shape(self, to_shape, cur_shape)
        return self.tile(self._of(row_major(grid)), grid, cur_shape)

    def pack(self, n: int, axis: Axis | str = m) -> TileLayout:
        """n neighbouring elements become one. They must be neighbours on `axis`, and n must divide all else there."""
        count, along = as_count(n, "pack: n"), Axis.get(axis)
        if count == 1:
            return self
        shard = self.shard if is_packable(self.shard, count, along) else fuse(self.shard)
        if not is_packable(shard, count, along):
            raise LayoutError(f"{self}: pack: expected each {count} successive elements to be neighbours on {along}")
        try:
            terms = divided_offset(self.offset_terms, count, along)
            return self._of(packed_shard(shard, count, along), divided(self.replica, count, along), terms)
        except LayoutError as error:
            raise LayoutError(f"{self}: pack: {error}") from None

    def unpack(self, n: int, axis: Axis | str = m) -> TileLayout:
        """Each element becomes n neighbours on `axis`: the inverse of `pack`."""
        count, along = as_count(n, "unpack: n"), Axis.get(axis)
        if count == 1:
            return self
        terms = tuple((name, value * count if name is along else value) for name, value in self.offset_terms)
        return self._of(unpacked_shard(self.shard, count, along), multiplied(self.replica, count, along), terms)

    def slice(self, starts: Sequence[int], extents: Sequence[int], shape: Sequence[int] | None = None) -> TileLayout:
        """The layout of a box of `shape` (default: the shard extents); its start goes into the offset.

        Raises LayoutError where the box leaves the shape, or where a dim of it is not whole steps of its iters.
        """
        sizes = self.extents if shape is None else as_shape(shape, "shape")
        first = tuple(starts)
        if not all(type(start) is int for start in first):
            first = tuple(as_int(start, f"{self}: slice: starts") for start in first)
        return _slice(self, first, as_shape(extents, "slice: extents"), sizes)

    def compose(self, inner: Layout) -> Layout:
        """x -> self(inner(x)): element x is the element of this layout that `inner` names on m. Replicas stay.

        Raises LayoutError where `inner` has other axes than m or replicas, names no element, or where no iters have
        the map.
        """
        if self.is_trivial() and is_index(inner, self.size()):
            return inner
        found = composed(self, inner)
        return self._of(found.iters, self.replica, found.origin)

    def inverse(self, axes: Iterable[Axis | str] | Mapping[Axis | str, int]) -> TileLayout:
        """From places to elements: a layout over the box of `axes` (see `is_bijective`), in the order of the axes.

        On m it gives the row-major index of the element there. Raises LayoutError with a counterexample where the
        layout is no bijection onto the box.
        """
        box = box_of(self, axes)
        if fuse(self.replica) or self.offset_terms or not fill_box(self.shard, box):
            raise no_inverse(self, box)
        return self._of(inverse_iters(self.shard, box))

    def _own_shape(self, shape: Sequence[int]) -> Shape:
        sizes = as_shape(shape, "shape")
        if prod(sizes) != self.size():
            raise LayoutError(
                f"{self}: shape: expected one of {self.size()} elements but got {sizes}, which has {prod(sizes)}"
            )
        return sizes


def box_of(layout: Layout, axes: Iterable[Axis | str] | Mapping[Axis | str, int]) -> dict[Axis, int]:
    """The box [0, n) that `is_bijective` fills."""
    if isinstance(axes, Mapping):
        return {Axis.get(axis): extent for axis, extent in axes.items()}
    names = (axes,) if isinstance(axes, (str, Axis)) else axes
    return {Axis.get(axis): layout.span(axis) for axis in names}


def grid_shape(layout: Layout, to_shape: Sequence[int], cur_shape: Sequence[int]) -> Shape:
    """How many tiles of `cur_shape` make up `to_shape`, dim by dim; LayoutError where that is no whole number."""
    target, current = as_shape(to_shape, "tile_to: shape"), as_shape(cur_shape, "tile_to: shape")
    if len(target) != len(current):
        raise LayoutError(f"{layout}: tile_to: expected shapes of one rank but got {target} and {current}")
    for dim, (whole, part) in enumerate(zip(target, current, strict=True)):
        if whole % part:
            raise LayoutError(f"{layout}: tile_to: dim {dim}: expected a multiple of the tile's {part} but got {whole}")
    return tuple(whole // part for whole, part in zip(target, current, strict=True))


def _origin(terms: Terms) -> Terms:
    """Offsets added up by axis, in a fixed order, without zeros."""
    total: dict[Axis, int] = {}
    for axis, value in terms:
        total[axis] = total.get(axis, 0) + value
    for axis, value in total.items():
        if value < 0:
            raise LayoutError(f"offset on {axis}: expected 0 or more but got {value}")
    return tuple((axis, total[axis]) for axis in sorted(total, key=AXIS_RANK.__getitem__) if total[axis])


@lru_cache(maxsize=4096)
def _plan(layout: TileLayout, sizes: Shape) -> Plan:
    return plan(layout.shard, layout._own_shape(sizes))


@lru_cache(maxsize=4096)
def _canonical(layout: TileLayout) -> TileLayout:
    replica = sorted(fuse(layout.replica), key=lambda it: (AXIS_RANK[it.axis], -it.stride, -it.extent))
    return TileLayout._of(fuse(layout.shard), fuse(replica), layout.offset_terms)


@lru_cache(maxsize=4096)
def _group(layout: TileLayout, sizes: Shape) -> tuple[TileLayout, Shape]:
    runs: list[Iters] = []
    for iters in (layout.shard, fuse(layout.shard)):
        runs = regroup(iters, sizes)
        if len(runs) == len(sizes):
            seps = [0]
            for run in runs:
                seps.append(seps[-1] + len(run))
            grouped = TileLayout._of(tuple(chain.from_iterable(runs)), layout.replica, layout.offset_terms)
            return grouped, tuple(seps)
    dim = len(runs)
    raise LayoutError(f"{layout}: group: dim {dim} ({sizes[dim]}) of shape {sizes} ends inside an iter")


@lru_cache(maxsize=4096)
def _slice(layout: TileLayout, starts: Shape, extents: Shape, sizes: Shape) -> TileLayout:
    if not len(starts) == len(extents) == len(sizes):
        raise LayoutError(
            f"{layout}: slice: expected starts, extents and shape of one rank but got {starts}, {extents} and {sizes}"
        )
    grouped, seps = layout.group(sizes)
    shard: list[Iter] = []
    terms = list(layout.offset_terms)
    for dim, (start, extent, size) in enumerate(zip(starts, extents, sizes, strict=True)):
        box = f"{layout}: slice: elements {start} to {start + extent - 1} of dim {dim} ({size})"
        if start < 0 or start + extent > size:
            raise LayoutError(f"{box} lie outside of shape {sizes}")
        part = cut(grouped.shard[seps[dim] : seps[dim + 1]], start, extent)
        if part is None:
            raise LayoutError(f"{box} are not whole steps of its iters")
        shard += part.iters
        terms += part.origin
    return TileLayout._of(tuple(shard), layout.replica, tuple(terms))


def _permutation(perm: Sequence[int], count: int, what: str) -> Shape:
    order = tuple(as_int(k, f"{what}: perm") for k in perm)
    if sorted(order) != list(range(count)):
        raise LayoutError(f"{what}: perm: expected each of 0 to {count - 1} once but got {order}")
    return order


def _same_copies(left: Iters, right: Iters) -> bool:
    if fuse(left) == fuse(right):
        return True
    named = tuple(dict.fromkeys(it.axis for it in (*left, *right)))
    one = {axis.name: axis_values(left, axis)[:, None] for axis in named}
    two = {axis.name: axis_values(right, axis)[:, None] for axis in named}
    return same_places(one, two, 1)
