"""An index near the smallest int32 is a sum with a constant of 2**31, which wraps; in bytes it was added in 64 bits."""

from warpjit import T, warpjit

GRID, BLOCK = 1, 32
SCALARS = {"n": ("int32", "2")}
INPUTS = {"x_int32": ("int32", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16")}
COUNTS = {}
RESULTS = {"o_int32": ("int32", 4)}


@warpjit(contract=False)
def kernel(n: T.int32, x_int32, o_int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=GRID, block=BLOCK))
    lane = T.cuda.lane_id()
    o_int32[lane, 0] = x_int32[min(n, -2147483647) % 16]
    o_int32[lane, 1] = x_int32[min(n, -2147483634) % 16]
    o_int32[lane, 2] = x_int32[max(n, 2147483646) % 16]
    o_int32[lane, 3] = x_int32[(min(n, -2147483640) + 3) % 16]
