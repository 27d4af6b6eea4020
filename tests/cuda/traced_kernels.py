"""Three kernels in the language whose generated CUDA C++ is kept in tests/golden."""

from __future__ import annotations

from typing import Any

from warpjit.frontend import language as T
from warpjit.frontend.signature import of_function as signature_of
from warpjit.frontend.source import of_function as source_of
from warpjit.frontend.specialize import specialize
from warpjit.frontend.trace import trace
from warpjit.frontend.tracer import Settings
from warpjit.ir.nodes import Kernel
from warpjit.isa.target import Target
from warpjit.layout import S, TileLayout, laneid
from warpjit.passes.prune import prune

a_load_layout = TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])
b_load_layout = TileLayout(S[(2, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])
a_mma_layout = TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ laneid, 2, 1 @ laneid)])
b_mma_layout = TileLayout(S[(1, 1, 8, 2, 4) : (2, 2, 4 @ laneid, 1, 1 @ laneid)])
d_mma_layout = TileLayout(S[(1, 1, 2, 8, 4, 2) : (4, 4, 2, 4 @ laneid, 1 @ laneid, 1)])


def warp_matmul(
    A: T.Tensor((16, 16), "float16"),
    B: T.Tensor((8, 16), "float16"),
    Out: T.Tensor((16, 8), "float32"),
):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    a = T.alloc_shared((16, 16), "float16", layout="default", align=16)
    b = T.alloc_shared((8, 16), "float16", layout="default", align=16)
    for q in range(8):
        index = lane + 32 * q
        a[index // 16, index % 16] = A[index // 16, index % 16]
    for q in range(4):
        index = lane + 32 * q
        b[index // 16, index % 16] = B[index // 16, index % 16]
    T.cuda.cta_sync()
    a_words = a.view("uint32").rearrange("(group row) (chunk word) -> (chunk group) row word", group=2, chunk=2, word=4)
    b_words = b.view("uint32").rearrange("row (chunk word) -> chunk row word", chunk=2)
    ar = T.alloc_local((4,), "uint32", layout="default")
    br = T.alloc_local((2,), "uint32", layout="default")
    dr = T.alloc_local((4,), "float32", layout="default")
    T.cuda.tile.apply(
        T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"],
        ar.view(4, 8, 4, layout=a_load_layout),
        a_words,
        scope="warp",
    )
    T.cuda.tile.apply(
        T.ptx["ldmatrix.sync.aligned.m8n8.x2.shared.b16"],
        br.view(2, 8, 4, layout=b_load_layout),
        b_words,
        scope="warp",
    )
    T.cuda.tile.apply(
        T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"],
        dr.view(1, 1, 16, 8, layout=d_mma_layout),
        ar.view(1, 1, 16, 8, layout=a_mma_layout),
        br.view(1, 1, 8, 8, layout=b_mma_layout),
        T.float32(0),
        scope="warp",
    )
    for r in range(4):
        Out[lane // 4 + 8 * (r // 2), 2 * (lane % 4) + r % 2] = dr[r]


swizzled = T.cuda.layout.mma_shared_layout("float16", 128, (16, 64))


def swizzled_round_trip(A: T.Tensor((16, 64), "float16"), Out: T.Tensor((16, 64), "float16")):
    """Each 16 x 16 block: through a swizzled tile to registers (ldmatrix), and through another one back (stmatrix)."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    a = T.alloc_shared((16, 64), "float16", layout=swizzled)
    b = T.alloc_shared((16, 64), "float16", layout=swizzled)
    for row in range(16):
        a[row, lane] = A[row, lane]
        a[row, lane + 32] = A[row, lane + 32]
    T.cuda.cta_sync()
    words = T.alloc_local((4,), "uint32")
    for block in T.unroll(4):
        source = a.view("uint32").sub[0:16, 8 * block : 8 * block + 8]
        target = b.view("uint32").sub[0:16, 8 * block : 8 * block + 8]
        T.cuda.tile.apply(
            T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"],
            words.view(4, 8, 4, layout=a_load_layout),
            source.rearrange("(group row) (chunk word) -> (chunk group) row word", group=2, chunk=2),
        )
        T.cuda.tile.apply(
            T.ptx["stmatrix.sync.aligned.m8n8.x4.shared.b16"],
            target.rearrange("(group row) (chunk word) -> (chunk group) row word", group=2, chunk=2),
            words.view(4, 8, 4, layout=a_load_layout),
        )
    T.cuda.cta_sync()
    for row in range(16):
        Out[row, lane] = b[row, lane]
        Out[row, lane + 32] = b[row, lane + 32]


def producer_consumer(A: T.Tensor((64, 32), "float32"), Out: T.Tensor((64, 32), "float32")):
    """Warp 0 brings rows into a ring of two stages, warp 1 doubles them."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    lane = T.cuda.lane_id()
    ring = T.alloc_shared((2, 32), "float32")
    full = T.alloc_shared((2,), "mbarrier")
    empty = T.alloc_shared((2,), "mbarrier")
    if T.cuda.thread_idx() == 0:
        for stage in T.unroll(2):
            T.ptx["mbarrier.init.shared::cta.b64"](full.ptr(stage), 32)
            T.ptx["mbarrier.init.shared::cta.b64"](empty.ptr(stage), 32)
    T.cuda.cta_sync()
    if T.cuda.warp_id() == 0:
        for i in range(64):
            T.cuda.mbarrier_wait(empty.ptr(i % 2), (i // 2 + 1) % 2)
            ring[i % 2, lane] = A[i, lane]
            T.ptx["mbarrier.arrive.shared::cta.b64"](full.ptr(i % 2))
    else:
        for i in range(64):
            T.cuda.mbarrier_wait(full.ptr(i % 2), i // 2 % 2)
            Out[i, lane] = 2.0 * ring[i % 2, lane]
            T.ptx["mbarrier.arrive.shared::cta.b64"](empty.ptr(i % 2))


def traced(function: Any, target: Target) -> Kernel:
    """The checked kernel, for the tensors that its annotations describe."""
    signature = signature_of(function, {})
    specs = [parameter.tensor for parameter in signature.parameters]
    kinds, _ = specialize(signature, specs, {}, specs=True)
    return prune(trace(source_of(function), function, kinds, Settings(target)).kernel)
