"""The memory that trials run on: what a kernel writes is a copy, so that nobody's data is touched.

Arguments are grouped into regions: bytes that are connected, by whatever views of whatever storages. A region that is
written is cloned once, with the place of every tensor in it, so that strides, offsets, alignment and overlaps are those
of the call; a region that is only read is the caller's own. The caller's bytes stay as they are throughout, so they are
what a region is restored from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ALIGNMENT = 256
"""Bytes; a clone's address has the original's remainder by it."""
POISON = 0xFF
"""Each byte of what is written and never read, before a trial: NaN in floats, -1 in integers."""


@dataclass(frozen=True)
class Region:
    """Connected bytes of the caller, and their clone.

    pieces   (where in the clone, the caller's bytes) of each storage that has a part of it
    clone    the bytes that trials write
    read     whether the kernel may read them as well
    """

    pieces: tuple[tuple[int, Any], ...]
    clone: Any
    read: bool

    def restore(self) -> None:
        """The clone as the caller's bytes are; what no kernel reads is poisoned."""
        if not self.read:
            self.clone.fill_(POISON)
            return
        for start, piece in self.pieces:
            self.clone[start : start + piece.numel()].copy_(piece)


@dataclass(frozen=True)
class Workspace:
    """The arguments of a call on memory of their own.

    arguments   one for each runtime argument: a tensor in a clone, or what was given
    regions     what is cloned
    written     the positions of the arguments that are written
    """

    arguments: tuple[Any, ...]
    regions: tuple[Region, ...]
    written: tuple[int, ...]

    @property
    def updated(self) -> bool:
        """Whether something that is written is read as well: each trial needs it as it was."""
        return any(region.read for region in self.regions)

    def restore(self) -> None:
        """All that is written as it was, or poisoned where nothing reads it."""
        for region in self.regions:
            region.restore()

    def results(self) -> tuple[Any, ...]:
        """Copies of the tensors that are written."""
        return tuple(self.arguments[position].clone() for position in self.written)


@dataclass(frozen=True)
class _Extent:
    """The bytes of a tensor: addresses of the first and behind the last, and the storage's bytes between them."""

    position: int
    low: int
    high: int


def workspace(runtime: Sequence[Any], reads: Iterable[int], writes: Iterable[int]) -> Workspace:
    """Clone what is written among the runtime arguments, given by position."""
    reads, writes = set(reads), set(writes)
    extents = [_Extent(position, *_span(value)) for position, value in enumerate(runtime) if hasattr(value, "data_ptr")]
    arguments, regions = list(runtime), []
    for group in _connected([each for each in extents if each.low < each.high]):
        positions = {each.position for each in group}
        if not positions & writes:
            continue
        region, moved = _cloned(runtime, group, bool(positions & reads))
        regions.append(region)
        for position, tensor in moved.items():
            arguments[position] = tensor
    full = {each.position for each in extents if each.low < each.high}
    return Workspace(tuple(arguments), tuple(regions), tuple(sorted(writes & full)))


def _span(tensor: Any) -> tuple[int, int]:
    if tensor.numel() == 0:
        return 0, 0
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (reach + 1) * tensor.element_size()


def _connected(extents: Sequence[_Extent]) -> list[list[_Extent]]:
    groups: list[list[_Extent]] = []
    end = 0
    for each in sorted(extents, key=lambda extent: extent.low):
        if groups and each.low < end:
            groups[-1].append(each)
        else:
            groups.append([each])
        end = max(end, each.high) if len(groups[-1]) > 1 else each.high
    return groups


def _cloned(runtime: Sequence[Any], group: Sequence[_Extent], read: bool) -> tuple[Region, Mapping[int, Any]]:
    import torch  # noqa: PLC0415  heavy

    low, high = min(each.low for each in group), max(each.high for each in group)
    device = runtime[group[0].position].device
    buffer = torch.empty(high - low + ALIGNMENT, dtype=torch.uint8, device=device)
    shift = (low - buffer.data_ptr()) % ALIGNMENT
    pieces, moved = [], {}
    for each in group:
        tensor = runtime[each.position]
        start = each.low - low
        pieces.append((start, _bytes(tensor, each.high - each.low)))
        view = torch.empty(0, dtype=tensor.dtype, device=device)
        offset = (shift + start) // tensor.element_size()
        moved[each.position] = view.set_(buffer.untyped_storage(), offset, tensor.shape, tensor.stride())
    return Region(tuple(pieces), buffer[shift : shift + high - low], read), moved


def _bytes(tensor: Any, count: int) -> Any:
    """The memory of a tensor, gaps between its elements included."""
    import torch  # noqa: PLC0415  heavy

    view = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    start = tensor.storage_offset() * tensor.element_size()
    return view.set_(tensor.untyped_storage(), start, (count,), (1,))
