"""A static int of 64 bits became a float by way of float64: rounded twice. So did a float that becomes a bfloat16."""

from warpjit import T, warpjit

GRID, BLOCK = 1, 32
SCALARS = {"n": ("int32", "0")}
INPUTS = {"x_int64": ("int64", "1152921573326323713"), "x_float64": ("float64", "1.0039062500009095")}
COUNTS = {}
RESULTS = {"o_float32": ("float32", 4), "o_bfloat16": ("bfloat16", 4)}


@warpjit(contract=False)
def kernel(n: T.int32, x_int64, x_float64, o_float32, o_bfloat16):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=GRID, block=BLOCK))
    lane = T.cuda.lane_id()
    o_float32[lane, 0] = T.float32(T.int64(1152921573326323713))
    o_float32[lane, 1] = T.float32(1152921573326323713)
    o_float32[lane, 2] = T.float32(x_int64[0])
    o_float32[lane, 3] = T.float32(T.int64(-1152921573326323713))
    o_bfloat16[lane, 0] = T.bfloat16(1.0039062500009095)
    o_bfloat16[lane, 1] = T.bfloat16(T.float64(1.0039062500009095))
    o_bfloat16[lane, 2] = T.bfloat16(x_float64[0])
