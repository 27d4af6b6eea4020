"""`ldmatrix` and `stmatrix` between fragments and matrices in shared memory."""

from catalogue import Case, Topic

FRAME = """\
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
STORE = "stmatrix.sync.aligned.m8n8.x4.shared.b16"

@warpjit
def kernel(Out: T.Tensor((64,), "float16"), n: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    mma, load, store, apply = T.ptx[MMA], T.ptx[LOAD], T.ptx[STORE], T.cuda.tile.apply
    a, b = T.cuda.fragments(mma, "A", fill=0), T.cuda.fragments(mma, "B", fill=0)
    tile = T.alloc_shared((16, 16), "float16")
    ...

kernel(torch.zeros(64).half(), 5)
"""

TOPIC = Topic(
    "Instructions",
    "Matrices of 8 x 8 blocks",
    (
        Case('apply(load, a, T.alloc_shared((16, 32), "float16"))',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: the fragment A is a matrix of (16, 16) 16-bit elements, but "
             "shared has shape (16, 32)", 'apply(load, a, T.alloc_shared((16, 32), "float16"))'),
        Case('apply(load, a, T.alloc_shared((16, 8), "uint32"))',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: expected a matrix of 16-bit elements, but "
             "shared holds uint32", 'apply(load, a, T.alloc_shared((16, 8), "uint32"))'),
        Case("apply(load, a, Out.view(8, 8))",
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: expected a shared tensor, but Out is global",
             "apply(load, a, Out.view(8, 8))"),
        Case("apply(load, 1.0, tile)",
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand d: expected a tensor in registers but got float 1.0",
             "apply(load, 1.0, tile)"),
        Case('apply(load, a, tile, scope="cta")',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: a matrix of two axes belongs to one warp: expected "
             "scope=\"warp\" but got 'cta'", 'apply(load, a, tile, scope="cta")'),
        Case('apply(load, T.alloc_local((192,), "float16").view(12, 16), tile)',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: a fragment of 12 x 16 elements does not fall into blocks of "
             "8 x 8", 'apply(load, T.alloc_local((192,), "float16").view(12, 16), tile)'),
        Case("""
            pairs = TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)])
            apply(load, T.alloc_local((2,), "float64").view(8, 8, layout=pairs), tile)
            """,
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand d: expected registers of 16-bit elements or of their "
             "32-bit words, but local holds float64",
             'apply(load, T.alloc_local((2,), "float64").view(8, 8, layout=pairs), tile)'),
        Case('apply(load, b, T.alloc_shared((8, 16), "float16"))',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: it moves 4 blocks of 8 x 8 at a time, but B has 2: use a "
             "form with .x2", 'apply(load, b, T.alloc_shared((8, 16), "float16"))'),
        Case("""
            crooked = TileLayout(S[(3, 8, 4, 4) : (1, 4 @ laneid, 3, 1 @ laneid)])
            words = T.alloc_local((12,), "uint32").view(24, 16, layout=crooked)
            apply(load, words, T.alloc_shared((24, 32), "float16"))
            """,
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: the blocks of one issue, ((0, 0), (1, 0), (2, 0), (0, 1)), "
             "do not form a box of twice 2: use the form with .x2",
             'apply(load, words, T.alloc_shared((24, 32), "float16"))'),
        Case('apply(store, tile, T.cuda.fragments(mma, "D", fill=0.0))',
             "stmatrix.sync.aligned.m8n8.x4.shared.b16: element (0, 2) of D is in lane 0, half 0 of register 1, but "
             "the instruction moves it to lane 1, half 0", 'apply(store, tile, T.cuda.fragments(mma, "D", fill=0.0))'),
        Case('apply(load, a.view("float16").permute(1, 0, 3, 2), tile)',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: element (0, 1) of A is in lane 4, half 0 of register 0, but "
             "the instruction moves it to lane 0, half 1; it holds the transpose: permute(1, 0, 3, 2) A, permute(1, "
             "0) the tile, and use the form with .trans", 'apply(load, a.view("float16").permute(1, 0, 3, 2), tile)'),
        Case("""
            twice = TileLayout(S[(2, 8, 2, 4) : (0, 4 @ laneid, 1, 1 @ laneid)])
            apply(load, T.alloc_local((2,), "uint32").view(16, 8, layout=twice), tile)
            """,
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: register 0 of local would be written twice: two blocks of 8 "
             "x 8 share it", 'apply(load, T.alloc_local((2,), "uint32").view(16, 8, layout=twice), tile)'),
        Case("apply(load, a, tile.permute(1, 0))",
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: the 16 bytes of a row must be contiguous, but "
             "element (0, 1) is 16 elements after (0, 0) instead of 1; tile is contiguous the other way: use the "
             "form with .trans", "apply(load, a, tile.permute(1, 0))"),
        Case('apply(load, a, T.alloc_shared((16, 64), "float16")[:, 4:20])',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: every row must start at a multiple of 16 bytes, "
             "but the row at (0, 0) starts 8 bytes after the origin",
             'apply(load, a, T.alloc_shared((16, 64), "float16")[:, 4:20])'),
        Case('apply(load, a, T.alloc_shared((16, 64), "float16")[:, n : n + 16])',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: the address of the tile is known to be a "
             "multiple of 2 bytes only, but must be one of 16: give the allocation align=16, or start the slice at a "
             "multiple of it", 'apply(load, a, T.alloc_shared((16, 64), "float16")[:, n : n + 16])'),
        Case("""
            narrow = ComposeLayout(2, 1, 3, TileLayout(S[(16, 16)]))
            apply(load, a, T.alloc_shared((16, 16), "float16", layout=narrow))
            """,
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: the 8 elements of a row must be contiguous, but "
             "the swizzle of shared keeps only 4 together",
             'apply(load, a, T.alloc_shared((16, 16), "float16", layout=narrow))'),
        Case('apply(store, T.alloc_shared((16, 16), "float16", layout=TileLayout(S[(16, 16) : (0, 1)])), a)',
             "stmatrix.sync.aligned.m8n8.x4.shared.b16: operand dst: rows 0 and 1 of issue 0 are both written at "
             "byte 0", 'apply(store, T.alloc_shared((16, 16), "float16", layout=TileLayout(S[(16, 16) : (0, 1)])), a)'),
    ),
    frame=FRAME,
)  # fmt: skip
