"""What is refused of `cache=`, prefetches, pointers that move, and fences."""

from catalogue import Case, Topic

ALIASED = """\
@warpjit
def kernel(A: T.Tensor((32, 4), "float32"), B: T.Tensor((32, 4), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    ...

kernel(torch.zeros(32, 4), torch.zeros(32, 4))
"""
LOADS = (
    '"ca", "cg", "cs", "lu", "cv", "ca.nc", "cg.nc", "cs.nc", "L1::evict_unchanged", "L1::evict_first", '
    '"L1::evict_last", "L1::no_allocate", "nc", "nc.L1::evict_unchanged", "nc.L1::evict_first", "nc.L1::evict_last", '
    '"nc.L1::no_allocate"'
)
STORES = '"wb", "cg", "cs", "wt", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"'


def wrong(program: str, message: str) -> Case:
    """A mistaken statement by itself."""
    return Case(program, message, program)


TOPIC = Topic(
    "The language",
    "Caches, pointers and fences",
    (
        wrong(
            'T.load(A.sub[0], cache="cs.L2::128B")',
            f"T.load: cache: expected one of {LOADS}, and, but for operators, with .L2::64B, .L2::128B or .L2::256B "
            "for a load but got str 'cs.L2::128B'",
        ),
        wrong(
            'T.copy(A.sub[0], A.sub[1], cache=("cg", "nc"))',
            f"T.copy: cache: expected one of {STORES} for a store but got str 'nc'",
        ),
        wrong(
            'T.copy(A.sub[0], A.sub[1], cache=("cg",))',
            "T.copy: cache: expected one word, or two for load and store, but got 1",
        ),
        Case(
            'box = T.alloc_shared((8,))\nT.load(box, cache="cg")',
            "T.load: cache: expected a global tensor, but box is shared",
            'T.load(box, cache="cg")',
        ),
        Case(
            'T.load(A.sub[lane], cache="nc")\nA[lane, 0] = 1.0',
            "ld.global.nc.v4.b32 reads A, which the kernel writes: expected a tensor that does not change while it "
            "runs\nnote: it is written here",
            'T.load(A.sub[lane], cache="nc")',
            frame=ALIASED,
        ),
        Case(
            'T.store(B.sub[lane], T.load(A.sub[lane], cache="nc"))',
            "ld.global.nc.v4.b32 reads A, which may share memory with B, which the kernel writes: expected "
            "noalias=True in the annotation of one of them\nnote: B is written here",
            'T.load(A.sub[lane], cache="nc")',
            frame=ALIASED,
        ),
        wrong(
            'T.cuda.fence("warp")',
            'T.cuda.fence: scope: expected one of "cta", "cluster", "gpu", "sys" but got str \'warp\'',
        ),
        wrong("T.cuda.fence(sc=1)", "T.cuda.fence: sc: expected True or False but got int 1"),
        Case(
            "box = T.alloc_shared((8,))\nT.prefetch(box)",
            "T.prefetch: tensor: expected a global tensor, but box is shared",
            "T.prefetch(box)",
        ),
        wrong(
            'T.prefetch(A, level="L3")',
            'T.prefetch: level: expected one of "L1", "L2", "L2::evict_last", "L2::evict_normal" but got str \'L3\'',
        ),
        Case("p = A.ptr(0, 0) * 2", "mul of pointers: expected pointer + bytes or pointer - bytes", "A.ptr(0, 0) * 2"),
        Case(
            "p = A.ptr(0, 0) + A[0, 0]",
            "expected an integer, a number of bytes, beside a pointer but got a scalar of type float32",
            "A.ptr(0, 0) + A[0, 0]",
        ),
    ),
)  # fmt: skip
