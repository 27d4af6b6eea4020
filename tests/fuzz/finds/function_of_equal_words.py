"""ptxas made another function of `lop3` with a word that stands there twice: on the GPU alone (13.0, sm_90a)."""

from warpjit import T, warpjit

GRID, BLOCK = 1, 32
SCALARS = {}
INPUTS = {"x_int32": ("int32", "-950734416 1675244631 2147483646 1 -206288681 -2 7 -1")}
COUNTS = {}
RESULTS = {"o_int32": ("int32", 1)}


@warpjit(contract=False)
def kernel(x_int32, o_int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=GRID, block=BLOCK))
    lane = T.cuda.lane_id()
    v = x_int32[lane % 8]
    for _ in range(4):
        v ^= T.lop3(v, v, x_int32[(lane + 3) % 8], 159) ^ 32
    o_int32[lane, 0] = v
