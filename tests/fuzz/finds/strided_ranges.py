"""The last value of a loop whose step does not divide its length was taken to be a step below the end."""

from warpjit import T, warpjit

GRID, BLOCK = 1, 32
SCALARS = {"n": ("int32", "5")}
INPUTS = {}
COUNTS = {}
RESULTS = {"o_int32": ("int32", 8)}


@warpjit(contract=False)
def kernel(n: T.int32, o_int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=GRID, block=BLOCK))
    lane = T.cuda.lane_id()
    for i in range(2, T.int32(1), -3):
        o_int32[lane, -i % 4] = 1
    T.assume(n < 6)
    for i in range(0, n, 2):
        o_int32[lane, 4] += min(i, 3)
    for i in range(n, -1, -3):
        o_int32[lane, 5] += max(i, 3)
    for i, u in T.range(1, n, 3, unroll=2):
        o_int32[lane, 6 + u] += min(i, 3) - i // 4
