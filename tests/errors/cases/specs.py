"""Descriptions of arguments for `warpjit.compile`, and calls of what it gives."""

from catalogue import Case, Topic

from warpjit.errors import ArgumentError, TargetError

FRAME = """\
@warpjit
def kernel(A: T.Tensor((T.dynamic("M"), "N")), x: T.int32, flags=(True, 1), *, mode=0):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

@warpjit
def fixed(A: T.Tensor((16, 8), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

half, f32 = T.Tensor((16, 8), "float16"), T.Tensor((16, 8), "float32")
...
"""

TOPIC = Topic(
    "Calling a kernel",
    "Descriptions of arguments",
    (
        Case("kernel.source()",
             "kernel(A, x, flags, *, mode): expected arguments or specs (the annotations do not say all) for A"),
        Case("kernel.source(half, half)",
             "x: expected T.int32 but got Tensor(shape=(16, 8), dtype=float16, layout=None, align=None, "
             "noalias=False)"),
        Case("kernel.source(half, T.float32)", "x: expected T.int32 but got T.float32"),
        Case("kernel.source(T.float32, 5)", "A: expected a tensor but got T.float32"),
        Case("kernel.source(T.Tensor((16, 8)), 5)",
             "A: a spec needs a shape and a data type but got Tensor(shape=(16, 8), dtype=None, layout=None, "
             "align=None, noalias=False)"),
        Case('kernel.source(T.Tensor((16, "N"), "float16"), 5)',
             "A.shape[1]: the size 'N' is static and has no value: give it as an int"),
        Case('kernel.source(T.Tensor((16, T.dynamic("N")), "float16"), 5)',
             "A.shape[1]: the size 'N' is static: expected an int but got Dynamic(name='N', multiple_of=1)"),
        Case("kernel.source(half, 5, T.float8_e4m3fn)", "flags: a number of a call cannot be a float8_e4m3fn"),
        Case("wj.compile(3)", "warpjit.compile: expected a function decorated with @warpjit but got 3"),
        Case('wj.compile(kernel, half, 5, target="a100")',
             "expected a target of the form \"sm_90a\" but got 'a100'; known are sm_75, sm_80, sm_86, sm_87, sm_88, "
             "sm_89, sm_90|a, sm_100|a|f, sm_103|a|f, sm_110|a|f, sm_120|a|f, sm_121|a|f", error=TargetError),
        Case('wj.compile(kernel, half, 5, target="sm_10")',
             "expected a target of the form \"sm_90a\" but got 'sm_10'; known are sm_75, sm_80, sm_86, sm_87, sm_88, "
             "sm_89, sm_90|a, sm_100|a|f, sm_103|a|f, sm_110|a|f, sm_120|a|f, sm_121|a|f", error=TargetError),
        Case('fixed.source(T.Tensor((8, 8), "float32"))', "A: expected shape (16, 8) but got (8, 8)"),
        Case("fixed(torch.zeros(8, 8))", "A: expected shape (16, 8) but got (8, 8)"),
    ),
    frame=FRAME,
    error=ArgumentError,
)  # fmt: skip
