"""Code that never runs was refused for what it would do there: an index outside, a division by 0."""

from warpjit import T, warpjit

GRID, BLOCK = 1, 32
SCALARS = {"n": ("int32", "5")}
INPUTS = {"x_int32": ("int32", "5 -6 7 8")}
COUNTS = {}
RESULTS = {"o_int32": ("int32", 4)}


@warpjit(contract=False)
def kernel(n: T.int32, x_int32, o_int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=GRID, block=BLOCK))
    lane = T.cuda.lane_id()
    for i in range(1, T.int32(5) % 5):
        o_int32[lane, i % 4] = 9
    for i in range(1, 1):
        o_int32[lane, i + 9] = 9
    zero = T.int32(0)
    v = lane // zero if zero != 0 else lane
    w = x_int32[zero - 1] if 0 <= zero - 1 < 4 else lane
    if zero > 3:
        w = x_int32[zero + 4]
    if zero == 3:
        w = T.cdiv(w, zero)
    if lane > 31 and x_int32[lane - 40] > 0:
        w = lane % zero
    o_int32[lane, 0] = v + w
