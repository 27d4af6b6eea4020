"""A count of a wider type than what is shifted was cut to the narrower type: 256 shifted an int8 by 0."""

from warpjit import T, warpjit

GRID, BLOCK = 1, 32
SCALARS = {"n": ("int32", "256"), "k": ("int64", "4294967297")}
INPUTS = {"x_int8": ("int8", "5 -6"), "x_uint8": ("uint8", "200"), "x_int32": ("int32", "5 -6")}
COUNTS = {}
RESULTS = {"o_int8": ("int8", 4), "o_uint8": ("uint8", 4), "o_int32": ("int32", 4)}


@warpjit(contract=False)
def kernel(n: T.int32, k: T.int64, x_int8, x_uint8, x_int32, o_int8, o_uint8, o_int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=GRID, block=BLOCK))
    lane = T.cuda.lane_id()
    o_int8[lane, 0] = x_int8[0] << n
    o_int8[lane, 1] = x_int8[1] >> n
    o_int8[lane, 2] = x_int8[1] >> T.uint32(n)
    o_int8[lane, 3] = x_int8[0] << (n + lane - 256)
    o_uint8[lane, 0] = x_uint8[0] << n
    o_uint8[lane, 1] = x_uint8[0] >> (n + lane - 256)
    o_uint8[lane, 2] = x_uint8[0] >> T.uint64(k)
    o_int32[lane, 0] = x_int32[0] << k
    o_int32[lane, 1] = x_int32[1] >> k
    o_int32[lane, 2] = x_int32[1] >> T.uint16(k)
