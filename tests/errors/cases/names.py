"""Names that mean nothing, or not one thing, where they are read."""

from catalogue import Case, Topic

TOPIC = Topic(
    "The language",
    "Names",
    (
        Case("x = q", "the name q is not defined", "q"),
        Case("""
            I[0] = x
            x = 1
            """, "x is read before it is assigned", "x"),
        Case("""
            if n > 3:
                x = 1
            I[0] = x
            """, "x may have no value here: it is assigned on some paths only", "x"),
        Case("""
            while n > 3:
                x = n
                n -= 1
            I[0] = x
            """, "x may have no value here: it is assigned on some paths only", "x"),
        Case("""
            for i in range(n):
                if i > 3:
                    x = A
                n = x[i, 0]
            """, "x may have no value here: it is assigned on some paths only", "x"),
        Case("""
            x = A
            if n > 3:
                x = 1.0
            A[0, 0] = x
            """,
             "x would be carried by the control flow, but a tensor cannot be: only numbers can\n"
             "note: x is a tensor from here\n"
             "note: and a float32 from here", "if n > 3:"),
        Case("""
            x = 1
            if n > 3:
                x = True
            I[0] = x
            """,
             "x would change its type from bool to int32: convert one of them\n"
             "note: bool from here\n"
             "note: int32 from here", "if n > 3:"),
        Case("""
            x = 1.5
            if n > 3:
                x = n
            I[0] = x
            """,
             "x would change its type from int32 to float32: convert one of them\n"
             "note: int32 from here\n"
             "note: float32 from here", "if n > 3:"),
        Case("""
            x = n
            for i in range(n):
                x = x * 1.5
            I[0] = x
            """,
             "x would change its type from int32 to float32: convert one of them\n"
             "note: int32 from here\n"
             "note: float32 from here", "for i in range(n):"),
        Case("""
            def scale():
                return x * 2

            I[0] = scale()
            x = 1
            """, "x is read before it is assigned", "x"),
        Case("""
            table = [1, 2, 3]

            @warpjit
            def kernel(I: T.Tensor((32,), "int32")):
                T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
                I[0] = table[0]

            kernel(torch.zeros(32, dtype=torch.int32))
            """,
             "table is a captured list: it may change unnoticed. Use a tuple, or pass it as a constant",
             "table", frame=""),
        Case("""
            weights = torch.zeros(32)

            @warpjit
            def kernel(A: T.Tensor((32,), "float32")):
                T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
                A[0] = weights[0]

            kernel(torch.zeros(32))
            """, "weights is a captured tensor: pass it as an argument of the kernel", "weights", frame=""),
        Case("""
            @dataclasses.dataclass
            class Options:
                scale: int = 2

            options = Options()

            @warpjit
            def kernel(I: T.Tensor((32,), "int32")):
                T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
                I[0] = options.scale

            kernel(torch.zeros(32, dtype=torch.int32))
            """, "options is a captured Options: only frozen dataclasses can be captured", "options", frame=""),
        Case("""
            def make():
                @warpjit
                def kernel(I: T.Tensor((32,), "int32")):
                    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
                    I[0] = later

                kernel(torch.zeros(32, dtype=torch.int32))
                later = 1

            make()
            """, "later has no value yet in the enclosing function", "later", frame=""),
        Case("""
            x = 0
            for i in range(n):
                if i > 3 and (x := i) > 5:
                    I[0] = 1
            I[1] = x
            """, "x may have its old or a new value here: it is assigned on some paths only", "for i in range(n):"),
    ),
)  # fmt: skip
