"""`T.load`, `T.store`, `T.copy` and `T.prefetch`: accesses of up to 16 bytes, which plain indexing never makes.

A tile falls into chunks of `width` bytes of its last axis, contiguous and aligned by proof (`chunks`); each is one
access. Chunks of 8 and 16 bytes are words of 32 bits, smaller ones one word of their size. What a thread copies goes
through its registers: asynchronous copies are `copies`, single elements `memory`. No barrier is added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic, memory
from warpjit.frontend.addresses import Index, address, bounds, offset_multiple, shown, static_int
from warpjit.frontend.builder import Builder
from warpjit.frontend.caching import copy_caches, load_cache, store_cache
from warpjit.frontend.calls import INTRINSICS
from warpjit.frontend.chunks import check_aligned, check_contiguous, chunk_starts
from warpjit.frontend.loops import MAX_EXPANDED
from warpjit.frontend.registers import registers_tensor
from warpjit.frontend.sharing import Chunk, exists, limits, shared_out
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.frontend.views import reinterpret
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType
from warpjit.ir.nodes import Address, Allocate, Atom, Const, Registers, Slot
from warpjit.isa.cached_memory import CACHED_LOAD, CACHED_STORE, PREFETCH
from warpjit.isa.memory import LOAD, STORE
from warpjit.isa.scalar import MOVE, PACK64
from warpjit.isa.wide_memory import LOAD_WORDS, STORE_WORDS
from warpjit.layout import S, TileLayout
from warpjit.record import record

WIDTHS = (16, 8, 4, 2, 1)
"""Bytes that one access may move (PTX manual, sections "ld" and "st": vectors of up to 128 bits)."""
IN_FLIGHT = 64
"""Registers that hold what a thread has loaded and not yet stored, at most."""


@record
class Side:
    """A tile in global or shared memory, and how it is called in a sentence ("T.copy: dst")."""

    what: str
    tensor: TensorValue
    shape: tuple[int, ...]

    def prove(self, builder: Builder, elements: int) -> None:
        """TraceError unless chunks of `elements` elements can be accessed. One element needs no proof, as anywhere."""
        if elements > 1:
            check_contiguous(self.what, self.tensor, self.shape, elements)
            need = elements * self.tensor.dtype.bytes
            check_aligned(self.what, builder, self.tensor, self.shape, elements, need)


@record
class Cut:
    """Chunks of `bytes` bytes: `elements` elements each, `words` words of type `word`."""

    bytes: int
    elements: int

    @property
    def word(self) -> DType:
        return dtypes.dtype(f"uint{8 * min(self.bytes, 4)}")

    @property
    def words(self) -> int:
        return max(self.bytes // 4, 1)

    @property
    def packed(self) -> int:
        """Elements that begin in one word."""
        return max(self.elements // self.words, 1)


def _side(what: str, value: Value) -> Side:
    if not isinstance(value, TensorValue):
        raise TraceError(f"{what}: expected a tensor but got {arithmetic.describe(value)}")
    if isinstance(value.base, Registers):
        raise TraceError(f"{what}: expected a global or shared tensor, but {value.name} is in registers")
    if value.space == "constant":
        raise TraceError(f"{what}: expected a global or shared tensor, but {value.name} is a table: read its elements")
    if value.dtype is dtypes.mbarrier:
        raise TraceError(f"{what}: {value.name} holds mbarriers: only mbarrier instructions may touch them")
    if value.dtype.bits < 8:
        raise TraceError(
            f"{what}: expected elements of a byte or more but {value.name} holds {value.dtype}: view it as uint8"
        )
    if not value.shape:
        raise TraceError(f"{what}: expected at least one axis, but {value.name} is a single element")
    return Side(what, value, tuple(static_int(extent, f"{what}: an extent of {value.name}") for extent in value.shape))


def _described(tensor: TensorValue) -> str:
    return f"{tensor.name} of {tensor.dtype}, shape {shown(tensor.shape)}"


def _octets(builder: Builder, *tensors: Value) -> tuple[Value, ...]:
    """Tensors of one 4-bit type as bytes of two elements; others as they are."""
    first = tensors[0]
    for each in tensors:
        if not isinstance(each, TensorValue) or each.dtype not in memory.NIBBLES or each.dtype != first.dtype:
            return tensors
    return tuple(reinterpret(builder, each, dtypes.uint8) for each in tensors)


# ---- how wide -------------------------------------------------------------------------------------------


def _cut(
    builder: Builder, what: str, sides: Sequence[Side], width: Value, suits: Callable[[Cut], bool] = lambda cut: True
) -> Cut:
    """The chunks of tiles of one shape; without `width` the widest that can be proven and that `suits`."""
    dtype, last = sides[0].tensor.dtype, sides[0].shape[-1]
    legal = [Cut(each, each // dtype.bytes) for each in WIDTHS if each >= dtype.bytes]
    if width is None:
        return next(cut for cut in legal if not last % cut.elements and suits(cut) and _fits(builder, sides, cut))
    size = static_int(width, f"{what}: width")
    if size not in {cut.bytes for cut in legal}:
        names = ", ".join(str(cut.bytes) for cut in reversed(legal))
        raise TraceError(f"{what}: width: expected one of {names} bytes for elements of {dtype} but got {size}")
    cut = Cut(size, size // dtype.bytes)
    if last % cut.elements:
        raise TraceError(
            f"{what}: width: expected a divisor of the {last * dtype.bytes} bytes of the last axis but got {size}"
        )
    for side in sides:
        side.prove(builder, cut.elements)
    return cut


def _fits(builder: Builder, sides: Sequence[Side], cut: Cut) -> bool:
    try:
        for side in sides:
            side.prove(builder, cut.elements)
    except TraceError:
        return False
    return True


# ---- one access -----------------------------------------------------------------------------------------


def _registers(builder: Builder, hint: str, word: DType, count: int) -> tuple[Slot, ...]:
    """Registers that one operation after the other may write."""
    registers = Registers(builder.unique(hint), word, count)
    builder.emit(Allocate(registers, loc=builder.loc))
    return tuple(Slot(registers, index) for index in range(count))


def _zero(builder: Builder, slots: Sequence[Slot]) -> None:
    for slot in slots:
        builder.issue(MOVE[slot.dtype.name], (slot, Const(0.0 if slot.dtype.is_float else 0, slot.dtype)))


def _load(
    builder: Builder, cut: Cut, place: Address, slots: Sequence[Slot], predicate: Atom | None, cache: str | None
) -> None:
    space = place.buffer.space
    if cache is not None:
        row = CACHED_LOAD[cache, cut.word.bits, cut.words]
    else:
        row = LOAD[space, cut.word.name] if cut.words == 1 else LOAD_WORDS[space, cut.words]
    builder.issue(row, (*slots, place), predicate=predicate)


def _store(
    builder: Builder, cut: Cut, place: Address, words: Sequence[Atom], predicate: Atom | None, cache: str | None
) -> None:
    space = place.buffer.space
    if cache is not None:
        row = CACHED_STORE[cache, cut.word.bits, cut.words]
    else:
        row = STORE[space, cut.word.name] if cut.words == 1 else STORE_WORDS[space, cut.words]
    builder.issue(row, (place, *words), predicate=predicate)


def _predicate(builder: Builder, what: str, where: Value) -> Atom | None:
    if where is None:
        return None
    if not isinstance(where, bool) and not (isinstance(where, Scalar) and where.dtype.is_bool):
        raise TraceError(f"{what}: where: expected a bool but got {arithmetic.describe(where)}")
    return builder.atom(arithmetic.truth(builder, where))


# ---- between memory and registers -----------------------------------------------------------------------


def load(
    tracer: Tracer, tensor: Value, *, width: Value = None, where: Value = None, cache: Value = None
) -> TensorValue:
    tracer.require_device("T.load")
    builder = tracer.builder
    (octets,) = _octets(builder, tensor)
    if octets is not tensor:
        return reinterpret(builder, load(tracer, octets, width=width, where=where), tensor.dtype)
    side = _side("T.load: tensor", tensor)
    predicate = _predicate(builder, "T.load", where)
    how = load_cache("T.load", cache, side.tensor)
    cut = _cut(builder, "T.load", (side,), width)
    dtype, starts = side.tensor.dtype, chunk_starts(side.shape, cut.elements)
    result = registers_tensor(builder, side.shape, dtype, TileLayout(S[side.shape]), tracer.hint or "loaded")
    assert isinstance(result.base, Registers)
    direct = cut.word.bits == result.base.word.bits
    if direct:  # whole registers of the result
        slots = tuple(Slot(result.base, index) for index in range(result.base.count))
    else:
        slots = _registers(builder, "piece", cut.word, len(starts) * cut.words)
    if predicate is not None:
        _zero(builder, slots)
    for number, start in enumerate(starts):
        place = address(builder, side.tensor, start)
        _load(builder, cut, place, slots[number * cut.words : (number + 1) * cut.words], predicate, how)
    if not direct:
        _fill(builder, result, slots)
    return result


def _fill(builder: Builder, result: TensorValue, pieces: Sequence[Slot]) -> None:
    """The registers of a local tensor from pieces of another width, in their order."""
    word = dtypes.uint64 if result.dtype.bits == 64 else pieces[0].dtype
    parts = word.bits // pieces[0].dtype.bits
    count = len(pieces) // parts
    flat = result.with_(shape=(count,), dtype=word, layout=TileLayout(S[count]))
    for index in range(count):
        own = tuple(pieces[parts * index : parts * (index + 1)])
        facts = fact.of_type(word)
        value = builder.operate(PACK64, own, facts) if parts == 2 else Scalar(word, facts, own[0])
        memory.store(builder, flat, (index,), value)


def store(
    tracer: Tracer, tensor: Value, value: Value, *, width: Value = None, where: Value = None, cache: Value = None
) -> None:
    tracer.require_device("T.store")
    builder = tracer.builder
    tensor, value = _octets(builder, tensor, value)
    side = _side("T.store: tensor", tensor)
    flat, start = _flat(side, value)
    predicate = _predicate(builder, "T.store", where)
    how = store_cache("T.store", cache, side.tensor)
    cut = _cut(builder, "T.store", (side,), width, lambda cut: start % cut.packed == 0)
    if start % cut.packed:
        raise TraceError(
            f"T.store: value: {flat.name} begins at element {start} of its registers, which is within a word of "
            f"{cut.packed} elements: expected a smaller width than {cut.bytes} bytes"
        )
    words = reinterpret(builder, flat, cut.word)
    for number, where_to in enumerate(chunk_starts(side.shape, cut.elements)):
        place = address(builder, side.tensor, where_to)
        own = [memory.load(builder, words, (number * cut.words + index,)) for index in range(cut.words)]
        _store(builder, cut, place, [builder.atom(word) for word in own], predicate, how)


def _flat(side: Side, value: Value) -> tuple[TensorValue, int]:
    """A local tensor as one axis, after checking that it has the tile's elements in order, and where it begins."""
    what = "T.store: value"
    if not isinstance(value, TensorValue):
        raise TraceError(f"{what}: expected a local tensor but got {arithmetic.describe(value)}")
    if not isinstance(value.base, Registers) or value.layout is None:
        raise TraceError(f"{what}: expected a local tensor, but {value.name} is {value.space}")
    if value.dtype != side.tensor.dtype or value.shape != side.shape:
        raise TraceError(f"{what}: expected a tile like {_described(side.tensor)}, but got {_described(value)}")
    owners = [axis.name for axis in value.layout.axes if axis.kind == "thread"]
    if owners:
        raise TraceError(
            f"{what}: expected this thread's elements in row-major order, but {value.name} is spread over lanes "
            f"({', '.join(owners)})"
        )
    places = value.layout.enumerate(side.shape)["m"].ravel()
    wrong = np.flatnonzero(places - places[0] != np.arange(places.size))
    if wrong.size:
        raise TraceError(
            f"{what}: expected this thread's elements in row-major order, but element {int(wrong[0])} of {value.name} "
            f"lies {int(places[wrong[0]] - places[0])} elements after its first"
        )
    start = static_int(value.offset, "an offset") + int(places[0])
    return value.with_(shape=(places.size,), layout=TileLayout(S[places.size]), offset=start), start


# ---- between memory and memory --------------------------------------------------------------------------


def copy(
    tracer: Tracer,
    dst: Value,
    src: Value,
    *,
    scope: Value = "cta",
    width: Value = None,
    valid: Value = None,
    cache: Value = None,
) -> None:
    tracer.require_device("T.copy")
    if tracer.sketches():
        return
    if valid is None:
        dst, src = _octets(tracer.builder, dst, src)
    to, of = _side("T.copy: dst", dst), _side("T.copy: src", src)
    if to.tensor.dtype != of.tensor.dtype or to.shape != of.shape:
        raise TraceError(
            f"T.copy: expected tiles of one type and shape but got {_described(to.tensor)}, and {_described(of.tensor)}"
        )
    caches = copy_caches(cache, of.tensor, to.tensor)
    ends = [
        None if end is None or _reaches(end, extent) else end
        for end, extent in zip(limits(tracer, "T.copy", valid, to.shape), to.shape, strict=True)
    ]
    whole = 0 if ends[-1] is None else _multiple(tracer.builder, ends[-1])
    cut = _cut(tracer.builder, "T.copy", (to, of), width, lambda cut: whole % cut.elements == 0)
    if whole % cut.elements:
        raise TraceError(
            f"T.copy: valid[{len(ends) - 1}]: expected a multiple of {cut.elements}, the elements of a chunk, but got "
            f"a limit known to be a multiple of {whole} only; with width={to.tensor.dtype.bytes} a chunk is one "
            "element"
        )
    chunks = shared_out(tracer, "T.copy", scope, to.shape, cut.elements)
    if len(chunks) > MAX_EXPANDED:
        raise TraceError(
            f"T.copy: expected at most {MAX_EXPANDED} chunks for a thread but got {len(chunks)} of {cut.bytes} bytes: "
            "share the tile among more threads, or copy it part by part"
        )
    together = max(IN_FLIGHT // cut.words, 1)
    for first in range(0, len(chunks), together):
        _move(tracer.builder, cut, to, of, chunks[first : first + together], ends, caches)


@record
class _Move:
    """One chunk of this thread: its registers, where it comes from and goes, and in which lanes (None: all)."""

    slots: tuple[Slot, ...]
    source: Address
    target: Address
    loads: Atom | None
    stores: Atom | None


def _reaches(limit: Index, extent: int) -> bool:
    """Whether all elements of an axis are sure to exist."""
    least = bounds(limit)[0]
    return least is not None and least >= extent


def _multiple(builder: Builder, value: Index) -> int:
    return abs(value) if isinstance(value, int) else offset_multiple(builder, value)


def _move(
    builder: Builder,
    cut: Cut,
    to: Side,
    of: Side,
    chunks: Sequence[Chunk],
    ends: Sequence[Index | None],
    caches: tuple[str | None, str | None],
) -> None:
    """Load all of these chunks, then store them. Where the elements do not exist, shared memory becomes zero."""
    fills = to.tensor.space == "shared"
    slots = _registers(builder, "moved", cut.word, len(chunks) * cut.words)
    moves: list[_Move] = []
    for number, chunk in enumerate(chunks):
        own = slots[number * cut.words : (number + 1) * cut.words]
        there = exists(builder, chunk.start, ends, to.shape)
        both = _both(builder, chunk.mine, there)
        if fills and there is not None:
            _zero(builder, own)
        source, target = (address(builder, side.tensor, chunk.start) for side in (of, to))
        stores = chunk.mine if fills else both
        moves.append(_Move(own, source, target, _atom(builder, both), _atom(builder, stores)))
    for move in moves:
        _load(builder, cut, move.source, move.slots, move.loads, caches[0])
    for move in moves:
        _store(builder, cut, move.target, move.slots, move.stores, caches[1])


def _both(builder: Builder, a: Scalar | None, b: Scalar | None) -> Scalar | None:
    return arithmetic.join_conditions(builder, "and", a, b) if a is not None and b is not None else a or b


def _atom(builder: Builder, condition: Scalar | None) -> Atom | None:
    return None if condition is None else builder.atom(condition)


# ---- hints ----------------------------------------------------------------------------------------------

LINE = 128
"""Bytes of a cache line (CUDA C++ Programming Guide, "Global Memory")."""


def prefetch(tracer: Tracer, tensor: Value, *, level: Value = "L2", where: Value = None) -> None:
    tracer.require_device("T.prefetch")
    builder = tracer.builder
    side = _side("T.prefetch: tensor", tensor)
    if side.tensor.space != "global":
        raise TraceError(f"T.prefetch: tensor: expected a global tensor, but {side.tensor.name} is {side.tensor.space}")
    row = PREFETCH.get(level) if isinstance(level, str) else None
    if row is None:
        legal = ", ".join(f'"{each}"' for each in PREFETCH)
        raise TraceError(f"T.prefetch: level: expected one of {legal} but got {arithmetic.describe(level)}")
    predicate = _predicate(builder, "T.prefetch", where)
    check_contiguous("T.prefetch: tensor", side.tensor, side.shape, side.shape[-1])
    for start in chunk_starts(side.shape, LINE // side.tensor.dtype.bytes):
        builder.issue(row, (address(builder, side.tensor, start),), predicate=predicate)


INTRINSICS.update({"T.load": load, "T.store": store, "T.copy": copy, "T.prefetch": prefetch})
