"""Casts with a stated direction, and elements of half a byte."""

from catalogue import Case, Topic


def of(call: str, message: str) -> Case:
    return Case(call, message, call)


TOPIC = Topic(
    "The language",
    "Casts and small elements",
    (
        of('T.cast(n, "float32", rounding="away")',
           'T.cast: expected rounding to be "nearest", "zero", "down" or "up" but got str \'away\''),
        of('T.cast(n, "int8", saturate=1)', "T.cast: expected saturate to be True, False or None but got int 1"),
        of('T.cast(A, "int8", saturate=True)', "T.cast: expected a number but got the tensor A"),
        of('T.cast(n, "bool", saturate=True)',
           "T.cast: expected no rounding= and no saturate= for int32 to bool"),
        of('T.cast(A[0, 0], "bfloat16", rounding="up")',
           'T.cast: float32 to bfloat16 rounds "nearest" or "zero" but got rounding="up"'),
        of('T.cast(A[0, 0], "float8_e5m2", rounding="zero")',
           'T.cast: float32 to float8_e5m2 rounds "nearest" but got rounding="zero"'),
        of('T.cast(A[0, 0], "int8", saturate=False)',
           "T.cast: float32 to int8 always saturates: expected no saturate=False"),
        of('T.cast(A[0, 0], "int4", saturate=True)',
           "T.cast: dtype: expected the type of a scalar but got int4, which elements of tensors have"),
        of('T.reinterpret(T.int64(n), "mbarrier")',
           "T.reinterpret: dtype: expected the type of a scalar but got mbarrier, which elements of tensors have"),
        of('T.cast(n, "int8", rounding="zero")', "T.cast: int32 to int8 does not round: expected no rounding="),
        of('T.red_add(I, 0, T.alloc_local((2,), "int32"))',
           "T.red_add: value: expected a number, since only float32 and pairs in global memory take several at once, "
           "but got local for I, global memory of int32"),
        of("T.red_add(A, (0, 0), T.alloc_local((3,)))",
           "T.red_add: value: expected a local tensor of float32 with one axis of an even number of elements but got "
           "local of float32, shape (3,)"),
        Case("""
            tile = T.alloc_shared((4, 8), "int4")
            tile.ptr(0, lane)
            """, "expected the last index to be known to be even but tile holds int4, two a byte", "tile.ptr(0, lane)"),
    ),
)  # fmt: skip
