"""Three kernels in the language whose generated CUDA C++ is kept in tests/golden."""

from __future__ import annotations

from typing import Any

from warp_matmul import a_load_layout
from warp_matmul import warp_matmul as example

from warpjit.frontend import language as T
from warpjit.frontend.signature import of_function as signature_of
from warpjit.frontend.source import of_function as source_of
from warpjit.frontend.specialize import specialize
from warpjit.frontend.trace import trace
from warpjit.frontend.tracer import Settings
from warpjit.ir.nodes import Kernel
from warpjit.isa.target import Target
from warpjit.passes.prune import prune

warp_matmul = example.function
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
    """One lane of warp 0 brings rows by bulk copies into a ring of two stages, warp 1 doubles them."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    lane = T.cuda.lane_id()
    ring = T.alloc_shared((2, 32), "float32")
    full = T.alloc_shared((2,), "mbarrier")
    empty = T.alloc_shared((2,), "mbarrier")
    if T.cuda.thread_idx() == 0:
        for stage in T.unroll(2):
            T.ptx["mbarrier.init.shared::cta.b64"](full.ptr(stage), 1)
            T.ptx["mbarrier.init.shared::cta.b64"](empty.ptr(stage), 32)
        T.ptx["fence.mbarrier_init.release.cluster"]()
    T.cuda.cta_sync()
    if T.cuda.warp_id() == 0:
        if lane == 0:
            for i in range(64):
                T.cuda.mbarrier_wait(empty.ptr(i % 2), (i // 2 + 1) % 2)
                T.ptx["mbarrier.arrive.expect_tx.shared::cta.b64"](full.ptr(i % 2), 128)
                copy = T.ptx["cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"]
                copy(ring.ptr(i % 2, 0), A.ptr(i, 0), 128, full.ptr(i % 2))
    else:
        for i in range(64):
            T.cuda.mbarrier_wait(full.ptr(i % 2), i // 2 % 2)
            Out[i, lane] = 2.0 * ring[i % 2, lane]
            T.ptx["mbarrier.arrive.shared::cta.b64"](empty.ptr(i % 2))


def traced(function: Any, target: Target) -> Kernel:
    """The kernel as the CUDA back end gets it, for the tensors that its annotations describe."""
    signature = signature_of(function, {})
    specs = [parameter.tensor for parameter in signature.parameters]
    kinds, _ = specialize(signature, specs, {}, specs=True)
    return prune(trace(source_of(function), function, kinds, Settings(target)).kernel, accesses=False)
