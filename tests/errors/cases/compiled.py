"""Calls of what `warpjit.compile` and `kernel.bind` give, and what a launch needs."""

from catalogue import Case, Topic
from machines import cpu_forbidden, cpu_misspelt, no_compiler

from warpjit.errors import ArgumentError, TargetError

FRAME = """\
@warpjit
def kernel(A: T.Tensor((T.dynamic("M"), 8)), x: T.int32, pair=(1.5, 2), *, mode=0):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=x, block=32))

a = torch.zeros(16, 8).half()
compiled = wj.compile(kernel, a, 5, (1.5, 2))
...
"""
BOUND = """\
@warpjit
def kernel(A, x: T.int32, *, mode=0):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=x, block=32))

a = torch.zeros(16, 8).half()
bound = kernel.bind(a, 5)
...
"""
PLAN = """\
@warpjit
def kernel(x: T.int32, y: T.int64 = 1):
    n = 100 // x
    T.device_entry(launch=T.cuda.LaunchConfig(grid=n, block=32))

...
"""

CLUSTER = """\
@warpjit
def kernel(x: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=x + 1, block=32, cluster=2))

...
"""

TOPIC = Topic(
    "Calling a kernel",
    "Compiled and bound kernels",
    (
        Case("compiled(3, 5, (1.5, 2))",
             "A: compiled for a tensor of float16, shape (M, 8), strides (packed, one), aligned to 16 bytes, but got "
             "3", given=no_compiler),
        Case("compiled(a.float(), 5, (1.5, 2))",
             "A: compiled for a tensor of float16, but got float32", given=no_compiler),
        Case("compiled(torch.zeros(16, 4).half(), 5, (1.5, 2))",
             "A: compiled for shape (M, 8), but got (16, 4)", given=no_compiler),
        Case("compiled(a.T.contiguous().T, 5, (1.5, 2))",
             "A: compiled for a tensor of float16, shape (M, 8), strides (packed, one), aligned to 16 bytes, but got "
             "strides (1, 16) of shape (16, 8)", given=no_compiler),
        Case("compiled(a, 5, 1)", "pair: expected a tuple of 2 but got 1", given=no_compiler),
        Case("compiled(a, 5, (1.5, 2), mode=1)", "mode: compiled for the constant 0, but got 1", given=no_compiler),
        Case("compiled(a, -1, (1.5, 2))",
             "kernel: expected a grid of at most (2147483647, 65535, 65535) CTAs, none negative, but got (-1, 1, 1)",
             given=no_compiler),
        Case("bound(a)",
             "<<warpjit kernel kernel> bound on cpu>: expected 2 arguments, or none, but got 1", frame=BOUND),
        Case("bound(a, 5, 6)",
             "<<warpjit kernel kernel> bound on cpu>: expected 2 arguments, or none, but got 3", frame=BOUND),
        Case("bound(a.float(), 5)",
             "A: expected a tensor of float16, shape (16, 8), strides (packed, one), aligned to 16 bytes, as was "
             "bound, but got a tensor of float32, shape (16, 8), strides (packed, one), aligned to 16 bytes",
             frame=BOUND),
        Case("kernel(a, 5)",
             "the tensors are on the CPU, and WARPJIT_CPU=error forbids to simulate", frame=BOUND, given=cpu_forbidden),
        Case("kernel(a, 5)",
             "WARPJIT_CPU: expected \"simulate\" or \"error\" but got 'yes'", frame=BOUND, given=cpu_misspelt),
        Case("kernel(0)", "a size, stride or grid expression of this launch divides by zero", frame=PLAN),
        Case("kernel(-1)",
             "kernel: expected a grid of at most (2147483647, 65535, 65535) CTAs, none negative, but got (-100, 1, 1)",
             frame=PLAN),
        Case("kernel(8)",
             "kernel: expected a grid that is a multiple of the cluster, (2, 1, 1), but got (9, 1, 1)",
             frame=CLUSTER),
        Case("kernel.simulate(a.to('meta'), 5)",
             "A: expected a CUDA tensor, or a CPU tensor to simulate, but it is on meta", frame=BOUND),
        Case('kernel.simulate(a, 5, numerics="roughly")',
             "numerics: expected \"exact\" or \"fast\" but got 'roughly'", frame=BOUND),
        Case("kernel.source(a, 5, target=90)",
             'expected a target of the form "sm_90a" but got 90', error=TargetError, frame=BOUND),
        Case('kernel(a, torch.zeros(4, device="meta"), pair=(1.5, 2))',
             "x: expected a number (int32) but got a tensor: pass .item() of it"),
        Case('kernel(a, 5, pair=(torch.zeros(4, device="meta"), 1))',
             "expected all tensors on one device, but A is on cpu, pair[0] is on meta"),
        Case("""
            @warpjit
            def kernel(I: T.Tensor((32,), "int64"), y: T.int64):
                square = y * y
                T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
                I[0] = square

            kernel(torch.zeros(32, dtype=torch.int64), 2**40)
            """, "size is 1208925819614629174706176 in this call, which does not fit int64", frame=""),
        Case("""
            @warpjit
            def kernel(A):
                T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
                big = T.alloc_shared((70000,), "float32")

            kernel(torch.zeros(4))
            """,
             "expected at most 232,448 bytes of shared memory a CTA, which is what the target has, but kernel "
             "allocates 280,000: big 280,000 at 0", "def kernel(A):", error=TargetError, frame=""),
    ),
    frame=FRAME,
    error=ArgumentError,
)  # fmt: skip
