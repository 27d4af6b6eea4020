"""`T.device_entry`, and what can stand before it."""

from catalogue import Case, Topic

BEFORE = """\
@warpjit
def kernel(A: T.Tensor((8, 8), "float32"), n: T.int32, x: T.float32):
    ...

kernel(torch.zeros(8, 8), 5, 1.5)
"""
ENTRY = "T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))"

TOPIC = Topic(
    "The language",
    "The entry",
    (
        Case("pass",
             "kernel never calls T.device_entry(launch=T.cuda.LaunchConfig(grid=..., block=...))",
             'def kernel(A: T.Tensor((8, 8), "float32"), n: T.int32, x: T.float32):'),
        Case("""
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """,
             "T.device_entry: expected one call but got a second",
             "T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))"),
        Case("""
            for i in T.unroll(1):
                T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """,
             "T.device_entry: expected a call in the kernel itself, outside of loops and helpers",
             "T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))"),
        Case("T.device_entry(launch=32)",
             "T.device_entry: launch: expected T.cuda.LaunchConfig(...) but got int 32", "T.device_entry(launch=32)"),
        Case("T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32), attributes=32)",
             "T.device_entry: attributes: expected T.cuda.KernelAttributes(...) but got int 32",
             "T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32), attributes=32)"),
        Case("T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=(1, 2, 3, 4)))",
             "block: expected one to three sizes but got 4",
             "T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=(1, 2, 3, 4)))"),
        Case("T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=n))",
             "block: expected ints that are known while tracing but got a scalar of type int32",
             "T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=n))"),
        Case("T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=0))",
             "block: expected positive sizes but got 0", "T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=0))"),
        Case('T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block="x"))',
             "block: expected an int but got str 'x'", 'T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block="x"))'),
        Case("T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=2048))",
             "block: expected at most 1024 threads but got (2048, 1, 1), 2048 of them",
             "T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=2048))"),
        Case("T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=(1, 1, 65)))",
             "block: expected at most (1024, 1024, 64) threads along x, y and z but got (1, 1, 65)",
             "T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=(1, 1, 65)))"),
        Case("T.device_entry(launch=T.cuda.LaunchConfig(grid=1.5, block=32))",
             "grid: expected integers but got float 1.5",
             "T.device_entry(launch=T.cuda.LaunchConfig(grid=1.5, block=32))"),
        Case("T.device_entry(launch=T.cuda.LaunchConfig(grid=-1, block=32))",
             "grid: expected sizes of 0 or more but got -1",
             "T.device_entry(launch=T.cuda.LaunchConfig(grid=-1, block=32))"),
        Case("T.device_entry(launch=T.cuda.LaunchConfig(grid=5, block=32, cluster=2))",
             "grid: expected a multiple of the cluster, (2, 1, 1), but got (5, 1, 1)",
             "T.device_entry(launch=T.cuda.LaunchConfig(grid=5, block=32, cluster=2))"),
        Case("T.device_entry(launch=T.cuda.LaunchConfig(grid=32, block=32, cluster=32))",
             "cluster (32, 1, 1) has 32 CTAs: expected at most 16",
             'def kernel(A: T.Tensor((8, 8), "float32"), n: T.int32, x: T.float32):'),
        Case("""
            T.device_entry(
                launch=T.cuda.LaunchConfig(grid=1, block=32),
                attributes=T.cuda.KernelAttributes(max_registers=64, min_blocks_per_sm=2),
            )
            """, "attributes: expected max_registers or min_blocks_per_sm but got both", "T.device_entry("),
        Case("""
            T.device_entry(
                launch=T.cuda.LaunchConfig(grid=1, block=32),
                attributes=T.cuda.KernelAttributes(max_registers=300),
            )
            """, "max_registers: expected an int from 16 to 255 but got int 300", "T.device_entry("),
        Case("""
            T.device_entry(
                launch=T.cuda.LaunchConfig(grid=1, block=32),
                attributes=T.cuda.KernelAttributes(max_registers=40.0),
            )
            """, "max_registers: expected an int from 16 to 255 but got float 40.0", "T.device_entry("),
        Case("""
            T.device_entry(
                launch=T.cuda.LaunchConfig(grid=1, block=32),
                attributes=T.cuda.KernelAttributes(min_blocks_per_sm=-1),
            )
            """, "min_blocks_per_sm: expected an int from 1 to 32 but got int -1", "T.device_entry("),
        Case("T.device_entry(launch=T.cuda.LaunchConfig(grid=A.permute(1, 0), block=32))",
             "expected a value that is known at the launch but got the tensor A",
             "T.device_entry(launch=T.cuda.LaunchConfig(grid=A.permute(1, 0), block=32))"),
        Case("""
            y = n << 2
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """,
             "before T.device_entry only + - * // % min max abs, T.cdiv, comparisons and conditional expressions of "
             "integers can be used, not shl of a scalar of type int32 and int 2", "n << 2"),
        Case("""
            y = x * 2
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """,
             "before T.device_entry only + - * // % min max abs, T.cdiv, comparisons and conditional expressions of "
             "integers can be used, not mul of a scalar of type float32 and int 2", "x * 2"),
        Case("""
            y = -x
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """,
             "before T.device_entry only + - * // % min max abs, T.cdiv, comparisons and conditional expressions of "
             "integers can be used, not neg of a scalar of type float32", "-x"),
        Case("""
            y = x if n > 3 else 2
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """,
             "before T.device_entry only + - * // % min max abs, T.cdiv, comparisons and conditional expressions of "
             "integers can be used, not a choice between a scalar of type float32 and int 2", "x if n > 3 else 2"),
        Case("""
            y = T.int8(n)
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """, "before T.device_entry a scalar of type int32 cannot be converted to int8", "T.int8(n)"),
        Case("""
            y = A[0, 0]
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """, "a load stands before T.device_entry: only host expressions can stand there", "A[0, 0]"),
        Case("""
            A[0, 0] = 1
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """, "a store stands before T.device_entry: only host expressions can stand there", "A[0, 0] = 1"),
        Case("""
            if n > 3:
                n = 3
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """,
             "a branch on a runtime value stands before T.device_entry: only host expressions can stand there",
             "if n > 3:"),
        Case("""
            while n > 3:
                n = 3
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """, "a while loop stands before T.device_entry: only host expressions can stand there", "while n > 3:"),
        Case("""
            for i in range(n):
                pass
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """,
             "a loop over a runtime range stands before T.device_entry: only host expressions can stand there",
             "for i in range(n):"),
        Case("""
            lane = T.cuda.lane_id()
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            """,
             "T.cuda.lane_id stands before T.device_entry: only host expressions can stand there", "T.cuda.lane_id()"),
        Case("""
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            T.cuda.thread_idx("w")
            """, "axis: expected \"x\", \"y\" or \"z\" but got str 'w'", 'T.cuda.thread_idx("w")'),
        Case("""
            size = T.dynamic("M")
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
            y = size + 1
            """, "T.dynamic('M'): expected the size of a parameter, but none has it", "size"),
    ),
    frame=BEFORE,
)  # fmt: skip
