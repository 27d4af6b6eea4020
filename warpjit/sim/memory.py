"""The bytes of a simulation: global storages of the caller and the shared memory of the CTAs that run together.

Addresses are byte offsets; many are read or written at once. Written global storages are copies until `commit`: a
simulation that finds something changes nothing. Whether an access is allowed is `accesses` and `shadow`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class GlobalMemory:
    """The argument for a tensor parameter.

    data    uint8 (bytes,): the whole storage, writable; tensors that share memory give overlapping arrays
    base    where in `data` element (0, …, 0) begins, in bytes
    ranges  the bytes of `data` that the tensor may touch: [start, stop) pairs
    """

    data: Array
    base: int
    ranges: tuple[tuple[int, int], ...]


@dataclass
class Storage:
    """Bytes that one or more tensors lie in. `data` is the caller's memory, or a copy of it if anything writes."""

    start: int
    data: Array
    originals: tuple[Array, ...]
    low: int
    high: int = 0

    def commit(self) -> None:
        """Copy what was written back to the caller."""
        for original in self.originals:
            shift = _address(original) - self.start
            low, high = max(self.low - shift, 0), min(self.high - shift, original.size)
            if low < high:
                original[low:high] = self.data[shift + low : shift + high]


@dataclass(frozen=True, eq=False)
class View:
    """A tensor's place: `storage.data[base]` is its first byte, `address` that byte's machine address."""

    storage: Storage
    base: int
    address: int
    starts: Array
    stops: Array

    def inside(self, offset: Array, length: Array | int) -> Array:
        """Whether the `length` bytes at `offset` from the base are the tensor's."""
        position = offset + self.base
        if self.starts.size == 1:
            return (position >= self.starts[0]) & (position + length <= self.stops[0])  # type: ignore[no-any-return]
        if not self.starts.size:
            return np.zeros(position.shape, bool)
        which = np.maximum(np.searchsorted(self.starts, position, side="right") - 1, 0)
        return (position >= self.starts[which]) & (position + length <= self.stops[which])


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def views_of(arguments: Mapping[str, GlobalMemory], written: frozenset[str]) -> tuple[dict[str, View], list[Storage]]:
    """Where each tensor lies; storages in which a tensor of `written` lies are copied. Overlapping ones become one."""
    names = sorted(arguments, key=lambda name: _address(arguments[name].data))
    clusters: list[list[str]] = []
    end = -1
    for name in names:
        data = arguments[name].data
        if not clusters or _address(data) >= end:
            clusters.append([])
        clusters[-1].append(name)
        end = max(end, _address(data) + data.size)
    storages, views = [], {}
    for cluster in clusters:
        storage = _storage([arguments[name].data for name in cluster], any(name in written for name in cluster))
        storages.append(storage)
        views.update({name: _view(arguments[name], storage) for name in cluster})
    return views, storages


def table_of(data: bytes) -> View:
    """A table of constants, which nothing writes."""
    storage = Storage(0, np.frombuffer(data, np.uint8), (), len(data))
    return View(storage, 0, 0, np.zeros(1, np.int64), np.full(1, len(data), np.int64))


def _storage(arrays: Sequence[Array], written: bool) -> Storage:
    start = _address(arrays[0])
    size = max(_address(array) + array.size for array in arrays) - start
    if len({(_address(array), array.size) for array in arrays}) == 1 and not written:
        data = arrays[0]
    else:
        data = np.zeros(size, np.uint8)
        for array in arrays:
            shift = _address(array) - start
            data[shift : shift + array.size] = array
    return Storage(start, data, tuple(arrays) if written else (), size)


def _view(argument: GlobalMemory, storage: Storage) -> View:
    shift = _address(argument.data) - storage.start
    ranges = sorted(argument.ranges)
    starts = np.array([start for start, _ in ranges], np.int64) + shift
    stops = np.array([stop for _, stop in ranges], np.int64) + shift
    base = argument.base + shift
    return View(storage, base, storage.start + base, starts, stops)


# ---- many accesses at once ----------------------------------------------------------------------------


def chunked(array: Array, address: Array, width: int) -> tuple[Array, Array] | None:
    """`array` (bytes, ...) as chunks of `width` bytes and the chunk numbers, if every address begins a chunk.

    All bytes of each access are in the array: whoever asks has checked that.
    """
    if width == 1 or not address.size:
        return None
    whole = array.shape[0] // width
    number, rest = (
        np.divmod(address, width) if width & width - 1 else (address >> width.bit_length() - 1, address & width - 1)
    )
    if rest.any():
        return None
    return array[: whole * width].reshape(whole, width, *array.shape[1:]), number


def gather(array: Array, address: Array, width: int) -> Array:
    """The `width` entries at each address (k,): (k, width, ...)."""
    chunks = chunked(array, address, width)
    if chunks is not None:
        return np.take(chunks[0], chunks[1], axis=0)
    if width == 1:
        return np.take(array, address, axis=0)[:, None]
    return np.take(array, address[:, None] + np.arange(width), axis=0)


def scatter(array: Array, address: Array, width: int, values: Any) -> None:
    """Store (k, width), or (k, 1) for the same in each; of equal addresses the last one stays."""
    chunks = chunked(array, address, width)
    if chunks is not None:
        chunks[0][chunks[1]] = values
    else:
        array[address[:, None] + np.arange(width)] = values
