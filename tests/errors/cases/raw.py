"""Instructions with scalars and pointers: `T.ptx["..."](...)`."""

from catalogue import Case, Topic

FRAME = """\
@warpjit
def kernel(A: T.Tensor((64,), "float32"), n: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    tile = T.alloc_shared((64,), "float32")
    copy = T.ptx["cp.async.ca.shared.global"]
    ...

kernel(torch.zeros(64), 5)
"""

TOPIC = Topic(
    "Instructions",
    "Instructions with scalars and pointers",
    (
        Case('T.ptx["mma.sync.m16n8k16"]',
             "mma.sync.m16n8k16 is not complete; it may go on with .aligned; nearest: "
             "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32, mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32, "
             "mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32, mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32",
             'T.ptx["mma.sync.m16n8k16"]'),
        Case('T.ptx["nothing.like.it"]',
             "there is no instruction 'nothing'; did you mean not?", 'T.ptx["nothing.like.it"]'),
        Case("copy(tile.ptr(0))",
             "cp.async.ca.shared.global: expected operands (dst, src, size, src_size?) but got 1", "copy(tile.ptr(0))"),
        Case("copy(tile.ptr(0), A.ptr(0), 16, extra=1)",
             "cp.async.ca.shared.global: expected names of its operands but got 'extra'",
             "copy(tile.ptr(0), A.ptr(0), 16, extra=1)"),
        Case("copy(tile.ptr(0), A.ptr(0), 5)",
             "cp.async.ca.shared.global: operand size: expected 4 or 8 or 16 but got 5",
             "copy(tile.ptr(0), A.ptr(0), 5)"),
        Case("copy(tile.ptr(0), 3, 16)",
             "cp.async.ca.shared.global: operand src: expected a pointer, tensor.ptr(...), but got int 3",
             "copy(tile.ptr(0), 3, 16)"),
        Case("copy(A.ptr(0), tile.ptr(0), 16)",
             "cp.async.ca.shared.global: operand dst: expected a pointer to shared memory, but A is global",
             "copy(A.ptr(0), tile.ptr(0), 16)"),
        Case("copy(tile.ptr(0), A.ptr(lane), 16)",
             "cp.async.ca.shared.global: operand src: the address in A must be a multiple of 16 bytes, but it is "
             "known to be a multiple of 4 only: align the tensor, or make its strides and the indices multiples of 4 "
             "elements of float32", "copy(tile.ptr(0), A.ptr(lane), 16)"),
        Case('T.ptx["mbarrier.init.shared::cta.b64"](tile.ptr(0), 1)',
             'mbarrier.init.shared::cta.b64: operand bar: expected a pointer into a tensor of "mbarrier", but tile '
             "holds float32", 'T.ptx["mbarrier.init.shared::cta.b64"](tile.ptr(0), 1)'),
        Case('T.ptx["bar.sync"](A)',
             "bar.sync: operand id: expected int32 but got the tensor A", 'T.ptx["bar.sync"](A)'),
        Case('T.ptx["bar.warp.sync"](0xFFFFFFFF, pred=n > 3)',
             "bar.warp.sync takes no pred=: all lanes execute it together",
             'T.ptx["bar.warp.sync"](0xFFFFFFFF, pred=n > 3)'),
        Case('T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"](3, tile.ptr(0))',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand d: expected a local tensor of 4 registers of 32 bits "
             "but got int 3", 'T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"](3, tile.ptr(0))'),
        Case('T.ptx["bar.sync"](16)', "bar.sync: expected a barrier from 0 to 15 but got 16", 'T.ptx["bar.sync"](16)'),
        Case('T.ptx["bar.sync"](1, 33)',
             "bar.sync: expected a multiple of 32 up to the block's 32 threads but got 33", 'T.ptx["bar.sync"](1, 33)'),
        Case("""
            if lane < 4:
                T.cuda.cta_sync()
            """,
             "bar.sync must be executed by the whole CTA together, but it stands under control flow that is "
             "different from lane to lane: not all of its threads get there\nnote: its threads part here",
             "T.cuda.cta_sync()"),
        Case('T.ptx["mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32"]',
             "mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32 is not complete; it may go on with .kind::f8f6f4, "
             ".kind::mxf8f6f4; nearest: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32, "
             "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32, "
             "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32, "
             "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32",
             'T.ptx["mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32"]'),
    ),
    frame=FRAME,
)  # fmt: skip
