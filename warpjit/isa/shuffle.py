"""shfl.sync: each lane reads a 32-bit register of another lane of its warp.

Operands as in the manual: `b` names the lane (idx), the distance (up, down) or the bits (bfly), `c` the clamp in its
bits 0 to 4 and the segment mask in its bits 8 to 12: 31 for whole warps (up: 0). A lane whose source is out of its
segment keeps its own value. Left out: the predicate that says so, and warps in part.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpjit.ir.dtypes import int32, uint32
from warpjit.isa.needs import EVERYWHERE
from warpjit.isa.row import Array, Asm, Participants, Row
from warpjit.isa.scalar_text import result, value

LANES = np.arange(32)

# lane, b, the lanes of the segment: source lane, and whether it is in the segment.
_SOURCES: dict[str, Callable[[Array, Array, Array, Array, Array], tuple[Array, Array]]] = {
    "idx": lambda lane, b, least, mask, most: (least | (b & ~mask), (least | (b & ~mask)) <= most),
    "up": lambda lane, b, least, mask, most: (lane - b, lane - b >= most),
    "down": lambda lane, b, least, mask, most: (lane + b, lane + b <= most),
    "bfly": lambda lane, b, least, mask, most: (lane ^ b, (lane ^ b) <= most),
}


def _meaning(mode: str) -> Callable[..., Array]:
    def meaning(a: Array, b: Array, c: Array, membermask: Array) -> Array:
        b, c = (np.broadcast_to(each, a.shape).astype(np.int64) for each in (b, c))
        b, clamp, mask = b & 31, c & 31, c >> 8 & 31
        most, least = (LANES & mask) | (clamp & ~mask), LANES & mask
        source, inside = _SOURCES[mode](LANES, b, least, mask, most)
        return np.take_along_axis(a, np.where(inside, source, LANES), axis=-1)

    return meaning


SHUFFLE: dict[str, Row] = {
    mode: Row(
        text=f"shfl.sync.{mode}.b32",
        operands=(
            result("d", uint32),
            value("a", uint32),
            value("b", int32),
            value("c", uint32),
            value("membermask", uint32),
        ),
        code=Asm(f"shfl.sync.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}, {{membermask}};"),
        meaning=_meaning(mode),
        needs=EVERYWHERE,
        participants=Participants.WARP,
        pure=True,
        moves=True,
        section="Data Movement and Conversion Instructions: shfl.sync",
    )
    for mode in _SOURCES
}

ROWS: tuple[Row, ...] = tuple(SHUFFLE.values())
