"""Asynchronous copies: `T.cuda.tile.apply` of `cp.async` and its bulk form."""

from catalogue import Case, Topic

FRAME = """\
CG = "cp.async.cg.shared.global"
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"

@warpjit
def kernel(A: T.Tensor((16, 64), "float16"), n: T.int32, u: T.uint32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=96))
    lane = T.cuda.lane_id()
    copy, bulk, apply = T.ptx[CG], T.ptx[BULK], T.cuda.tile.apply
    tile = T.alloc_shared((16, 64), "float16")
    bar = T.alloc_shared((1,), "mbarrier")
    ...

kernel(torch.zeros(16, 64).half(), 5, 5)
"""
UNKNOWN = """\
M, K = T.dynamic("M"), T.dynamic("K")

@warpjit
def kernel(A: T.Tensor((M, K), "float16")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    tile = T.alloc_shared((16, 64), "float16")
    ...

kernel(torch.zeros(16, 64).half())
"""

TOPIC = Topic(
    "Instructions",
    "Asynchronous copies",
    (
        Case("apply(copy, tile)",
             "cp.async.cg.shared.global: expected 2 tensors (dst, src) but got 1", "apply(copy, tile)"),
        Case("apply(copy, tile, 3)",
             "cp.async.cg.shared.global: operand src: expected a tensor but got int 3", "apply(copy, tile, 3)"),
        Case("apply(copy, A, tile)",
             "cp.async.cg.shared.global: operand dst: expected a shared tensor, but A is global",
             "apply(copy, A, tile)"),
        Case('apply(copy, tile.view("int4"), A.view("int4"), size=16)',
             "cp.async.cg.shared.global: operand dst: expected elements of a byte or more but tile holds int4: view "
             "it as uint8", 'apply(copy, tile.view("int4"), A.view("int4"), size=16)'),
        Case("apply(copy, tile, A[0:8], size=16)",
             "cp.async.cg.shared.global: expected tiles of one type and shape but got tile of float16, shape (16, "
             "64) and A of float16, shape (8, 64)", "apply(copy, tile, A[0:8], size=16)"),
        Case('apply(copy, tile, A.view("int16"), size=16)',
             "cp.async.cg.shared.global: expected tiles of one type and shape but got tile of float16, shape (16, "
             "64) and A of int16, shape (16, 64)", 'apply(copy, tile, A.view("int16"), size=16)'),
        Case("apply(copy, tile, A, size=3)",
             "cp.async.cg.shared.global: operand size: expected 16 but got 3", "apply(copy, tile, A, size=3)"),
        Case("apply(copy, tile, A, size=n)",
             "cp.async.cg.shared.global: operand size must be known while tracing, but it is computed on the device "
             "(the same for the whole grid)", "apply(copy, tile, A, size=n)"),
        Case("apply(copy, tile[:, 0:12], A[:, 0:12], size=16)",
             "cp.async.cg.shared.global: operand size: expected a divisor of the 24 bytes of the last axis but got 16",
             "apply(copy, tile[:, 0:12], A[:, 0:12], size=16)"),
        Case("apply(bulk, tile, A, size=8, mbar=bar.ptr())",
             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes: operand size: expected a positive "
             "multiple of 16 bytes but got 8", "apply(bulk, tile, A, size=8, mbar=bar.ptr())"),
        Case("apply(bulk, tile, A)",
             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes: expected mbar=",
             "apply(bulk, tile, A)"),
        Case("apply(copy, tile, A, size=16, extra=1)",
             "cp.async.cg.shared.global takes no extra=; it takes pred=, size=, src_size=, valid=",
             "apply(copy, tile, A, size=16, extra=1)"),
        Case("apply(copy, tile, A, size=16, valid=n)",
             "cp.async.cg.shared.global: expected valid= to have an entry (None: all exist) for each axis of (16, 64)",
             "apply(copy, tile, A, size=16, valid=n)"),
        Case("apply(copy, tile, A, size=16, valid=(None, 1.5))",
             "cp.async.cg.shared.global: valid[1]: expected an integer or None but got float 1.5",
             "apply(copy, tile, A, size=16, valid=(None, 1.5))"),
        Case("apply(copy, tile, A, size=16, valid=(u, None))",
             "cp.async.cg.shared.global: valid[0]: expected a signed integer but got a scalar of type uint32: write "
             "T.int32(...) or T.int64(...)", "apply(copy, tile, A, size=16, valid=(u, None))"),
        Case("apply(copy, tile, A, size=16, valid=(n, None), src_size=4)",
             "cp.async.cg.shared.global: expected valid= or src_size= but got both",
             "apply(copy, tile, A, size=16, valid=(n, None), src_size=4)"),
        Case("apply(copy, tile, A, size=16, src_size=17)",
             "cp.async.cg.shared.global: operand src_size: expected 0 to 16 but got 17",
             "apply(copy, tile, A, size=16, src_size=17)"),
        Case("apply(copy, tile, A.permute(1, 0)[0:16, 0:8], size=16)",
             "cp.async.cg.shared.global: expected tiles of one type and shape but got tile of float16, shape (16, "
             "64) and A of float16, shape (16, 8)", "apply(copy, tile, A.permute(1, 0)[0:16, 0:8], size=16)"),
        Case("apply(copy, tile.permute(1, 0)[0:16, 0:16], A[:, 0:16], size=16)",
             "cp.async.cg.shared.global: operand dst: a chunk must be contiguous, but element 1 of the chunk at (0, "
             "0) of tile lies 64 elements after its first",
             "apply(copy, tile.permute(1, 0)[0:16, 0:16], A[:, 0:16], size=16)"),
        Case("apply(copy, tile[:, 0:32], A[:, 4:36], size=16)",
             "cp.async.cg.shared.global: operand src: the chunk at (0, 0) of A must begin at a multiple of 16 bytes, "
             "but it is known to begin at a multiple of 8 only: align the tensor, or make its strides and the starts "
             "of slices multiples of 8 elements of float16", "apply(copy, tile[:, 0:32], A[:, 4:36], size=16)"),
        Case("apply(copy, tile.sub[0, 0:8], A[0, 1:9], size=16)",
             "cp.async.cg.shared.global: operand src: the chunk at (0,) of A must begin at a multiple of 16 bytes, "
             "but it is known to begin at a multiple of 2 only: align the tensor, or make its strides and the starts "
             "of slices multiples of 8 elements of float16", "apply(copy, tile.sub[0, 0:8], A[0, 1:9], size=16)"),
        Case('apply(copy, tile, A, size=16, scope="grid")',
             "cp.async.cg.shared.global: expected scope 'thread', 'warp', 'warpgroup', 'cta' but got 'grid'",
             'apply(copy, tile, A, size=16, scope="grid")'),
        Case('apply(copy, tile, A, size=16, scope="warpgroup")',
             "cp.async.cg.shared.global: scope 'warpgroup' needs a block of a multiple of 128 threads, but it has 96",
             'apply(copy, tile, A, size=16, scope="warpgroup")'),
        Case("""
            if lane < 4:
                apply(copy, tile, A, size=16, scope="cta")
            """,
             "cp.async.cg.shared.global must be executed by the whole CTA together (scope 'cta'), but it stands "
             "under control flow that is different from lane to lane: not all of its threads get there",
             'apply(copy, tile, A, size=16, scope="cta")'),
        Case('T.cuda.tile.apply(T.ptx["cp.async.cg.shared.global"], tile, A[0:16, 0:64], size=16)',
             "cp.async.cg.shared.global: operand src: the chunk at (1, 0) of A must begin at a multiple of 16 bytes, "
             "but it is known to begin at a multiple of 2 only: align the tensor, or make its strides and the starts "
             "of slices multiples of 8 elements of float16",
             'T.cuda.tile.apply(T.ptx["cp.async.cg.shared.global"], tile, A[0:16, 0:64], size=16)', frame=UNKNOWN),
    ),
    frame=FRAME,
)  # fmt: skip
