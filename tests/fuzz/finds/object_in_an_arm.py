"""An object that one arm of a branch made was compared with those of the other, which has none: an error of zip()."""

from warpjit import T, warpjit

GRID, BLOCK = 1, 32
SCALARS = {"n": ("int32", "5")}
INPUTS = {}
COUNTS = {}
RESULTS = {"o_int32": ("int32", 4)}


class Count:
    def __init__(self, start):
        self.start = start

    def step(self, by):
        self.start = self.start + by
        return self.start


@warpjit(contract=False)
def kernel(n: T.int32, o_int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=GRID, block=BLOCK))
    lane = T.cuda.lane_id()
    outer = Count(n)
    if lane > 3:
        inner = Count(lane)
        outer.start += inner.step(2)
    else:
        other = Count(lane)
        third = Count(other.step(3))
        if lane > 1:
            outer.start = third.step(4)
    o_int32[lane, 0] = outer.step(1)
