"""What the lanes of a warp tell each other through registers: shuffles, votes, matches and reductions.

    SHUFFLE[mode], SHUFFLE_FOUND[mode]   idx, up, down, bfly of one 32-bit word; FOUND also says whether the lane that
                                         was asked for lies in the segment (our name ends in .p: in PTX it is `d|p`)
    VOTE[mode]                           all, any, uni: a bool; ballot: a word with one bit a lane
    MATCH_ANY[bits], MATCH_ALL[bits]     which lanes hold the same word
    REDUX[(operation, type)]             one instruction over all lanes
    ACTIVE_MASK                          the lanes that execute it

`membermask` names the lanes that take part: each of them must execute the instruction with the same mask (PTX manual,
the sections named in the rows; the simulator finds those that do not). None of them orders memory: that is
`bar.warp.sync`. The asm is volatile, so that the compiler leaves it where all lanes come by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpjit.ir.dtypes import DType, bool_, dtype, float32, int32, uint32
from warpjit.ir.numerics import canonical_nan, maximum, minimum
from warpjit.isa.needs import EVERYWHERE, since
from warpjit.isa.row import Array, Asm, Code, Needs, Operand, Participants, Row, Special
from warpjit.isa.scalar_text import result, value
from warpjit.layout.axis import LANES

ALL_LANES = 0xFFFFFFFF
_SYNC = "Parallel Synchronization and Communication Instructions: "
_MEMBERS = value("membermask", uint32)


def _collective(
    text: str,
    code: Code,
    meaning: Callable[..., Any],
    *operands: Operand,
    section: str,
    needs: Needs = EVERYWHERE,
    moves: bool = False,
    uniform: bool = False,
    notes: str = "",
) -> Row:
    return Row(
        text=text,
        operands=(*operands, _MEMBERS),
        code=code,
        meaning=meaning,
        needs=needs,
        participants=Participants.WARP,
        volatile=True,
        uniform=uniform,
        pure=True,
        moves=moves,
        section=section,
        notes=notes,
    )


def _predicated(instruction: str, to: str) -> Asm:
    """`instruction` leaves a predicate in q, which becomes the bool `to`."""
    return Asm(f"{{{{ .reg .pred q; {instruction} selp.u32 {{{to}}}, 1, 0, q; }}}}")


# ---- shuffles ------------------------------------------------------------------------------------------

MODES = ("idx", "up", "down", "bfly")

_SOURCES: dict[str, Callable[[Array, Array, Array], Array]] = {
    "idx": lambda lane, b, segment: lane & segment | b & ~segment,
    "up": lambda lane, b, segment: lane - b,
    "down": lambda lane, b, segment: lane + b,
    "bfly": lambda lane, b, segment: lane ^ b,
}


def shuffle_control(mode: str, width: int) -> int:
    """Operand c for segments of `width` lanes, a power of two: the segment mask above the last lane that counts."""
    return (LANES - width) << 8 | (0 if mode == "up" else LANES - 1)


def _shuffled(mode: str) -> Callable[..., tuple[Array, Array]]:
    def meaning(a: Array, b: Array, c: Array, membermask: Array) -> tuple[Array, Array]:
        lane = np.arange(LANES)
        asked, clamp = b.astype(np.int64) & 31, c.astype(np.int64) & 31
        segment = c.astype(np.int64) >> 8 & 31
        bound = lane & segment | clamp & ~segment
        source = _SOURCES[mode](lane, asked, segment)
        found = np.asarray(source >= bound if mode == "up" else source <= bound)
        source = np.where(found, source, lane)
        shape = np.broadcast_shapes(a.shape, source.shape)
        moved = np.take_along_axis(np.broadcast_to(a, shape), np.broadcast_to(source, shape), axis=-1)
        return moved, np.broadcast_to(found, shape)

    return meaning


def _shuffle(mode: str, found: bool) -> Row:
    text = f"shfl.sync.{mode}.b32"
    inputs = (value("a", uint32), value("b", int32), value("c", uint32))
    both = _shuffled(mode)
    section = "Data Movement and Conversion Instructions: shfl.sync"
    tail = "{a}, {b}, {c}, {membermask};"
    if found:
        code, outputs = _predicated(f"{text} {{d}}|q, {tail}", "p"), (result("d", uint32), result("p", bool_))
        return _collective(text + ".p", code, both, *outputs, *inputs, section=section, moves=True)
    code = Asm(f"{text} {{d}}, {tail}")
    one: Callable[..., Array] = lambda *arrays: both(*arrays)[0]  # noqa: E731
    return _collective(text, code, one, result("d", uint32), *inputs, section=section, moves=True)


SHUFFLE: dict[str, Row] = {mode: _shuffle(mode, found=False) for mode in MODES}
SHUFFLE_FOUND: dict[str, Row] = {mode: _shuffle(mode, found=True) for mode in MODES}


# ---- votes and matches ---------------------------------------------------------------------------------


def _members(membermask: Array) -> Array:
    """Which lanes take part (*batch, 32), by the mask that each of them holds."""
    return np.asarray(membermask.astype(np.int64) >> np.arange(LANES) & 1).astype(bool)


def _bits(lanes: Array) -> Array:
    """(*batch, 32) bools to words with one bit a lane (*batch, 1)."""
    return np.asarray((lanes.astype(np.uint32) << np.arange(LANES, dtype=np.uint32)).sum(-1, np.uint32, keepdims=True))


def _in_all(answer: Array, like: Array) -> Array:
    """(*batch, 1) for all lanes."""
    return np.broadcast_to(answer, (*answer.shape[:-1], LANES)) if like.ndim else answer


def _all(a: Array, membermask: Array) -> Array:
    return _in_all(np.asarray((a | ~_members(membermask)).all(-1, keepdims=True)), a)


def _any(a: Array, membermask: Array) -> Array:
    return _in_all(np.asarray((a & _members(membermask)).any(-1, keepdims=True)), a)


def _uni(a: Array, membermask: Array) -> Array:
    return np.asarray(_all(a, membermask) | ~_any(a, membermask))


def _ballot(a: Array, membermask: Array) -> Array:
    return _in_all(_bits(a & _members(membermask)), a)


_VOTES: dict[str, Callable[..., Array]] = {"all": _all, "any": _any, "uni": _uni}


def _vote(mode: str) -> Row:
    text = f"vote.sync.{mode}.pred"
    code = _predicated(f"setp.ne.u32 q, {{a}}, 0; {text} q, q, {{membermask}};", "d")
    outputs, section = (result("d", bool_), value("a", bool_)), _SYNC + "vote.sync"
    return _collective(text, code, _VOTES[mode], *outputs, section=section, uniform=True)


VOTE: dict[str, Row] = {
    **{mode: _vote(mode) for mode in _VOTES},
    "ballot": _collective(
        "vote.sync.ballot.b32",
        Asm("{{ .reg .pred q; setp.ne.u32 q, {a}, 0; vote.sync.ballot.b32 {d}, q, {membermask}; }}"),
        _ballot,
        result("d", uint32),
        value("a", bool_),
        section=_SYNC + "vote.sync",
        uniform=True,
    ),
}


def _equal(a: Array, membermask: Array) -> Array:
    """(*batch, lane, lane): the other takes part and holds the same."""
    return np.asarray((a[..., :, None] == a[..., None, :]) & _members(membermask)[..., None, :])


def _match_any(a: Array, membermask: Array) -> Array:
    return _bits(_equal(a, membermask))[..., 0]


def _match_all(a: Array, membermask: Array) -> tuple[Array, Array]:
    alike = np.asarray((_equal(a, membermask) | ~_members(membermask)[..., None, :]).all(-1))
    agreed = _all(alike, membermask)
    return np.where(agreed, membermask, np.uint32(0)).astype(np.uint32), agreed


def _match(mode: str, bits: int) -> Row:
    text, word = f"match.{mode}.sync.b{bits}", dtype(f"uint{bits}")
    section = _SYNC + "match.sync"
    if mode == "any":
        code = Asm(f"{text} {{d}}, {{a}}, {{membermask}};")
        return _collective(text, code, _match_any, result("d", uint32), value("a", word), section=section)
    code = _predicated(f"{text} {{d}}|q, {{a}}, {{membermask}};", "p")
    outputs = (result("d", uint32), result("p", bool_))
    return _collective(text, code, _match_all, *outputs, value("a", word), section=section, uniform=True)


MATCH_ANY: dict[int, Row] = {bits: _match("any", bits) for bits in (32, 64)}
MATCH_ALL: dict[int, Row] = {bits: _match("all", bits) for bits in (32, 64)}


# ---- reductions ----------------------------------------------------------------------------------------

_IDENTITIES: dict[str, Callable[[DType], int]] = {
    "add": lambda dtype: 0,
    "min": lambda dtype: dtype.max,
    "max": lambda dtype: dtype.min,
    "and": lambda dtype: dtype.max,
    "or": lambda dtype: 0,
    "xor": lambda dtype: 0,
}
_FOLDS: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _reduced(operation: str, of: DType) -> Callable[..., Array]:
    identity = np.array(_IDENTITIES[operation](of), of.numpy)

    def meaning(a: Array, membermask: Array) -> Array:
        counted = np.where(_members(membermask), a, identity)
        return _in_all(_FOLDS[operation].reduce(counted, axis=-1, keepdims=True, dtype=of.numpy), a)

    return meaning


def _redux(operation: str, of: DType, ptx: str) -> Row:
    text = f"redux.sync.{operation}.{ptx}"
    return _collective(
        text,
        Asm(f"{text} {{d}}, {{a}}, {{membermask}};"),
        _reduced(operation, of),
        result("d", of),
        value("a", of),
        section=_SYNC + "redux.sync",
        needs=since(80),
        uniform=True,
    )


REDUX: dict[tuple[str, str], Row] = {
    **{
        (operation, of.name): _redux(operation, of, of.ptx)
        for operation in ("add", "min", "max")
        for of in (int32, uint32)
    },
    **{(operation, "uint32"): _redux(operation, uint32, "b32") for operation in ("and", "or", "xor")},
}
"""Sums wrap."""


def _float_extreme(operation: str, absolute: bool, nans: bool) -> Callable[..., Array]:
    fold = minimum if operation == "min" else maximum

    def meaning(a: Array, membermask: Array) -> Array:
        numbers = np.abs(a) if absolute else a
        members = _members(membermask)
        # A NaN loses to every number, so it is what lanes that take no part give.
        counted = np.where(members, numbers, np.float32(np.nan))
        best = counted[..., :1]
        for lane in range(1, LANES):
            best = fold(best, counted[..., lane : lane + 1])
        if nans:
            best = np.where((np.isnan(numbers) & members).any(-1, keepdims=True), np.float32(np.nan), best)
        return _in_all(canonical_nan(best.astype(np.float32)), a)

    return meaning


def _float_redux(operation: str, absolute: str, nans: str) -> Row:
    text = f"redux.sync.{operation}{absolute}{nans}.f32"
    return _collective(
        text,
        Asm(f"{text} {{d}}, {{a}}, {{membermask}};"),
        _float_extreme(operation, bool(absolute), bool(nans)),
        result("d", float32),
        value("a", float32),
        section=_SYNC + "redux.sync",
        needs=Needs("sm_100a, sm_100f or their family", lambda target: target.in_family(100)),
        uniform=True,
        notes="a NaN in any lane gives NaN" if nans else "a NaN loses to every number",
    )


FLOAT_REDUX: tuple[Row, ...] = tuple(
    _float_redux(operation, absolute, nans)
    for operation in ("min", "max")
    for absolute in ("", ".abs")
    for nans in ("", ".NaN")
)


# ---- who is here ---------------------------------------------------------------------------------------

ACTIVE_MASK = Row(
    text="activemask.b32",
    operands=(result("d", uint32),),
    code=Asm("activemask.b32 {d};"),
    meaning=None,
    needs=EVERYWHERE,
    effect=Special("activemask"),
    memory=True,
    section=_SYNC + "activemask",
    notes="the lanes that happen to run together: no lane can be relied on to be there because of it",
)

ROWS: tuple[Row, ...] = (
    *SHUFFLE.values(),
    *SHUFFLE_FOUND.values(),
    *VOTE.values(),
    *MATCH_ANY.values(),
    *MATCH_ALL.values(),
    *REDUX.values(),
    *FLOAT_REDUX,
    ACTIVE_MASK,
)
