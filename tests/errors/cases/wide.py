"""Wide loads, stores and copies: `T.load`, `T.store`, `T.copy`."""

from catalogue import Case, Topic

FRAME = """\
@warpjit
def kernel(Out: T.Tensor((64,), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    tile = T.alloc_shared((4, 8), "float32")
    half = T.alloc_local((8,), "float16")
    ...

kernel(torch.zeros(64))
"""
UNKNOWN = """\
M, N = T.dynamic("M"), T.dynamic("N")

@warpjit
def kernel(A: T.Tensor((M, N), "float16")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    ...

kernel(torch.zeros(20, 30).half())
"""

TOPIC = Topic(
    "The language",
    "Wide loads, stores and copies",
    (
        Case("T.load(3)", "T.load: tensor: expected a tensor but got int 3", "T.load(3)"),
        Case("T.load(half)",
             "T.load: tensor: expected a global or shared tensor, but half is in registers", "T.load(half)"),
        Case('T.load(T.alloc_shared((2,), "mbarrier"))',
             "T.load: tensor: shared holds mbarriers: only mbarrier instructions may touch them",
             'T.load(T.alloc_shared((2,), "mbarrier"))'),
        Case('T.store(tile.view("int4"), half)',
             "T.store: tensor: expected elements of a byte or more but tile holds int4: view it as uint8",
             'T.store(tile.view("int4"), half)'),
        Case("T.load(Out.sub[3])",
             "T.load: tensor: expected at least one axis, but Out is a single element", "T.load(Out.sub[3])"),
        Case("T.load(Out[0:8], width=2)",
             "T.load: width: expected one of 4, 8, 16 bytes for elements of float32 but got 2",
             "T.load(Out[0:8], width=2)"),
        Case("T.load(Out[0:6], width=16)",
             "T.load: width: expected a divisor of the 24 bytes of the last axis but got 16",
             "T.load(Out[0:6], width=16)"),
        Case("T.load(Out[0:8], where=lane)",
             "T.load: where: expected a bool but got a scalar of type int32", "T.load(Out[0:8], where=lane)"),
        Case("T.load(tile.permute(1, 0)[0:8, 0:4], width=16)",
             "T.load: tensor: a chunk must be contiguous, but element 1 of the chunk at (0, 0) of tile lies 8 "
             "elements after its first", "T.load(tile.permute(1, 0)[0:8, 0:4], width=16)"),
        Case("""
            odd = ComposeLayout(1, 2, 3, TileLayout(S[(8, 8)]))
            T.load(T.alloc_shared((8, 8), layout=odd).sub[0], width=16)
            """,
             "T.load: tensor: a chunk must be contiguous, but the swizzle of shared keeps only 2 elements together, "
             "not 4", "T.load(T.alloc_shared((8, 8), layout=odd).sub[0], width=16)"),
        Case("T.load(T.alloc_shared((4, 6))[0:4, 0:4], width=16)",
             "T.load: tensor: the chunk at (1, 0) of shared must begin at a multiple of 16 bytes, but it is known to "
             "begin at a multiple of 8 only: align the tensor, or make its strides and the starts of slices "
             "multiples of 4 elements of float32", "T.load(T.alloc_shared((4, 6))[0:4, 0:4], width=16)"),
        Case("T.load(Out[2 * lane : 2 * lane + 4], width=16)",
             "T.load: tensor: the chunk at (0,) of Out must begin at a multiple of 16 bytes, but it is known to "
             "begin at a multiple of 8 only: align the tensor, or make its strides and the starts of slices "
             "multiples of 4 elements of float32", "T.load(Out[2 * lane : 2 * lane + 4], width=16)"),
        Case("T.load(A.permute(1, 0)[0:2, 0:8], width=4)",
             "T.load: tensor: a chunk must be contiguous, but the last axis of A has an unknown stride",
             "T.load(A.permute(1, 0)[0:2, 0:8], width=4)", frame=UNKNOWN),
        Case("T.load(A, width=2)",
             "T.load: tensor: an extent of A must be known while tracing, but it is computed on the device (the same "
             "for the whole grid)", "T.load(A, width=2)", frame=UNKNOWN),
        Case("T.store(Out[0:8], 1.0)",
             "T.store: value: expected a local tensor but got float 1.0", "T.store(Out[0:8], 1.0)"),
        Case("T.store(Out[0:8], Out[8:16])",
             "T.store: value: expected a local tensor, but Out is global", "T.store(Out[0:8], Out[8:16])"),
        Case("T.store(Out[0:8], half)",
             "T.store: value: expected a tile like Out of float32, shape (8,), but got half of float16, shape (8,)",
             "T.store(Out[0:8], half)"),
        Case("""
            turned = T.load(Out[0:8]).view(2, 4, layout=TileLayout(S[(2, 4) : (1, 2)]))
            T.store(Out[0:8].view(2, 4), turned)
            """,
             "T.store: value: expected this thread's elements in row-major order, but element 1 of turned lies 2 "
             "elements after its first", "T.store(Out[0:8].view(2, 4), turned)"),
        Case("""
            spread = T.alloc_local((32,), layout=TileLayout(S[32 : 1 @ laneid]))
            T.store(Out[0:32], spread)
            """,
             "T.store: value: expected this thread's elements in row-major order, but spread is spread over lanes "
             "(laneid)", "T.store(Out[0:32], spread)"),
        Case('T.store(Out.view("float16")[0:4], half[1:5], width=4)',
             "T.store: value: half begins at element 1 of its registers, which is within a word of 2 elements: "
             "expected a smaller width than 4 bytes", 'T.store(Out.view("float16")[0:4], half[1:5], width=4)'),
        Case("T.copy(tile, Out[0:32])",
             "T.copy: expected tiles of one type and shape but got tile of float32, shape (4, 8), and Out of "
             "float32, shape (32,)", "T.copy(tile, Out[0:32])"),
        Case("T.copy(tile, Out[0:32].view(4, 8), valid=4)",
             "T.copy: expected valid= to have an entry (None: all exist) for each axis of (4, 8)",
             "T.copy(tile, Out[0:32].view(4, 8), valid=4)"),
        Case("T.copy(tile, Out[0:32].view(4, 8), valid=(lane, 2 * lane), width=16)",
             "T.copy: valid[1]: expected a multiple of 4, the elements of a chunk, but got a limit known to be a "
             "multiple of 2 only; with width=4 a chunk is one element",
             "T.copy(tile, Out[0:32].view(4, 8), valid=(lane, 2 * lane), width=16)"),
        Case("""
            bytes = T.alloc_shared((4224,), "uint8")
            T.copy(bytes, bytes, scope="thread", width=1)
            """,
             "T.copy: expected at most 4096 chunks for a thread but got 4224 of 1 bytes: share the tile among more "
             "threads, or copy it part by part", 'T.copy(bytes, bytes, scope="thread", width=1)'),
    ),
    frame=FRAME,
)  # fmt: skip
