"""Calls of helpers, of Python's functions, and of what cannot be called."""

from catalogue import Case, Topic

TOPIC = Topic(
    "The language",
    "Calls",
    (
        Case("n(3)", "a scalar of type int32 cannot be called", "n(3)"),
        Case("A(3)", "the tensor A cannot be called", "A(3)"),
        Case("""
            x = 3
            x(1)
            """, "int 3 cannot be called", "x(1)"),
        Case('int("x")', "ValueError: invalid literal for int() with base 10: 'x'", 'int("x")'),
        Case("len(n)", "len: expected a tuple but got a scalar of type int32", "len(n)"),
        Case("abs(n, n)", "abs: too many positional arguments", "abs(n, n)"),
        Case("T.min(n)", "T.min(a, b, *, nan=False): missing a required argument: 'b'", "T.min(n)"),
        Case("A.permute(axis=1)", "permute: got an unexpected keyword argument 'axis'", "A.permute(axis=1)"),
        Case("""
            def twice(x):
                return x * 2

            I[0] = twice(n, 3)
            """, "twice: too many positional arguments", "twice(n, 3)"),
        Case("""
            def down(x):
                return down(x + 1)

            I[0] = down(n)
            """,
             "down calls itself too deeply: a helper is inlined, so its recursion must end while tracing",
             "down(x + 1)"),
        Case("""
            def down(x):
                for i in range(x):
                    if x > i:
                        I[0] = down(x + 1)
                return x

            I[0] = down(n)
            """,
             "too deep to be traced: helpers are inlined, so their recursion must end while tracing, after few calls",
             "I[0] = down(n)"),
        Case("""
            def twice(x):
                return T.int32(x) * 2

            @warpjit
            def kernel(I: T.Tensor((32,), "int32")):
                T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
                I[0] = twice(1, 2)

            kernel(torch.zeros(32, dtype=torch.int32))
            """, "twice: too many positional arguments", "twice(1, 2)", frame=""),
        Case("T.cuda.lane_id()",
             "T.cuda.lane_id means something only inside a function decorated with @warpjit", frame=""),
        Case("T.float32(1)", "T.float32(...) means something only inside a function decorated with @warpjit", frame=""),
        Case("sorted(n)", "sorted: expected a tuple but got a scalar of type int32", "sorted(n)"),
    ),
)  # fmt: skip
