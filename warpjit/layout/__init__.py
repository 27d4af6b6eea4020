"""Layouts: which lane, warp or CTA owns an element of a tensor, and where in its storage the element lies.

    from warpjit.layout import S, R, TileLayout, laneid
    TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)])

Layouts are immutable values that know nothing of kernels, tensors or instructions. Needs neither torch nor a GPU.
"""

from warpjit.layout.axis import (
    Axis,
    TCol,
    TLane,
    bx,
    by,
    bz,
    cbx,
    cby,
    cbz,
    laneid,
    m,
    tid_in_wg,
    tx,
    warpid,
    wgid,
    wid_in_wg,
)
from warpjit.layout.compose import ComposeLayout, Layout
from warpjit.layout.iters import Iter
from warpjit.layout.notation import R, S, Spec
from warpjit.layout.standard import (
    SwizzleMode,
    mma_atom_layout,
    mma_atom_shape,
    mma_shared_layout,
)
from warpjit.layout.swizzle import Swizzle
from warpjit.layout.tile import TileLayout

__all__ = [
    "Axis",
    "ComposeLayout",
    "Iter",
    "Layout",
    "R",
    "S",
    "Spec",
    "Swizzle",
    "SwizzleMode",
    "TCol",
    "TLane",
    "TileLayout",
    "bx",
    "by",
    "bz",
    "cbx",
    "cby",
    "cbz",
    "laneid",
    "m",
    "mma_atom_layout",
    "mma_atom_shape",
    "mma_shared_layout",
    "tid_in_wg",
    "tx",
    "warpid",
    "wgid",
    "wid_in_wg",
]
