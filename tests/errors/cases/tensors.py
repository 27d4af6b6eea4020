"""Elements, slices and views of tensors."""

from catalogue import Case, Topic

TOPIC = Topic(
    "The language",
    "Elements and slices",
    (
        Case("A[0]", "A: expected 2 indices, one for each axis of shape (8, 8), but got 1", "A[0]"),
        Case("A[0, 0, 0] = 1.0",
             "A: expected 2 indices, one for each axis of shape (8, 8), but got 3", "A[0, 0, 0] = 1.0"),
        Case("A[0, 1.5] = 1.0", "index 1 of A: expected an int but got float 1.5", "A[0, 1.5] = 1.0"),
        Case("A[n * 1.5, 0] = 1.0",
             "index 0 of A: expected an integer but got a scalar of type float32", "A[n * 1.5, 0] = 1.0"),
        Case("A[-1, 0] = 1.0",
             "index 0 of A: expected 0 or more, for indices count from the start, but got -1", "A[-1, 0] = 1.0"),
        Case("A[8, 0] = 1.0", "index 0 of A: expected one within shape (8, 8) but got 8", "A[8, 0] = 1.0"),
        Case("A[T.cuda.lane_id() + 8, 0] = 1.0",
             "index 0 of A: expected one within shape (8, 8) but got 8 to 39", "A[T.cuda.lane_id() + 8, 0] = 1.0"),
        Case("A[..., 0] = 1.0", "index 0 of A: expected an int but got ellipsis", "A[..., 0] = 1.0"),
        Case('A[0, 0] = "text"', "expected a number to store in A but got str 'text'", 'A[0, 0] = "text"'),
        Case("A[0, 0:4] = 1.0",
             "a slice of A cannot be assigned: store element by element, or use an instruction", "A[0, 0:4] = 1.0"),
        Case("A.sub[0, 0, 0]",
             "A: expected at most 2 indices, one for each axis of shape (8, 8), but got 3", "A.sub[0, 0, 0]"),
        Case("a = A[0:4, 0:4, 0:4]",
             "A: expected at most 2 indices, one for each axis of shape (8, 8), but got 3", "A[0:4, 0:4, 0:4]"),
        Case("a = A[0:8:2, :]", "A: expected a slice without a step: split the axis with rearrange", "A[0:8:2, :]"),
        Case("a = A[4:4, :]", "A: expected a slice of at least one element of axis 0 but got 0", "A[4:4, :]"),
        Case("a = A[4:12, :]",
             "the slice of axis 0 of A: expected it within shape (8, 8) but got 8 elements from 4", "A[4:12, :]"),
        Case("a = A[0:n, :]",
             "the slice of axis 0 of A: expected a length known while tracing (stop = start + a constant)",
             "A[0:n, :]"),
        Case("a = A[n * 1.5 :, :]",
             "index 0 of A: expected an integer but got a scalar of type float32", "A[n * 1.5 :, :]"),
        Case("""
            x = T.alloc_local((8,))
            a = x[n : n + 2]
            """,
             "the start of a slice of x, which is in registers, must be known while tracing, but it is computed on "
             "the device (the same for the whole grid)", "x[n : n + 2]"),
        Case("""
            x = T.alloc_local((8, 4), layout=TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)]))
            a = x.sub[0, 0]
            a[()]
            """,
             "x is spread over lanes (laneid): an element of it is not one of this thread's registers. Index the "
             "local tensor that it is a view of", "a[()]"),
        Case("""
            x = T.alloc_local((8, 4), layout=TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)]))
            x[0, 0] = 1.0
            """,
             "x is spread over lanes (laneid): an element of it is not one of this thread's registers. Index the "
             "local tensor that it is a view of", "x[0, 0] = 1.0"),
        Case("""
            x = T.alloc_shared((4, 4), layout=TileLayout(S[(2, 2, 4) : (16, 2, 4)]))
            a = x[n : n + 2, :]
            """,
             "x: the start of the slice of axis 0 must be known to be a multiple of its length 2, since the layout "
             "of this axis has several strides", "x[n : n + 2, :]"),
        Case("""
            bars = T.alloc_shared((2,), "mbarrier")
            bars[0]
            """, "bars holds mbarriers: give its address, bars.ptr(i), to an instruction", "bars[0]"),
        Case("""
            bars = T.alloc_shared((2,), "mbarrier")
            bars[0] = 1
            """, "bars holds mbarriers: they change through mbarrier instructions only", "bars[0] = 1"),
        Case("""
            x = T.alloc_local((4,))
            x.ptr(0)
            """, "x is in registers: it has no address", "x.ptr(0)"),
        Case("""
            x = T.alloc_shared((8,), "int4")
            x[0] = 1
            """,
             "expected whole bytes to be stored but x holds int4: T.store a local tensor, or view the tensor as uint8",
             "x[0] = 1"),
        Case("""
            x = T.alloc_local((8,), "int4")
            x[0] = 9
            """, "expected -8 to 7 to store in x of int4 but got 9", "x[0] = 9"),
        Case("""
            x = T.alloc_local((2,), "float64").view("int4")
            a = x[0]
            """, "x: 4-bit elements of 64-bit registers cannot be read one by one", "x[0]"),
        Case("x = T.alloc_local((300,))",
             "x: expected at most 255 registers of a thread but got 300", "T.alloc_local((300,))"),
        Case("T.alloc_local(0)", "T.alloc_local: expected positive extents but got (0,)", "T.alloc_local(0)"),
        Case("T.alloc_local((4, n))",
             "the shape of T.alloc_local must be known while tracing, but it is computed on the device (the same for "
             "the whole grid)", "T.alloc_local((4, n))"),
        Case('T.alloc_local((4,), "mbarrier")',
             "T.alloc_local: dtype: expected a type of registers but got mbarrier: mbarriers live in shared memory",
             'T.alloc_local((4,), "mbarrier")'),
        Case("T.alloc_shared((4,), layout=3)",
             'T.alloc_shared: layout: expected "default" or a layout but got int 3', "T.alloc_shared((4,), layout=3)"),
        Case("T.alloc_shared((4,), layout=TileLayout(S[8]))",
             "T.alloc_shared: layout: expected one of the 4 elements of shape (4,) but got TileLayout(S[8 : 1]), of 8",
             "T.alloc_shared((4,), layout=TileLayout(S[8]))"),
        Case("T.alloc_shared((64,), layout=TileLayout(S[64 : 1 @ laneid]))",
             "TileLayout(S[64 : 1 @ laneid]): laneid: expected at most 31 but got 63",
             "T.alloc_shared((64,), layout=TileLayout(S[64 : 1 @ laneid]))"),
        Case("T.alloc_shared((32,), layout=TileLayout(S[32 : 1 @ laneid]))",
             "T.alloc_shared: layout: expected one without thread axes, for a CTA shares the memory, but got "
             "TileLayout(S[32 : 1 @ laneid])", "T.alloc_shared((32,), layout=TileLayout(S[32 : 1 @ laneid]))"),
        Case("T.alloc_shared((32,), align=48)",
             "T.alloc_shared: align: expected a power of two up to 1024 but got 48", "T.alloc_shared((32,), align=48)"),
    ),
)  # fmt: skip
