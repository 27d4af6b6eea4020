"""The notation: `S[extents : strides] + R[extents : strides] + offset`.

Reads the brackets into a `Spec`, the parts of a `TileLayout`, and refuses what means nothing with the text that was
written. It does no algebra: see `tile`.
"""

from __future__ import annotations

from warpjit.errors import LayoutError
from warpjit.layout.axis import Axis, AxisSum, as_count, as_int, as_terms, m
from warpjit.layout.iters import Iter, Iters, iters_text
from warpjit.record import record


@record
class Spec:
    """The parts of a layout as the notation collects them; `+` merges two specs, or adds an offset from either side."""

    shard: Iters = ()
    replica: Iters = ()
    offset: tuple[tuple[Axis, int], ...] = ()

    def __add__(self, other: Spec | AxisSum | int) -> Spec:
        if isinstance(other, Spec):
            return Spec(self.shard + other.shard, self.replica + other.replica, self.offset + other.offset)
        terms = as_terms(other)
        return NotImplemented if terms is None else Spec(self.shard, self.replica, self.offset + terms)

    def __radd__(self, other: AxisSum | int) -> Spec:
        terms = as_terms(other)
        return NotImplemented if terms is None else Spec(self.shard, self.replica, terms + self.offset)

    def __repr__(self) -> str:
        return spec_text(self.shard, self.replica, self.offset)


def spec_text(shard: Iters, replica: Iters, offset: tuple[tuple[Axis, int], ...]) -> str:
    """The notation of the parts; the S part is always written."""
    parts = [iters_text("S", shard)]
    if replica:
        parts.append(iters_text("R", replica))
    parts += [repr(AxisSum((term,))) for term in offset]
    return " + ".join(parts)


class Brackets:
    """`S` or `R`: indexing it with extents, or with extents : strides, gives a `Spec`.

    Extents and strides are ints, or tuples or lists of equal length. Without strides they are row-major on `m`. A
    stride is an int (on `m`), `value @ axis`, an axis or its name (stride 1), or a pair (value, axis).
    """

    def __init__(self, letter: str) -> None:
        self.letter = letter

    def __getitem__(self, key: object) -> Spec:
        iters = _Reader(self.letter, key).iters()
        return Spec(shard=iters) if self.letter == "S" else Spec(replica=iters)

    def __repr__(self) -> str:
        return self.letter


class _Reader:
    """Reads what stands between the brackets; every error quotes it."""

    def __init__(self, letter: str, key: object) -> None:
        self.letter = letter
        self.key = key

    def iters(self) -> Iters:
        if not isinstance(self.key, slice):
            extents = self._extents(self.key)
            return row_major(extents)
        if self.key.step is not None:
            raise self._error("expected extents : strides, with one colon")
        if self.key.start is None or self.key.stop is None:
            raise self._error("expected extents and strides around the colon; leave the colon out for row-major")
        extents = self._extents(self.key.start)
        strides = (self.key.stop,) if _is_one_stride(self.key) else _items(self.key.stop)
        self._check_lengths(extents, strides)
        return tuple(self._iter(position, *pair) for position, pair in enumerate(zip(extents, strides, strict=True)))

    def _extents(self, written: object) -> tuple[int, ...]:
        items = _items(written)
        if any(isinstance(item, slice) for item in items):
            raise self._error(
                "expected all extents before the colon and all strides after it, as in S[(8, 4) : (4, 1)]"
            )
        extents = []
        for position, item in enumerate(items):
            # The tables write hundreds of layouts: words for an error are made only where there is one.
            if type(item) is int and item > 0:
                extents.append(item)
            else:
                extents.append(as_count(item, f"{self._text()}: extent at position {position}"))
        return tuple(extents)

    def _check_lengths(self, extents: tuple[int, ...], strides: tuple[object, ...]) -> None:
        if len(extents) != len(strides):
            raise self._error(f"expected as many extents as strides but got {len(extents)} and {len(strides)}")

    def _iter(self, position: int, extent: int, stride: object) -> Iter:
        value, axis = self._stride(position, stride)
        if value < 0:
            raise self._error(f"stride at position {position}: expected 0 or more but got {value}")
        return Iter(extent, value, axis)

    def _stride(self, position: int, stride: object) -> tuple[int, Axis]:
        if type(stride) is int:
            return stride, m
        if isinstance(stride, AxisSum) and len(stride.terms) == 1:
            axis, value = stride.terms[0]
            return value, axis
        if isinstance(stride, (str, Axis)):
            return 1, self._axis(stride)
        what = f"{self._text()}: stride at position {position}"
        if isinstance(stride, tuple) and len(stride) == 2 and isinstance(stride[1], (str, Axis)):
            return as_int(stride[0], what), self._axis(stride[1])
        return as_int(stride, what), m

    def _axis(self, axis: str | Axis) -> Axis:
        try:
            return Axis.get(axis)
        except LayoutError as error:
            raise self._error(str(error)) from None

    def _error(self, sentence: str) -> LayoutError:
        return LayoutError(f"{self._text()}: {sentence}")

    def _text(self) -> str:
        return f"{self.letter}[{_key_text(self.key)}]"


def row_major(extents: tuple[int, ...]) -> Iters:
    """Compact row-major iters on `m`."""
    iters: list[Iter] = []
    stride = 1
    for extent in reversed(extents):
        iters.append(Iter(extent, stride, m))
        stride *= extent
    return tuple(reversed(iters))


def _items(written: object) -> tuple[object, ...]:
    return tuple(written) if isinstance(written, (tuple, list)) else (written,)


def _is_one_stride(key: slice) -> bool:
    """`S[8 : (4, laneid)]`: one extent with a (value, axis) pair, not two strides."""
    return (
        not isinstance(key.start, (tuple, list))
        and isinstance(key.stop, tuple)
        and len(key.stop) == 2
        and isinstance(key.stop[1], (str, Axis))
    )


def _key_text(key: object) -> str:
    if isinstance(key, slice):
        parts = [key.start, key.stop] if key.step is None else [key.start, key.stop, key.step]
        return " : ".join("" if part is None else repr(part) for part in parts).strip()
    if isinstance(key, tuple) and any(isinstance(item, slice) for item in key):
        return ", ".join(_key_text(item) for item in key)
    return repr(key)


S = Brackets("S")
R = Brackets("R")
