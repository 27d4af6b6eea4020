"""Arguments that do not fit a kernel's parameters."""

from catalogue import Case, Topic

from warpjit.errors import ArgumentError

FRAME = """\
@warpjit
def kernel(
    A: T.Tensor((T.dynamic("M"), T.dynamic("K", multiple_of=8)), "float16"),
    square: T.Tensor(("N", "N"), "float32", layout="default", align=32) = None,
    x: T.int8 = 0,
    flag: T.bool = False,
    small: T.float16 = 0.0,
    other=None,
    *,
    mode=0,
):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

a, memory = torch.zeros(16, 8).half(), torch.zeros(1024)
place = memory.data_ptr() // 4 % 8
...
"""
WIDE = """\
@warpjit
def kernel(A: T.Tensor((T.dynamic("M"),), "int8")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

kernel(torch.zeros(1, dtype=torch.int8).expand(2**31))
"""
NO_DEFAULT = """\
@warpjit
def kernel(A, B, *, mode):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

...
"""
METHOD = """\
class Scaler:
    def __init__(self):
        self.factor = 2

    @warpjit
    def scale(self, A):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

...
"""
TENSOR_HELD = """\
@dataclasses.dataclass(frozen=True)
class Scaler:
    weights: torch.Tensor

    @warpjit
    def scale(self, A):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

...
"""

TOPIC = Topic(
    "Calling a kernel",
    "Arguments",
    (
        Case("kernel(torch.zeros(4))", "kernel(A, B, *, mode): expected arguments for B, mode", frame=NO_DEFAULT),
        Case("kernel(1, 2, 3)",
             "kernel(A, B, *, mode): expected at most 2 positional arguments but got 3 (what stands after * is given "
             "by name)", frame=NO_DEFAULT),
        Case("kernel(1, 2, mode=0, more=1)",
             "kernel(A, B, *, mode): expected names of its parameters but got 'more'", frame=NO_DEFAULT),
        Case("kernel(1, 2, A=1, mode=0)",
             "kernel(A, B, *, mode): expected A once but got it by position and by name", frame=NO_DEFAULT),
        Case("kernel([1], 2, mode=0)",
             "A: expected a tensor, a number, a tuple of these or None but got [1]; pass a tuple", frame=NO_DEFAULT),
        Case("kernel(np.zeros(4), 2, mode=0)",
             "A: expected a tensor, a number, a tuple of these or None but got a numpy array; torch.from_numpy makes "
             "a tensor of it", frame=NO_DEFAULT),
        Case("kernel(np.complex64(1), 2, mode=0)", "A: complex64 is not a data type of the language", frame=NO_DEFAULT),
        Case("kernel(T.int32, 2, mode=0)",
             "A: expected an argument but got the description T.int32: give it to warpjit.compile, or to the "
             "kernel's source, ptx, cubin, sass or resources", frame=NO_DEFAULT),
        Case("kernel(3)", "A: expected a tensor but got 3"),
        Case("kernel(a.float())", "A: expected a tensor of float16 but got float32"),
        Case("kernel(a.to(torch.complex64))", "A: torch.complex64 is not a data type of the language"),
        Case("kernel(a.to_sparse())",
             "A: expected a dense tensor in memory, but Cannot access data pointer of Tensor that doesn't have "
             "storage"),
        Case("""
            a.untyped_storage().resize_(0)
            kernel(a)
            """, "A: expected a tensor in memory but got a Tensor without any"),
        Case("kernel(torch.zeros(4, dtype=torch.complex64).conj().imag, 2, mode=0)",
             "A: the tensor is a view that negates its memory: call .resolve_neg() on it", frame=NO_DEFAULT),
        Case("kernel(torch.zeros(8).half())", "A: expected 2 axes, shape (M, K), but got shape (8,)"),
        Case("kernel(torch.zeros(16, 9).half())", "A.shape[1]: expected K to be a multiple of 8 but got 9"),
        Case("""
            @warpjit
            def kernel(A: T.Tensor((T.dynamic("M"),), "int8")):
                T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

            kernel(torch.zeros(1, dtype=torch.int8).expand(2**31))
            """, "A.shape[0]: expected M to be below 2**31 but got 2147483648", frame=""),
        Case("kernel(a, torch.zeros(4, 5))", "square.shape[1]: expected size N = 4, as in square.shape[0], but got 5"),
        Case("kernel(a, memory[:16].view(4, 4).T)",
             'square: layout="default" needs packed rows: expected strides (4, 1) of shape (4, 4) but got (1, 4)'),
        Case("kernel(a, memory[4 + (8 - place) % 8 :][:16].view(4, 4))",
             "square: expected an address that is a multiple of 32 bytes but got one 16 bytes beyond"),
        Case("kernel(a, x=200)", "x: 200 does not fit int8 (-128 to 127)"),
        Case("kernel(a, x=1.5)", "x: expected an integer (int8) but got 1.5"),
        Case("kernel(a, x=torch.tensor(5))", "x: expected a number (int8) but got a tensor: pass .item() of it"),
        Case("kernel(a, flag=1)", "flag: expected a bool but got 1"),
        Case('kernel(a, small="text")', "small: expected a number (float16) but got 'text'"),
        Case("kernel(a, small=1e6)", "small: 1000000.0 is too large for float16"),
        Case("kernel(a, other=2**31)",
             "other: 2147483648 does not fit int32 (-2147483648 to 2147483647): annotate other as T.int64"),
        Case('kernel(a, other="text")',
             "other: expected a tensor, a number, a tuple of these or None but got 'text'; compile-time constants "
             "stand after *, or are annotated T.constexpr"),
        Case("kernel(a, mode=[1, 2])",
             "mode: expected a compile-time constant (hashable, and nothing in it can change) but got [1, 2]; pass a "
             "tuple"),
        Case("Scaler().scale(torch.zeros(4))",
             "self: expected an object that cannot change (of a frozen dataclass, an enum or a named tuple), since "
             "it is a compile-time constant of the kernel, but got a Scaler: write @dataclass(frozen=True) above its "
             "class, or pass what the kernel needs as arguments", frame=METHOD),
        Case("Scaler(torch.zeros(4)).scale(torch.zeros(4))",
             "self.weights is a captured tensor: pass it as an argument of the kernel", frame=TENSOR_HELD),
        Case('kernel(a, other=np.float16(1.5), small=np.datetime64(1, "s"))',
             "small: expected a number (float16) but got np.datetime64('1970-01-01T00:00:01')"),
        Case("""
            import ml_dtypes

            kernel(ml_dtypes.float8_e4m3fn(1.0), 2, mode=0)
            """,
             "A: a number of a call cannot be a float8_e4m3fn: pass another, which the kernel converts",
             frame=NO_DEFAULT),
    ),
    frame=FRAME,
    error=ArgumentError,
)  # fmt: skip
