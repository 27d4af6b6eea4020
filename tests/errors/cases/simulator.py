"""What the simulator finds."""

from catalogue import Case, Topic
from machines import impatient

from warpjit.errors import SimulationError

FRAME = """\
@warpjit
def kernel(A: T.Tensor((32, 4), "int32"), Out: T.Tensor((32,), "int32"), n: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    thread, warp, lane = T.cuda.thread_idx(), T.cuda.warp_id(), T.cuda.lane_id()
    s = T.alloc_shared((64, 4), "int32")
    bars = T.alloc_shared((1,), "mbarrier")
    if thread == 0:
        T.ptx["mbarrier.init.shared::cta.b64"](bars.ptr(0), 2)
    T.cuda.cta_sync()
    ...

kernel(torch.zeros(32, 4, dtype=torch.int32), torch.zeros(32, dtype=torch.int32), 5)
"""
BARE = """\
@warpjit
def kernel(n: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    bars = T.alloc_shared((1,), "mbarrier")
    ...

kernel(5)
"""

TOPIC = Topic(
    "The simulator",
    "Findings of the simulator",
    (
        Case("Out[thread] = 1",
             "out of bounds: Out[32] but Out has shape (32,); CTA (0, 0, 0), warp 1, lane 0 (and 31 more threads)",
             "Out[thread] = 1"),
        Case("v = T.load(A[n + 26 : n + 28, 0:4], width=16)",
             "out of bounds: A[1, 0] is bytes 512 to 527, outside of the tensor; CTA (0, 0, 0), warp 0, lane 0 (and "
             "63 more threads)", "T.load(A[n + 26 : n + 28, 0:4], width=16)"),
        Case("Out[lane] = s[lane, 0]",
             "use of an unwritten value: it is stored to Out[0] in global memory; CTA (0, 0, 0), warp 0, lane 0 (and "
             "63 more threads)\n"
             "note: loaded from bytes that nothing has written, of shared `s`", "Out[lane] = s[lane, 0]"),
        Case("""
            if s[0, 0] > 3:
                Out[lane] = 1
            """,
             "use of an unwritten value as operand a of set.gt.s32; CTA (0, 0, 0), warp 0, lane 0 (and 63 more "
             "threads)\n"
             "note: loaded from bytes that nothing has written, of shared `s`", "s[0, 0] > 3"),
        Case("s[lane, 0] = 1",
             "race: the write of s[0, 0] and a write of the same bytes by warp 1, without a barrier between; CTA (0, "
             "0, 0), warp 0, lane 0 (and 31 more threads)\n"
             "note: the write by warp 1", "s[lane, 0] = 1"),
        Case("""
            s[thread, 0] = 1
            x = s[63 - thread, 0]
            """,
             "race: the read of s[63, 0] and a write of the same bytes by warp 1, without a barrier between; CTA (0, "
             "0, 0), warp 0, lane 0 (and 63 more threads)\n"
             "note: the write by warp 1", "s[63 - thread, 0]"),
        Case("""
            T.ptx["cp.async.ca.shared.global"](s.ptr(thread, 0), A.ptr(lane, 0), 16)
            x = s[thread, 0] + 1
            """,
             "use of a pending copy: s[0, 0] is read before its thread has waited for it with cp.async.wait_group; "
             "CTA (0, 0, 0), warp 0, lane 0 (and 63 more threads)\n"
             "note: the asynchronous copy is issued here", "s[thread, 0]"),
        Case("T.assume(n > 5)",
             "T.assume: the condition is false here; CTA (0, 0, 0), warp 0, lane 0 (and 63 more threads)",
             "T.assume(n > 5)"),
        Case("""
            if warp == 0:
                T.ptx["bar.sync"](1, 64)
            """,
             "deadlock: no warp can go on in CTA (0, 0, 0)\n"
             "note: warp 0 waits at barrier 1 (bar.sync) for 64 threads; 1 warp has come\n"
             "note: warps that have returned: 1", 'T.ptx["bar.sync"](1, 64)'),
        Case("""
            if warp == 0:
                T.ptx["bar.sync"](1, 64)
            else:
                T.ptx["bar.sync"](1, 32)
            """,
             "divergent barrier: it waits for 32 threads, other warps at the same barrier for 64; CTA (0, 0, 0), "
             "warp 1", 'T.ptx["bar.sync"](1, 32)'),
        Case("T.cuda.named_barrier_sync(T.cuda.lane_id(), 64)",
             "bar.sync: expected one id for the whole warp, from 0 to 15, but got 0 to 31; CTA (0, 0, 0), warp 0 (and "
             "1 more warp)", "T.cuda.named_barrier_sync(T.cuda.lane_id(), 64)"),
        Case("T.cuda.named_barrier_arrive(1, 30 + n)",
             "bar.arrive: expected one count for the whole warp, from 32 to 64 in steps of 32, but got 35; "
             "CTA (0, 0, 0), warp 0 (and 1 more warp)", "T.cuda.named_barrier_arrive(1, 30 + n)"),
        Case("T.cuda.mbarrier_wait(bars.ptr(0), 0)",
             "mbarrier misuse: bars[0] is used before mbarrier.init (or after mbarrier.inval); CTA (0, 0, 0), warp "
             "0, lane 0 (and 31 more threads)", "T.cuda.mbarrier_wait(bars.ptr(0), 0)", frame=BARE),
        Case('T.ptx["mbarrier.arrive.shared::cta.b64"](bars.ptr(0), 1)',
             "mbarrier misuse: bars[0] is used before mbarrier.init (or after mbarrier.inval); CTA (0, 0, 0), warp "
             "0, lane 0", 'T.ptx["mbarrier.arrive.shared::cta.b64"](bars.ptr(0), 1)', frame=BARE),
        Case("T.cuda.mbarrier_wait(bars.ptr(0), 0)",
             "deadlock: no warp can go on in CTA (0, 0, 0)\n"
             "note: warp 0 waits at mbarrier_wait in lanes 0-31, whose condition never becomes true\n"
             "note: warp 1 waits at mbarrier_wait in lanes 0-31, whose condition never becomes true",
             "T.cuda.mbarrier_wait(bars.ptr(0), 0)"),
        Case("""
            if thread == 0:
                T.ptx["mbarrier.arrive.shared::cta.b64"](bars.ptr(0), 3)
            """,
             "mbarrier misuse: bars[0] gets more arrivals in a phase than it expects; CTA (0, 0, 0), warp 0, lane 0",
             'T.ptx["mbarrier.arrive.shared::cta.b64"](bars.ptr(0), 3)'),
        Case("""
            if thread == 0:
                T.ptx["mbarrier.init.shared::cta.b64"](bars.ptr(0), 0)
            """,
             "mbarrier misuse: bars[0] is initialised with an arrival count outside of 1 to 1048575; CTA (0, 0, 0), "
             "warp 0, lane 0", 'T.ptx["mbarrier.init.shared::cta.b64"](bars.ptr(0), 0)'),
        Case("""
            if thread == 0:
                bars.storage[0] = 1
            """,
             "mbarrier misuse: bars.storage[0] lies in an initialised mbarrier, which store.shared.u8 may not touch; "
             "CTA (0, 0, 0), warp 0, lane 0\n"
             "note: only mbarrier instructions may read or write it until mbarrier.inval", "bars.storage[0] = 1"),
        Case("""
            if thread == 0:
                s[0, 0] = 1
            T.cuda.cta_sync()
            while s[0, 0] == 1:
                pass
            """,
             "deadlock: this loop spins for ever on memory that no warp changes; CTA (0, 0, 0), warp 0",
             "while s[0, 0] == 1:", given=impatient),
        Case("Out[lane] = 7 // (lane - 4)",
             "integer division by zero in floordiv.s32; CTA (0, 0, 0), warp 0, lane 4 (and 1 more thread)",
             "7 // (lane - 4)"),
        Case('T.ptx["bar.warp.sync"](0xF)',
             "missing lanes: bar.warp.sync is executed by a lane that its membermask does not name; CTA (0, 0, 0), "
             "warp 0, lane 4 (and 55 more threads)", 'T.ptx["bar.warp.sync"](0xF)'),
    ),
    frame=FRAME,
    error=SimulationError,
)  # fmt: skip
