"""A branch in a helper counted as an assignment of every attribute, which a conditional expression may not make."""

from warpjit import T, warpjit

GRID, BLOCK = 1, 32
SCALARS = {"n": ("int32", "5")}
INPUTS = {}
COUNTS = {}
RESULTS = {"o_int32": ("int32", 4)}


class Count:
    def __init__(self, start):
        self.start = start


def least(a, b):
    found = a
    if b < a:
        found = b
    return found


@warpjit(contract=False)
def kernel(n: T.int32, o_int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=GRID, block=BLOCK))
    lane = T.cuda.lane_id()
    count = Count(n)
    o_int32[lane, 0] = least(lane, count.start) if lane % 2 == 0 else lane
