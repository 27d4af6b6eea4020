"""One picture of each kind, for tests of what pictures say and of how a browser shows them."""

from __future__ import annotations

from collections.abc import Callable

from warpjit import isa
from warpjit.layout import R, S, TCol, TileLayout, TLane, laneid, mma_shared_layout, tx, warpid
from warpjit.layout.picture import Picture

HALVES = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"

FRAGMENT = TileLayout(S[(4, 2, 8, 8, 4, 2) : (32, 2, 4 @ laneid, 4, 1 @ laneid, 1)])
"""64 x 64 elements of one warp: 4 x 8 accumulators of m16n8."""

PICTURES: dict[str, Callable[[], Picture]] = {
    "A by lane": lambda: isa.lookup(HALVES).draw("A"),
    "A by register": lambda: isa.lookup(HALVES).draw("A", color="register"),
    "D": lambda: isa.lookup(HALVES).draw("D"),
    "4-bit integers": lambda: isa.lookup("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32").draw("A"),
    "single bits": lambda: isa.lookup("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc").draw("A"),
    "doubles": lambda: isa.lookup("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64").draw("A"),
    "metadata": lambda: isa.lookup(SPARSE).draw("E"),
    "matrices": lambda: isa.lookup(LOAD).draw("d"),
    "addresses": lambda: isa.lookup(LOAD).draw("src"),
    "fragment 64 x 64": lambda: FRAGMENT.draw((64, 64)),
    "fragment 64 x 64 of halves by register": lambda: FRAGMENT.draw((64, 64), color="register", dtype="float16"),
    "bytes in registers": lambda: FRAGMENT.draw((64, 64), dtype="int8"),
    "two warps": lambda: TileLayout(S[(2, 16, 4, 2) : (1 @ warpid, 2 @ laneid, 2, 1)] + 3 @ warpid).draw(color="warp"),
    "threads": lambda: TileLayout(S[(16, 8) : (8 @ tx, 1 @ tx)]).draw(),
    "copies": lambda: TileLayout(S[(8, 2) : (4 @ laneid, 1)] + R[4 : 1 @ laneid]).draw(),
    "tensor memory": lambda: TileLayout(S[(32, 16) : (1 @ TLane, 1 @ TCol)]).draw(),
    "banks of rows": lambda: TileLayout(S[16, 16]).draw(),
    "banks 16 x 16": lambda: mma_shared_layout("float16", 32, (16, 16)).draw((16, 16)),
    "banks 64 x 64": lambda: mma_shared_layout("float16", 128, (64, 64)).draw((64, 64)),
    "banks of columns": lambda: TileLayout(S[(16, 16) : (1, 16)]).draw((16, 16), dtype="float16"),
    "banks of doubles": lambda: TileLayout(S[16, 16]).draw(dtype="float64"),
    "a row": lambda: TileLayout(S[20]).draw(),
}
