"""Instructions on fragments and tiles: `T.cuda.tile.apply`."""

from catalogue import Case, Topic

FRAME = """\
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
STORE = "stmatrix.sync.aligned.m8n8.x4.shared.b16"
ROWS = TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])

@warpjit
def kernel(Out: T.Tensor((64,), "float32"), n: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    mma, load, store, apply = T.ptx[MMA], T.ptx[LOAD], T.ptx[STORE], T.cuda.tile.apply
    d, a, b = T.cuda.fragments(mma, "D"), T.cuda.fragments(mma, "A", fill=0), T.cuda.fragments(mma, "B", fill=0)
    words = T.alloc_local((4,), "uint32").view(4, 8, 4, layout=ROWS)
    tile = T.alloc_shared((4, 8, 4), "uint32")
    ...

kernel(torch.zeros(64), 5)
"""
BLOCK = """\
@warpjit
def kernel(Out: T.Tensor((64,), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=48))
    mma = T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"]
    d, a, b = T.cuda.fragments(mma, "D"), T.cuda.fragments(mma, "A"), T.cuda.fragments(mma, "B")
    ...

kernel(torch.zeros(64))
"""
UNKNOWN = """\
@warpjit
def kernel(Out: T.Tensor((T.dynamic("M"), 8, 4), "uint32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    ...

kernel(torch.zeros(4, 8, 4, dtype=torch.uint32))
"""

TOPIC = Topic(
    "Instructions",
    "Instructions on tiles",
    (
        Case("apply(3, d, a, b, d)",
             'T.cuda.tile.apply: expected an instruction, T.ptx["..."], but got int 3', "apply(3, d, a, b, d)"),
        Case('apply(T.ptx["bar.sync"], d)',
             'bar.sync has no tile form: call it, T.ptx["bar.sync"](...), with scalars and pointers',
             'apply(T.ptx["bar.sync"], d)'),
        Case("apply(mma, d, a, b)",
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: expected 4 operands (D, A, B, C) but got 3",
             "apply(mma, d, a, b)"),
        Case("apply(mma, d, a, b, 0.0, pred=n > 3)",
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 takes no pred=: all 32 lanes execute it together",
             "apply(mma, d, a, b, 0.0, pred=n > 3)"),
        Case("apply(mma, d, a, 1.0, d)",
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand B: expected a tensor but got float 1.0",
             "apply(mma, d, a, 1.0, d)"),
        Case("apply(mma, d, a, b, 0)",
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand C: expected float32 but got the int 0: "
             "write 0.0 or T.float32(0)", "apply(mma, d, a, b, 0)"),
        Case("apply(mma, d, a, b, T.int32(1))",
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand C: expected float32 but got a scalar of "
             "type int32", "apply(mma, d, a, b, T.int32(1))"),
        Case("apply(mma, d, a, b, None)",
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand C: expected a tensor or a number but got "
             "None", "apply(mma, d, a, b, None)"),
        Case('apply(mma, d, a, b, 0.0, scope="thread")',
             'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: all 32 lanes must be active: expected scope="warp", '
             '"warpgroup" or "cta" but got "thread"', 'apply(mma, d, a, b, 0.0, scope="thread")'),
        Case('apply(mma, d, a, b, 0.0, scope="grid")',
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 is executed by a whole warp: expected scope 'warp' "
             "or 'warpgroup' or 'cta' but got 'grid'", 'apply(mma, d, a, b, 0.0, scope="grid")'),
        Case('apply(mma, d, a, b, 0.0, scope="warpgroup")',
             'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: scope "warpgroup" needs a block of whole warpgroups '
             "(128 threads), but it has 32", 'apply(mma, d, a, b, 0.0, scope="warpgroup")'),
        Case("T.cuda.tile.apply(mma, d, a, b, 0.0)",
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: all 32 lanes must be active, but the block's 48 "
             "threads leave the last warp partly empty", "T.cuda.tile.apply(mma, d, a, b, 0.0)", frame=BLOCK),
        Case("apply(mma, tile, a, b, 0.0)",
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand D: expected a local tensor (registers), but "
             "tile is in shared memory", "apply(mma, tile, a, b, 0.0)"),
        Case("""
            wide = T.alloc_local((4,), "float64").view(1, 1, 16, 8, layout=d.layout)
            apply(mma, wide, a, b, 0.0)
            """,
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand D: expected 32-bit registers, but wide has "
             "64-bit ones", "apply(mma, wide, a, b, 0.0)"),
        Case("apply(store, Out, words)",
             "stmatrix.sync.aligned.m8n8.x4.shared.b16: operand dst: expected a shared tensor, but Out is global",
             "apply(store, Out, words)"),
        Case('apply(load, words, T.alloc_shared((2, 8, 4), "uint32"), scope="cta")',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand d: expected a view of shape (1, *batch, 4, 8, 4), "
             "but got (4, 8, 4)", 'apply(load, words, T.alloc_shared((2, 8, 4), "uint32"), scope="cta")'),
        Case('apply(load, words, T.alloc_shared((2, 4, 8, 4), "uint32"), scope="cta")',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand d: expected a view of shape (1, *batch, 4, 8, 4), "
             "but got (4, 8, 4)", 'apply(load, words, T.alloc_shared((2, 4, 8, 4), "uint32"), scope="cta")'),
        Case("apply(mma, d, b, a, 0.0)",
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand A: expected a view of shape (*batch, M, K, "
             "16, 8), but got (1, 1, 8, 8)", "apply(mma, d, b, a, 0.0)"),
        Case('apply(load, words, T.alloc_shared((2, 8, 4), "uint32"))',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: expected a tile of shape (*batch, 4, 8, 4), but "
             "got (2, 8, 4)", 'apply(load, words, T.alloc_shared((2, 8, 4), "uint32"))'),
        Case('apply(mma, T.cuda.fragments(mma, "D", M=2), a, b, 0.0)',
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: repeat shapes must agree, but operand D has M=2 and "
             "operand A has M=1", 'apply(mma, T.cuda.fragments(mma, "D", M=2), a, b, 0.0)'),
        Case('apply(mma, T.cuda.fragments(mma, "D", batch=(3,)), a, b, 0.0)',
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: repeat shapes must agree, but operand D has batch "
             "axes (3,) and operand A has ()", 'apply(mma, T.cuda.fragments(mma, "D", batch=(3,)), a, b, 0.0)'),
        Case("""
            other = TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 1 @ laneid, 2, 8 @ laneid)])
            apply(mma, d, T.alloc_local((4,), "uint32").view(1, 1, 16, 8, layout=other), b, 0.0)
            """,
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand A: element (0, 0, 0, 1) is in lane 8, "
             "register 0 of the view, but the instruction reads it in lane 1, register 0. The instruction's own "
             "layout for shape (1, 1, 16, 8) is TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ laneid, 2, 1 @ "
             "laneid)])", 'apply(mma, d, T.alloc_local((4,), "uint32").view(1, 1, 16, 8, layout=other), b, 0.0)'),
        Case("""
            other = TileLayout(S[(1, 1, 2, 8, 2, 4, 2) : (8, 8, 1, 4 @ laneid, 4, 1 @ laneid, 2)])
            apply(mma, d, T.alloc_local((8,), "float16").view(1, 1, 16, 16, layout=other), b, 0.0)
            """,
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand A: element (0, 0, 0, 1) is element 2 of its "
             "lane's registers, so number 0 within its register, but the instruction wants it as number 1. Every "
             "element is in its lane, so that its registers can be put together (t.convert): register 0 is part 0 of "
             "0, part 0 of 1; register 1 is part 1 of 0, part 1 of 1; and 2 more. The instruction's own layout for "
             "shape (1, 1, 16, 16) is TileLayout(S[(1, 1, 2, 8, 2, 4, 2) : (8, 8, 2, 4 @ laneid, 4, 1 @ laneid, 1)])",
             'apply(mma, d, T.alloc_local((8,), "float16").view(1, 1, 16, 16, layout=other), b, 0.0)'),
        Case("""
            copies = TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)] + R[2:4])
            apply(load, T.alloc_local((8,), "uint32").view(4, 8, 4, layout=copies), tile)
            """,
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand d: the layout TileLayout(S[(4, 8, 4) : (1, 4 @ "
             "laneid, 1 @ laneid)] + R[2 : 4]) has replicas: each element must have one owner",
             'apply(load, T.alloc_local((8,), "uint32").view(4, 8, 4, layout=copies), tile)'),
        Case("""
            warps = TileLayout(S[(4, 8, 4) : (1 @ warpid, 4 @ laneid, 1 @ laneid)])
            apply(load, T.alloc_local((4,), "uint32").view(4, 8, 4, layout=warps), tile)
            """,
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand d: element (1, 0, 0) is in warp 1 of the view, but "
             "belongs to warp 0 (a single warp executes the instruction). The instruction's own layout for shape (4, "
             "8, 4) is TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])",
             'apply(load, T.alloc_local((4,), "uint32").view(4, 8, 4, layout=warps), tile)'),
        Case("""
            twice = TileLayout(S[(2, 1, 2, 8, 4, 2) : (2, 4, 2, 4 @ laneid, 1 @ laneid, 1)])
            sums = T.alloc_local((6,), "float32").view(2, 1, 16, 8, layout=twice)
            apply(mma, sums, T.cuda.fragments(mma, "A", M=2, fill=0), b, 0.0)
            """,
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand D: register 2 would be written twice: as "
             "register 2 of issue 0 and as register 0 of issue 1. The instruction's own layout for shape (2, 1, 16, "
             "8) is TileLayout(S[(2, 1, 2, 8, 4, 2) : (4, 4, 2, 4 @ laneid, 1 @ laneid, 1)])",
             'apply(mma, sums, T.cuda.fragments(mma, "A", M=2, fill=0), b, 0.0)'),
        Case('apply(load, words, T.alloc_shared((4, 8, 4), "uint32", align=4))',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: the address of the tile is known to be a "
             "multiple of 4 bytes only, but must be one of 16: give the allocation align=16, or start the slice at a "
             "multiple of it", 'apply(load, words, T.alloc_shared((4, 8, 4), "uint32", align=4))'),
        Case('apply(load, words, T.alloc_shared((4, 8, 4), "uint32", layout=TileLayout(S[(4, 8, 4) : (40, 5, 1)])))',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: every row must start at a multiple of 16 bytes, "
             "but the row at (0, 1, 0) starts 20 bytes after the origin",
             'apply(load, words, T.alloc_shared((4, 8, 4), "uint32", layout=TileLayout(S[(4, 8, 4) : (40, 5, 1)])))'),
        Case('apply(load, words, T.alloc_shared((4, 8, 4), "uint32", layout=TileLayout(S[(4, 8, 4) : (64, 8, 2)])))',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: the 16 bytes of a row must be contiguous, but "
             "element (0, 0, 1) is 2 elements after (0, 0, 0) instead of 1",
             'apply(load, words, T.alloc_shared((4, 8, 4), "uint32", layout=TileLayout(S[(4, 8, 4) : (64, 8, 2)])))'),
        Case('apply(store, T.alloc_shared((4, 8, 4), "uint32", layout=TileLayout(S[(4, 8, 4) : (0, 4, 1)])), words)',
             "stmatrix.sync.aligned.m8n8.x4.shared.b16: operand dst: rows 0 and 8 of issue 0 are both written at "
             "byte 0",
             'apply(store, T.alloc_shared((4, 8, 4), "uint32", layout=TileLayout(S[(4, 8, 4) : (0, 4, 1)])), words)'),
        Case("""
            copies = TileLayout(S[(4, 8, 4) : (32, 4, 1)] + R[2:128])
            apply(load, words, T.alloc_shared((4, 8, 4), "uint32", layout=copies))
            """,
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: a tile in memory has neither owners nor "
             "replicas, but the layout is TileLayout(S[(4, 8, 4) : (32, 4, 1)] + R[2 : 128])",
             'apply(load, words, T.alloc_shared((4, 8, 4), "uint32", layout=copies))'),
        Case('apply(load, words, T.alloc_shared((4, 8, 4), "float64"))',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: a tile of 64-bit elements does not fill 32-bit "
             "words", 'apply(load, words, T.alloc_shared((4, 8, 4), "float64"))'),
        Case('T.cuda.fragments(3, "A")',
             'T.cuda.fragments: expected an instruction, T.ptx["..."], but got int 3', 'T.cuda.fragments(3, "A")'),
        Case('T.cuda.fragments(mma, "E")',
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 has no operand 'E'; its operands are D, A, B, C",
             'T.cuda.fragments(mma, "E")'),
        Case('T.cuda.fragments(load, "src")',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src is of kind address, not a fragment",
             'T.cuda.fragments(load, "src")'),
        Case('T.cuda.fragments(mma, "A", M=0)',
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand A: repeats are at least 1, but got M=0, "
             "K=1, batch=()", 'T.cuda.fragments(mma, "A", M=0)'),
        Case('T.cuda.fragments(mma, "A", batch=2)',
             "T.cuda.fragments: expected batch to be a tuple but got int 2", 'T.cuda.fragments(mma, "A", batch=2)'),
        Case('T.cuda.fragments(mma, "A", fill="text")',
             "T.cuda.fragments: expected fill to be a number but got str 'text'",
             'T.cuda.fragments(mma, "A", fill="text")'),
        Case('T.cuda.fragments(mma, "A", dtype="float64")',
             'T.cuda.fragments: dtype: expected a type of 32 bits, or "element" (float16) for operand A of '
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32, but got float64",
             'T.cuda.fragments(mma, "A", dtype="float64")'),
        Case("a.regs[0] = Out[0]",
             "A: expected a word (uint32) of 2 float16, since the fragment's type was not named, but got a scalar of "
             'type float32, which would be converted to uint32: make it with dtype="float16" to store elements, or '
             "store the word's bits, T.reinterpret(T.float16x2(x, y), T.uint32)", "a.regs[0] = Out[0]"),
        Case("a.fill(1.0)",
             "A: expected a word (uint32) of 2 float16, since the fragment's type was not named, but got float 1.0, "
             'which would be converted to uint32: make it with dtype="float16" to store elements, or store the '
             "word's bits, T.reinterpret(T.float16x2(x, y), T.uint32)", "a.fill(1.0)"),
        Case("""
            f = T.cuda.fragments("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "A")
            f.regs[0] = Out[0]
            """,
             "f: expected a word (uint32) of one tf32, since the fragment's type was not named, but got a scalar of "
             'type float32, which would be converted to uint32: make it with dtype="float32" to store elements, or '
             "store the word's bits, T.reinterpret(x, T.uint32)", "f.regs[0] = Out[0]"),
        Case('T.cuda.fragments("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "E").regs[0] = Out[0]',
             "E: expected a word (uint32) of operand E, since the fragment's type was not named, but got a scalar of "
             "type float32, which would be converted to uint32: store an integer, T.cast(x, T.uint32)",
             'T.cuda.fragments("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "E").regs[0] = Out[0]'),
        Case('a.cast("float32")',
             "cast: expected numbers, but each register of A, a fragment whose type was not named, is a word (uint32) "
             'of 2 float16: view it first, .view("float16")', 'a.cast("float32")'),
        Case('T.cuda.fragments("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32", "A", fill=n)',
             "expected a number known while tracing but got int32: int4 is less than a byte",
             'T.cuda.fragments("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32", "A", fill=n)'),
        Case('T.cuda.convert(3, mma, "A")',
             "T.cuda.convert: expected a fragment but got int 3", 'T.cuda.convert(3, mma, "A")'),
        Case("T.cuda.has(3)", 'T.cuda.has: expected an instruction, T.ptx["..."], but got int 3', "T.cuda.has(3)"),
        Case('d.as_operand(3, "A")',
             'as_operand: expected an instruction, T.ptx["..."], but got int 3', 'd.as_operand(3, "A")'),
        Case('d.as_operand(mma, "A")',
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand A: element (0, 0, 0, 1) is in lane 0, "
             "register 1 of the view, but the instruction reads it in lane 1, register 0. With k permuted it fits: "
             "let k = 0, 1, 2, … of the instruction be k = 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15 of A "
             "and of B alike; its layout is then TileLayout(S[(2, 8, 2, 4) : (2, 4 @ laneid, 1, 1 @ laneid)]). The "
             "instruction's own layout for shape (1, 1, 16, 8) is TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ "
             "laneid, 2, 1 @ laneid)])", 'd.as_operand(mma, "A")'),
        Case("""
            layout = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
            T.alloc_local((4,), "float64").view(16, 8, layout=layout).as_operand(mma, "D")
            """,
             "as_operand: operand D of mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: expected float32, but "
             "local holds float64", 'T.alloc_local((4,), "float64").view(16, 8, layout=layout).as_operand(mma, "D")'),
        Case('d.view("uint32").as_operand(mma, "A")',
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand A: element (0, 0, 0, 1) is in lane 0, "
             "register 1 of the view, but the instruction reads it in lane 1, register 0. With k permuted it fits: "
             "let k = 0, 1, 2, … of the instruction be k = 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15 of A "
             "and of B alike; its layout is then TileLayout(S[(2, 8, 2, 4) : (2, 4 @ laneid, 1, 1 @ laneid)]). The "
             "instruction's own layout for shape (1, 1, 16, 8) is TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ "
             "laneid, 2, 1 @ laneid)])", 'd.view("uint32").as_operand(mma, "A")'),
        Case('d.cast("float16").as_operand(mma, "A")',
             "as_operand: operand A of mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: expected a multiple of 16 "
             "columns, but D_1 has 8", 'd.cast("float16").as_operand(mma, "A")'),
        Case('T.alloc_local((8,), "float16").view(2, 2, 2).as_operand(mma, "A")',
             "as_operand: expected a fragment of 4 axes (row repeats, column repeats, rows, columns) or a matrix of "
             "2, but local has shape (2, 2, 2): rearrange it",
             'T.alloc_local((8,), "float16").view(2, 2, 2).as_operand(mma, "A")'),
        Case("Out.regs", "regs: expected a tensor in registers, but Out is in global memory", "Out.regs"),
        Case("T.alloc_local((4,), layout=TileLayout(S[(2, 2) : (1, 1)])).regs",
             "regs: expected each register of local to hold one element, and its strides to nest, but its layout is "
             "TileLayout(S[(2, 2) : (1, 1)])", "T.alloc_local((4,), layout=TileLayout(S[(2, 2) : (1, 1)])).regs"),
        Case("""
            for row, column, value in T.alloc_local((4, 16), layout=TileLayout(S[(4, 16) : (1, 1 @ laneid)])).each():
                pass
            """,
             "each: expected every lane and register to hold one element, but the layout of local is "
             "TileLayout(S[(4, 16) : (1, 1 @ laneid)])",
             "T.alloc_local((4, 16), layout=TileLayout(S[(4, 16) : (1, 1 @ laneid)])).each()"),
        Case("d.convert(3)", "convert: expected a layout of lanes and registers but got int 3", "d.convert(3)"),
        Case("d.convert(TileLayout(S[64]))",
             "convert: expected a layout of 128 elements, as D of shape (1, 1, 16, 8), but got TileLayout(S[64 : 1]) "
             "of 64", "d.convert(TileLayout(S[64]))"),
        Case("T.alloc_local((2, 32), layout=TileLayout(S[(2, 32) : (1 @ layout.bx, 1 @ laneid)])).regs",
             "TileLayout(S[(2, 32) : (1 @ bx, 1 @ laneid)]): laneid counts threads in a warp and bx counts CTAs in a "
             "kernel: no axis connects the warp to the cta",
             "T.alloc_local((2, 32), layout=TileLayout(S[(2, 32) : (1 @ layout.bx, 1 @ laneid)]))"),
        Case("d.convert(TileLayout(S[(2, 2, 32) : (1 @ warpid, 1, 1 @ laneid)]))",
             "convert: D: elements leave their warp: store them to 512 bytes of shared memory, and load them after a "
             "barrier: give a shared tensor as scratch",
             "d.convert(TileLayout(S[(2, 2, 32) : (1 @ warpid, 1, 1 @ laneid)]))"),
        Case("d.convert(TileLayout(S[(4, 32) : (1, 1 @ laneid)] + R[2:4]))",
             "convert: expected lanes, registers and warps, once each, but the layout is TileLayout(S[(4, 32) : (1, "
             "1 @ laneid)] + R[2 : 4])", "d.convert(TileLayout(S[(4, 32) : (1, 1 @ laneid)] + R[2:4]))"),
        Case("d.convert(TileLayout(S[(4, 16, 2) : (1, 1 @ laneid, 4)]))",
             "convert: expected one element in every lane and place of TileLayout(S[(4, 16, 2) : (1, 1 @ laneid, "
             "4)]), but lane 16, place 0 holds none", "d.convert(TileLayout(S[(4, 16, 2) : (1, 1 @ laneid, 4)]))"),
        Case("""
            layout = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
            T.alloc_local((4,), "float64").view("float32").view(16, 8, layout=layout).as_operand(mma, "D")
            """,
             "as_operand: operand D of mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: expected 32-bit registers, "
             "but local has 64-bit ones",
             'T.alloc_local((4,), "float64").view("float32").view(16, 8, layout=layout).as_operand(mma, "D")'),
        Case('apply(load, words.view(1, 4, 8, 4), tile, scope="cta")',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: scope 'cta' needs a leading axis of 1 warps, "
             "but tile has shape (4, 8, 4)", 'apply(load, words.view(1, 4, 8, 4), tile, scope="cta")'),
        Case("""
            turned = T.alloc_shared((4, 8, 8), "float16").permute(0, 2, 1)
            pairs = TileLayout(S[(4, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
            apply(load, T.alloc_local((8,), "float16").view(4, 8, 8, layout=pairs), turned)
            """,
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src: the 16 bytes of a row must be contiguous, but "
             "element (0, 0, 1) is 8 elements after (0, 0, 0) instead of 1; the tile is contiguous the other way: "
             "exchange its last two axes, and use ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
             'apply(load, T.alloc_local((8,), "float16").view(4, 8, 8, layout=pairs), turned)'),
    ),
    frame=FRAME,
)  # fmt: skip
