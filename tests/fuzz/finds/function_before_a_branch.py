"""ptxas (13.0, every target) crashed on a `lop3` that is only compared with 0 for a branch."""

from warpjit import T, warpjit

GRID, BLOCK = 1, 32
SCALARS = {}
INPUTS = {"x_int32": ("int32", "-950734416 1675244631 2147483646 1 -206288681 -2 7 -1")}
COUNTS = {}
RESULTS = {"o_int64": ("int64", 1)}


@warpjit(contract=False)
def kernel(x_int32, o_int64):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=GRID, block=BLOCK))
    lane = T.cuda.lane_id()
    o_int64[lane, 0] = 5
    if T.lop3(x_int32[(lane + 1) % 8], x_int32[(lane + 2) % 8], lane, 12):
        o_int64[lane, 0] += 7
