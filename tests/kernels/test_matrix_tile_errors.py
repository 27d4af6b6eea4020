"""What `ldmatrix` and `stmatrix` on (fragment, matrix) refuse, with the whole sentence; and that its advice helps."""

from __future__ import annotations

from refusals import MMA, ONE_WARP, refused

from warpjit import T
from warpjit.layout import ComposeLayout, S, TileLayout, laneid

LOAD4 = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
LOAD2 = "ldmatrix.sync.aligned.m8n8.x2.shared.b16"
LOAD4T = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
STORE4 = "stmatrix.sync.aligned.m8n8.x4.shared.b16"
STORE1 = "stmatrix.sync.aligned.m8n8.x1.shared.b16"
MMA8 = MMA.replace("k16", "k8")


def load(text, fragment, tile, scope=None):
    T.cuda.tile.apply(T.ptx[text], fragment, tile, scope=scope)


def store(text, tile, fragment):
    T.cuda.tile.apply(T.ptx[text], tile, fragment)


def messages(kernel) -> list[str]:
    return [message for message, _ in refused(kernel)]


def test_shapes_and_types_that_do_not_fit():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        a = T.cuda.fragments(T.ptx[MMA], "A", M=2)
        tile = T.alloc_shared((16, 32), "float16")
        load(LOAD4, a, tile)
        words = T.alloc_shared((32, 8), "uint32")
        octets = T.alloc_shared((32, 32), "uint8")
        load(LOAD4, a, words)
        load(LOAD4, a, octets)
        load(LOAD4, a, Out.view(8, 8))
        load(LOAD4, tile, tile)
        load(LOAD4, 1.0, tile)
        load(LOAD4, a, T.alloc_shared((32, 16), "float16"), scope="cta")
        batch = T.cuda.fragments(T.ptx[MMA], "A", batch=(2,))
        doubles = T.alloc_local((2,), "float64").view(8, 8, layout=DOUBLES)
        load(LOAD4, batch, tile)
        load(LOAD4, T.alloc_local((192,), "float16").view(12, 16), tile)
        load(LOAD4, doubles, tile)

    assert messages(kernel) == [
        f"{LOAD4}: the fragment a is a matrix of (32, 16) 16-bit elements, but tile has shape (16, 32)",
        f"{LOAD4}: operand src: expected a matrix of 16-bit elements, but words holds uint32",
        f"{LOAD4}: operand src: expected a matrix of 16-bit elements, but octets holds uint8",
        f"{LOAD4}: operand src: expected a shared tensor, but Out is global",
        f"{LOAD4}: operand d: expected a tensor in registers but got the tensor tile",
        f"{LOAD4}: operand d: expected a tensor in registers but got float 1.0",
        f"{LOAD4}: a matrix of two axes belongs to one warp: expected scope=\"warp\" but got 'cta'",
        f"{LOAD4}: expected a fragment of 4 axes (row repeats, column repeats, rows, columns) or a matrix of 2, but "
        "batch has shape (2, 1, 1, 16, 8): rearrange it",
        f"{LOAD4}: a fragment of 12 x 16 elements does not fall into blocks of 8 x 8",
        f"{LOAD4}: operand d: expected registers of 16-bit elements or of their 32-bit words, but "
        "doubles holds float64",
    ]


DOUBLES = TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)])


def test_numbers_of_blocks():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        two = T.cuda.fragments(T.ptx[MMA], "B")
        six = T.cuda.fragments(T.ptx[MMA], "B", N=3)
        three = T.cuda.fragments(T.ptx[MMA8], "B", N=3)
        crooked = T.alloc_local((12,), "uint32").view(24, 16, layout=CROOKED)
        load(LOAD4, two, T.alloc_shared((8, 16), "float16"))
        load(LOAD4, six, T.alloc_shared((24, 16), "float16"))
        load(LOAD4, three, T.alloc_shared((24, 8), "float16"))
        load(LOAD2, three, T.alloc_shared((24, 8), "float16"))
        load(LOAD4, crooked, T.alloc_shared((24, 32), "float16"))

    assert messages(kernel) == [
        f"{LOAD4}: it moves 4 blocks of 8 x 8 at a time, but two has 2: use a form with .x2",
        f"{LOAD4}: it moves 4 blocks of 8 x 8 at a time, but six has 6: use a form with .x2",
        f"{LOAD4}: it moves 4 blocks of 8 x 8 at a time, but three has 3: use a form with .x1",
        f"{LOAD2}: it moves 2 blocks of 8 x 8 at a time, but three has 3: use a form with .x1",
        f"{LOAD4}: the blocks of one issue, ((0, 0), (1, 0), (2, 0), (0, 1)), do not form a box of twice 2: use the "
        "form with .x2",
    ]


CROOKED = TileLayout(S[(3, 8, 4, 4) : (1, 4 @ laneid, 3, 1 @ laneid)])


def test_registers_that_hold_something_else():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        tile = T.alloc_shared((16, 16), "float16")
        sums = T.cuda.fragments(T.ptx[MMA], "D", fill=0.0)
        own = T.alloc_local((256,), "float16").view(16, 16)
        shifted = T.alloc_local((9,), "float16")[1:9].view(16, 16, layout=HALVES)
        twice = T.alloc_local((2,), "uint32").view(16, 8, layout=TWICE)
        store(STORE4, tile, sums)
        load(LOAD4, own, tile)
        load(LOAD4, shifted, tile)
        load(LOAD4, twice, tile)

    assert messages(kernel) == [
        f"{STORE4}: element (0, 2) of sums is in lane 0, half 0 of register 1, but the instruction moves it to lane 1, "
        "half 0",
        f"{LOAD4}: element (0, 2) of own is in lane 0, half 0 of register 1, but the instruction moves it to lane 1, "
        "half 0",
        f"{LOAD4}: element (0, 0) of shifted is in lane 0, half 1 of register 0, but the instruction moves it to lane "
        "0, half 0",
        f"{LOAD4}: register 0 of twice would be written twice: two blocks of 8 x 8 share it",
    ]


HALVES = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)])
TWICE = TileLayout(S[(2, 8, 2, 4) : (0, 4 @ laneid, 1, 1 @ laneid)])


def test_the_transpose():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        tile = T.alloc_shared((16, 16), "float16")
        held = T.cuda.fragments(T.ptx[MMA], "A", fill=0).view("float16").permute(1, 0, 3, 2)
        flat = T.cuda.fragments(T.ptx[MMA], "A", fill=0).view("float16").rearrange("i j r c -> (j c) (i r)")
        load(LOAD4, held, tile)
        load(LOAD4T, flat, tile)

    text = (
        "is in lane 4, half 0 of register 0, but the instruction moves it to lane 0, half 1; it holds the transpose: "
    )
    assert messages(kernel) == [
        f"{LOAD4}: element (0, 1) of held {text}permute(1, 0, 3, 2) held, permute(1, 0) the tile, and use the form "
        "with .trans",
        f"{LOAD4T}: element (0, 1) of flat {text}permute(1, 0) both, and use the form without .trans",
    ]


def test_rows_that_lie_the_other_way():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        a = T.cuda.fragments(T.ptx[MMA], "A", fill=0)
        tile = T.alloc_shared((16, 16), "float16")
        load(LOAD4, a, tile.permute(1, 0))
        load(LOAD4T, a, tile)
        store(STORE4, tile.permute(1, 0), a)
        apart = T.alloc_shared((16, 16), "float16", layout=TileLayout(S[(16, 16) : (32, 2)]))
        load(LOAD4, a, apart)

    text = "the 16 bytes of a row must be contiguous, but element"
    other = "tile is contiguous the other way: use the form"
    assert messages(kernel) == [
        f"{LOAD4}: operand src: {text} (0, 1) is 16 elements after (0, 0) instead of 1; {other} with .trans",
        f"{LOAD4T}: operand src: {text} (1, 0) is 16 elements after (0, 0) instead of 1; {other} without .trans",
        f"{STORE4}: operand dst: {text} (0, 1) is 16 elements after (0, 0) instead of 1; {other} with .trans",
        f"{LOAD4}: operand src: {text} (0, 1) is 2 elements after (0, 0) instead of 1",
    ]


def test_the_advice_about_trans_helps():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        a = T.cuda.fragments(T.ptx[MMA], "A", fill=0)
        tile = T.alloc_shared((16, 16), "float16")
        load(LOAD4T, a, tile.permute(1, 0))
        load(LOAD4, a, tile)
        load(LOAD4, a, 0.0)

    assert len(messages(kernel)) == 1


def test_starts_that_are_not_aligned():
    def kernel(Out, start: T.int32):
        T.device_entry(launch=ONE_WARP)
        a = T.cuda.fragments(T.ptx[MMA], "A", fill=0)
        tile = T.alloc_shared((16, 64), "float16")
        swizzled = T.alloc_shared((16, 64), "float16", layout=T.cuda.layout.mma_shared_layout("float16", 128, (16, 64)))
        narrow = T.alloc_shared((16, 16), "float16", layout=ComposeLayout(2, 1, 3, TileLayout(S[(16, 16)])))
        load(LOAD4, a, tile[:, 4:20])
        load(LOAD4, a, tile[:, start : start + 16])
        load(LOAD4, a, swizzled[:, 4 * start : 4 * start + 16])
        load(LOAD4, a, T.alloc_shared((16, 20), "float16")[:, 0:16])
        load(LOAD4, a, narrow)
        load(LOAD4, a, swizzled[:, 8 * start : 8 * start + 16])

    known = "the address of the tile is known to be a multiple of {} bytes only, but must be one of 16: give the "
    known += "allocation align=16, or start the slice at a multiple of it"
    rows = "every row must start at a multiple of 16 bytes, but the row at"
    assert messages(kernel) == [
        f"{LOAD4}: operand src: {rows} (0, 0) starts 8 bytes after the origin",
        f"{LOAD4}: operand src: {known.format(2)}",
        f"{LOAD4}: operand src: {known.format(8)}",
        f"{LOAD4}: operand src: {rows} (1, 0) starts 40 bytes after the origin",
        f"{LOAD4}: operand src: the 8 elements of a row must be contiguous, but the swizzle of narrow keeps only 4 "
        "together",
    ]


def test_rows_that_are_written_twice():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        a = T.cuda.fragments(T.ptx[MMA], "A", fill=0)
        store(STORE4, T.alloc_shared((16, 16), "float16", layout=TileLayout(S[(16, 16) : (0, 1)])), a)
        store(STORE1, T.alloc_shared((16, 16), "float16", layout=TileLayout(S[(16, 16) : (0, 1)])), a)

    assert messages(kernel) == [
        f"{STORE4}: operand dst: rows 0 and 1 of issue 0 are both written at byte 0",
        f"{STORE1}: operand dst: rows 0 and 1 of issue 0 are both written at byte 0",
    ]
