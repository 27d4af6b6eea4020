"""Operators and calls on values that they are not for."""

from catalogue import Case, Topic

TOPIC = Topic(
    "The language",
    "Expressions",
    (
        Case("A + 1", "add: expected a number but got the tensor A: read an element with an index", "A + 1"),
        Case("-A", "neg: expected a number but got the tensor A: read an element with an index", "-A"),
        Case("A == A", "eq: expected a number but got the tensor A: read an element with an index", "A == A"),
        Case('n + "text"', "expected a number but got str 'text'", 'n + "text"'),
        Case("n + None", "expected a number but got None", "n + None"),
        Case("n << 1.5", "expected an integer to shift by but got float 1.5", "n << 1.5"),
        Case("A[0, 0] << 1", "expected an integer to shift but got a scalar of type float32", "A[0, 0] << 1"),
        Case("A[0, 0] & A[0, 1]", "and is not defined for float32", "A[0, 0] & A[0, 1]"),
        Case("T.uint64(1) + n",
             "uint64 and int32 have no common type: cast one of them, for example the uint64 operand with "
             "T.int64(...) or the int32 operand with T.uint64(...)", "T.uint64(1) + n"),
        Case("n // 0", "division by zero", "n // 0"),
        Case("1 // 0", "ZeroDivisionError: integer division or modulo by zero", "1 // 0"),
        Case("n @ n", "@ is not defined for scalars", "n @ n"),
        Case("n ** -1", "**: expected an exponent from 1 to 16, known while tracing, but got int -1", "n ** -1"),
        Case("n ** n",
             "**: expected an exponent from 1 to 16, known while tracing, but got a scalar of type int32", "n ** n"),
        Case("n and lane",
             "and: expected bools but got a scalar of type int32: compare it, since 'and' gives a bool on the device",
             "n and lane"),
        Case("1 if A else 2", "the tensor A is neither true nor false: compare an element", "1 if A else 2"),
        Case("""
            if A:
                pass
            """, "the tensor A is neither true nor false: compare an element", "if A:"),
        Case("T.assume(np.zeros(2))",
             "ValueError: The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
             "T.assume(np.zeros(2))"),
        Case("1 if np.zeros(2) else 2",
             "ValueError: The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
             "1 if np.zeros(2) else 2"),
        Case("A.permute(np.arange(2))", "an axis of permute: expected an int but got ndarray",
             "A.permute(np.arange(2))"),
        Case("A if n > 3 else None",
             "a conditional expression on a runtime condition can only choose between numbers", "A if n > 3 else None"),
        Case("[*n]", "*: expected a tuple but got a scalar of type int32", "[*n]"),
        Case("print(**n)", "**: expected a dictionary but got a scalar of type int32", "print(**n)"),
        Case("A.nothing",
             "a tensor has no attribute 'nothing'; it has as_operand, cast, convert, dtype, each, fill, layout, "
             "ndim, permute, ptr, rearrange, regs, shape, storage, sub, view", "A.nothing"),
        Case("n.shape", "a scalar has no attribute 'shape'; it has dtype", "n.shape"),
        Case("A.ptr(0, 0).nothing", "a pointer has no attribute 'nothing'; it has none", "A.ptr(0, 0).nothing"),
        Case("T.cuda.nothing",
             "AttributeError: module 'warpjit.frontend.language.cuda' has no attribute 'nothing'", "T.cuda.nothing"),
        Case("n[0]", "a scalar of type int32 has no elements", "n[0]"),
        Case("(1, 2)[n]",
             "the index of a tuple must be known while tracing, but it is computed on the device (the same for the "
             "whole grid)", "(1, 2)[n]"),
        Case("(1, 2)[5]", "IndexError: tuple index out of range", "(1, 2)[5]"),
        Case("I[0] = 2**31", "the literal 2147483648 does not fit int32 (-2147483648 to 2147483647)", "I[0] = 2**31"),
        Case("n + 1.5j", "expected a number but got complex", "n + 1.5j"),
        Case("T.int8(n) + 300", "the literal 300 does not fit int8 (-128 to 127)", "T.int8(n) + 300"),
        Case("I[0] = 1.5", "the literal 1.5 is not an integer: it cannot become int32", "I[0] = 1.5"),
        Case("T.float16(1e6)", "the literal 1000000.0 is too large for float16", "T.float16(1e6)"),
        Case("T.int32(A)", "T.int32: expected a number but got the tensor A", "T.int32(A)"),
        Case("T.int32(1, 2)", "T.int32: expected one value but got 2", "T.int32(1, 2)"),
        Case("""
            a = I[0] == I[1]
            b = a + T.float32(1)
            c = T.fma(a, a, a)
            """, "T.fma: expected floats but got operands that meet in bool", "T.fma(a, a, a)"),
        Case("T.fma(1.0, 2.0, 3.0)",
             "T.fma: expected at least one device value but got static numbers", "T.fma(1.0, 2.0, 3.0)"),
        Case('T.fma(T.float32(n), "text", 1.0)',
             "T.fma: expected numbers but got str 'text'", 'T.fma(T.float32(n), "text", 1.0)'),
        Case("T.sqrt(n)", "sqrt is not defined for int32", "T.sqrt(n)"),
        Case("T.cdiv(1.5, 2)", "T.cdiv: expected integers but got float 1.5", "T.cdiv(1.5, 2)"),
        Case("T.cdiv(7, 0)", "T.cdiv: b: expected a positive integer but got 0", "T.cdiv(7, 0)"),
        Case("T.cdiv(n, -1)", "T.cdiv: b: expected a positive integer but got -1", "T.cdiv(n, -1)"),
        Case("abs(A)", "expected a number but got the tensor A", "abs(A)"),
        Case("max(A)", "max: expected a tuple but got the tensor A", "max(A)"),
        Case('T.cast(n, "float99")',
             "expected the name of a data type but got 'float99'; the names are float16, bfloat16, float32, float64, "
             "float8_e4m3fn, float8_e5m2, int4, int8, int16, int32, int64, uint4, uint8, uint16, uint32, uint64, "
             "float16x2, bfloat16x2, bool, mbarrier", 'T.cast(n, "float99")'),
        Case("T.cast(n, 3)",
             "expected a data type but got 3; the names are float16, bfloat16, float32, float64, float8_e4m3fn, "
             "float8_e5m2, int4, int8, int16, int32, int64, uint4, uint8, uint16, uint32, uint64, float16x2, "
             "bfloat16x2, bool, mbarrier", "T.cast(n, 3)"),
        Case('T.reinterpret(n, "float64")',
             "expected a type of 32 bits, the width of int32, but got float64", 'T.reinterpret(n, "float64")'),
        Case("x, y = n", "expected a tuple to unpack into 2 names but got a scalar of type int32", "x, y = n"),
        Case("x, y = 1, 2, 3", "expected 2 values to unpack but got 3", "x, y = 1, 2, 3"),
        Case("x, *y, z = (1,)", "expected at least 2 values to unpack but got 1", "x, *y, z = (1,)"),
        Case("(1, 2)[0] = 3", "expected a tensor whose element is assigned but got tuple", "(1, 2)[0] = 3"),
        Case("T.assume(False)", "T.assume: expected a condition that can hold but got False", "T.assume(False)"),
        Case("T.fma(T.int32(1), n, 2)",
             "T.fma: expected floats but got operands that meet in int32", "T.fma(T.int32(1), n, 2)"),
        Case("T.exp(n)", "T.exp: expected a float but got a scalar of type int32", "T.exp(n)"),
        Case('n in "12"', "'in' of device values: expected a tuple of numbers but got str '12'", 'n in "12"'),
        Case("3 in range(n)",
             "'in' of a range of device values: compare with its ends, start <= x < stop", "3 in range(n)"),
        Case("n + np.float32(1)",
             "expected a number but got numpy's np.float32(1.0): make it Python's, int(x) or float(x)",
             "n + np.float32(1)"),
        Case("(n, 1) == (n, 2)", "'eq' of what holds device values: compare its items, one by one", "(n, 1) == (n, 2)"),
        Case("n < None", "lt: expected two numbers to compare but got None", "n < None"),
        Case("a = {n: 1}", "a key of a dictionary must be known while tracing, not a scalar of type int32", "{n: 1}"),
        Case("""
            x = T.alloc_local((4,), "float8_e5m2")
            x[0] < x[1]
            """, "lt is not defined for float8_e5m2", "x[0] < x[1]"),
        Case("""
            x = T.alloc_local((4,), "float8_e5m2")
            y = x[0] + x[1]
            """, "add is not defined for float8_e5m2", "x[0] + x[1]"),
        Case("""
            x = T.alloc_shared((4,), "bool")
            x[0] = 2
            """, "the literal 2 is not a bool", "x[0] = 2"),
        Case("T.max(n, 1, nan=3)", "T.max: expected nan to be True or False but got int 3", "T.max(n, 1, nan=3)"),
        Case("""
            x = T.alloc_local((4,), "float8_e5m2")
            y = x[0] + T.int32(1)
            """,
             "float8_e5m2 has no arithmetic with int32: convert it first, for example to float32 or int32",
             "x[0] + T.int32(1)"),
        Case("T.float16x2(1.0, 2.0) + n",
             "float16x2 and int32 have no common type: expected two float16x2, T.float16x2(x) of a number x",
             "T.float16x2(1.0, 2.0) + n"),
        Case("""
            if T.float16x2(A[0, 0], 2.0):
                pass
            """,
             "a float16x2 is neither true nor false: compare it, or a half of it, x[0] or x[1]",
             "if T.float16x2(A[0, 0], 2.0):"),
        Case("T.float16x2(A[0, 0], 2.0) + T.bfloat16x2(A[0, 0], 1.0)",
             "float16x2 and bfloat16x2 have no common type: expected two float16x2, T.float16x2(x) of a number x",
             "T.float16x2(A[0, 0], 2.0) + T.bfloat16x2(A[0, 0], 1.0)"),
        Case("T.int32(T.float16x2(A[0, 0], 2.0))",
             "a float16x2 is no int32: take a half, x[0] or x[1], or its bits, T.reinterpret(x, T.uint32)",
             "T.int32(T.float16x2(A[0, 0], 2.0))"),
        Case('T.cast(A[0, 0], "mbarrier")',
             "float32 is not converted to mbarrier: no instruction of the table does", 'T.cast(A[0, 0], "mbarrier")'),
    ),
)  # fmt: skip
