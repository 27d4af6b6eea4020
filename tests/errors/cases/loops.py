"""Loops: what they iterate over, and what must not depend on their variable."""

from catalogue import Case, Topic

TOPIC = Topic(
    "The language",
    "Loops",
    (
        Case("""
            for i in n:
                pass
            """,
             "a scalar of type int32 cannot be iterated over: expected range(...), T.unroll(...) or a tuple",
             "for i in n:"),
        Case("""
            for i in range(1, 2, 3, n):
                pass
            """, "range: expected one to three integers but got 4", "range(1, 2, 3, n)"),
        Case("""
            for i in range(A[0, 0]):
                pass
            """, "range: expected integers but got a scalar of type float32", "range(A[0, 0])"),
        Case("""
            for i in range(0, n, 0):
                pass
            """, "range: step: expected an int other than 0 but got 0", "range(0, n, 0)"),
        Case("""
            for i, j in range(n):
                pass
            """, "expected a name as the variable of a loop over range", "for i, j in range(n):"),
        Case("""
            for i, j in T.range(n):
                pass
            """,
             "expected a name as the variable of a loop over range: T.range gives pairs with unroll= only",
             "for i, j in T.range(n):"),
        Case("""
            for i, j in T.range(n, unroll=0):
                pass
            """, "T.range: unroll: expected 1 to 64 but got 0", "T.range(n, unroll=0)"),
        Case("T.unroll()", "T.unroll: expected an iterable, or one to three integers, but got 0", "T.unroll()"),
        Case("T.unroll(3, 4, 0)", "T.unroll: step: expected an int other than 0 but got 0", "T.unroll(3, 4, 0)"),
        Case("T.unroll(1.5)", "an argument of T.unroll: expected an int but got float 1.5", "T.unroll(1.5)"),
        Case("""
            for i in range(5000):
                I[0] = (1, 2)[i % 2]
            """,
             "this loop was expanded to more than 4,096 statements: make its range or its body smaller, or index "
             "registers with values that do not derive from its variable", "for i in range(5000):"),
        Case("""
            for i in range(n):
                A[0, 0] = (1, 2)[i]
            """,
             "the index of a tuple must be known while tracing, but it is computed on the device (the same for the "
             "whole grid)", "(1, 2)[i]"),
        Case("""
            x = T.alloc_local((4,))
            k = 0
            for i in range(4):
                x[k] = 1.0
                k = k + n
            """,
             "the register index of x must be known while tracing, but it is computed on the device (the same for "
             "the whole grid)", "x[k] = 1.0"),
        Case("""
            x = T.alloc_local((4,))
            x[lane] = 1.0
            """,
             "the register index of x must be known while tracing, but it is computed on the device (different from "
             "lane to lane)", "x[lane] = 1.0"),
        Case("""
            for i in T.range(4):
                x = T.alloc_local((4,))
                x[i] = 1.0
            """, "the register index of x must be known while tracing, but it is computed on the device", "x[i] = 1.0"),
        Case("""
            x = T.alloc_local((4,))
            for i in range(4):
                pass
            x[i] = 1.0
            """,
             "the register index of x must be known while tracing, but it is computed on the device (the same for "
             "the whole grid)", "x[i] = 1.0"),
    ),
)  # fmt: skip
