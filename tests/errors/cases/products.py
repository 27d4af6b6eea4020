"""The package's own kernels: `warpjit.kernels`."""

from catalogue import Case, Topic

from warpjit.errors import ArgumentError

FRAME = """\
from warpjit.kernels.attention import attention
from warpjit.kernels.flash import Tile as AttentionTile
from warpjit.kernels.gemm import Tile
from warpjit.kernels.matmul import matmul
from warpjit.kernels.matmul_int8 import matmul_int8

a, b, i = torch.zeros(16, 32).half(), torch.zeros(32, 16).half(), torch.zeros(16, 16, dtype=torch.int8)
q = torch.zeros(1, 2, 16, 64).half()
...
"""

TOPIC = Topic(
    "The package's kernels",
    "Products and attention",
    (
        Case("matmul(3, b)", "a: expected a tensor but got 3"),
        Case("matmul(a.to_sparse(), b)",
             "a: expected a dense tensor in memory, but Cannot access data pointer of Tensor that doesn't have "
             "storage"),
        Case("matmul(a[0], b)",
             "a: expected a tensor of 2 or 3 axes of float16 or bfloat16 but got shape (32,) of torch.float16"),
        Case("matmul(a, a)",
             "b: expected torch.float16 of shape (…, 32, n) and a's batch but got torch.float16 of shape (16, 32), "
             "for a of shape (16, 32)"),
        Case("matmul(a, b, operands=[1])", "operands: expected a tuple, (x,) for one operand, but got a list"),
        Case("matmul(a, b, operands=(1,))", "matmul: operands are arguments of an epilogue, but there is none"),
        Case("matmul(a, b, tile=[64])", "tile: expected a Tile, \"tune\" or None but got [64]"),
        Case("matmul(a, b, tile=64)", "tile: expected a Tile, \"tune\" or None but got 64"),
        Case("matmul(a, b, torch.zeros(16, 8).half())",
             "out: expected a tensor of shape (16, 16) with contiguous rows, of float16, bfloat16 or float32, but "
             "got shape (16, 8), strides (8, 1) of torch.float16"),
        Case("matmul(a, b, torch.zeros(1, 16).half().expand(16, 16))",
             "out: expected a place in memory for each element but got shape (16, 16) with strides (0, 1)"),
        Case("matmul(a[:, :16], a[:, 16:].T, a[:, :16])", "out: expected memory apart from a's, but they overlap"),
        Case("matmul(a.expand(2, 16, 32), b, operands=(torch.zeros(3, 16, 16),), epilogue=lambda x, row, column, y: x)",
             "operands[0]: expected 2 matrices, one for each batch, but got 3"),
        Case("Tile(0, 128, 32, 64, 64, 3)",
             "Tile(m=0, n=128, k=32, warp_m=64, warp_n=64, stages=3, group=8): expected positive ints"),
        Case("Tile(100, 128, 32, 64, 64, 3)",
             "Tile(m=100, n=128, k=32, warp_m=64, warp_n=64, stages=3, group=8): expected m and n that the warps' "
             "parts divide, of multiples of 16, at most 32 warps, k a multiple of 32, and 2 stages or more"),
        Case("matmul_int8(i.float(), i)", "a: expected a matrix of int8 but got shape (16, 16) of torch.float32"),
        Case("matmul_int8(i, i[:8])", "b: expected shape (16, n) but got (8, 16), for a of shape (16, 16)"),
        Case('matmul_int8(i, i, "two")', "scale_a: expected a number or a tensor but got 'two'"),
        Case("matmul_int8(i, i, torch.zeros(3))",
             "scale_a: expected float32 of one element, of shape (16,) or (16, 1), but got shape (3,) of "
             "torch.float32"),
        Case("matmul_int8(i, i, 10**400)", "scale_a: expected a number or a tensor but got an int of 1329 bits"),
        Case('matmul_int8(i, i, out_dtype="float16")', "out_dtype: expected a torch.dtype or None but got 'float16'"),
        Case("matmul_int8(i, i, tile=[64])", "tile: expected a Tile or None but got [64]"),
        Case("matmul_int8(i, i, tile=64)", "tile: expected a Tile or None but got 64"),
        Case("matmul_int8(i, i, out=torch.zeros(16, 8, dtype=torch.int32))",
             "out: expected a tensor of shape (16, 16) with contiguous rows, of one of float16, bfloat16, float32, "
             "int32, but got shape (16, 8), strides (8, 1) of torch.int32"),
        Case("matmul_int8(i, i, out=torch.zeros(1, 16, dtype=torch.int32).expand(16, 16))",
             "out: expected a place in memory for each element but got shape (16, 16) with strides (0, 1)"),
        Case("matmul_int8(i, i, out=torch.zeros(16, 16, dtype=torch.int32), out_dtype=torch.float32)",
             "out: expected torch.float32, as out_dtype says, but got torch.int32"),
        Case("attention(q[0], q, q)",
             "q: expected a tensor (batch, heads, tokens, dim) of float16 or bfloat16 but got shape (2, 16, 64) of "
             "torch.float16"),
        Case("attention(q[..., :20], q, q)",
             "q: expected a head dimension that is a multiple of 16 up to 128 but got 20"),
        Case("attention(q, q.float(), q)",
             "k: expected a tensor (batch, heads, tokens, dim) of float16 or bfloat16 but got shape (1, 2, 16, 64) "
             "of torch.float32"),
        Case("attention(q, q, q[:, :1])",
             "v: expected k's type and shape, torch.float16 and (1, 2, 16, 64), but got torch.float16 of shape (1, "
             "1, 16, 64)"),
        Case("attention(q, q, q, scale=-1)", "scale: expected a positive number or None but got -1"),
        Case("attention(q, q, q, scale=10**400)",
             "scale: expected a positive number or None but got an int of 1329 bits"),
        Case("attention(q, q, q, causal=[])", "causal: expected a bool but got []"),
        Case("attention(q, q, q, tile={})", "tile: expected a Tile, \"tune\" or None but got {}"),
        Case("attention(q, q, q, causal=1)", "causal: expected a bool but got 1"),
        Case("attention(q, q, q, tile=64)", "tile: expected a Tile, \"tune\" or None but got 64"),
        Case("attention(q, q, q, out=q.float())",
             "out: expected torch.float16 of shape (1, 2, 16, 64), with contiguous rows and a place in memory for "
             "each element, but got torch.float32 of shape (1, 2, 16, 64), strides (2048, 1024, 64, 1)"),
        Case("AttentionTile(0, 64, 4)",
             "Tile(rows=0, keys=64, warps=4, stages=2, held=0, ctas=1): expected positive ints, and held of 0 or more"),
        Case("AttentionTile(100, 64, 4)",
             "Tile(rows=100, keys=64, warps=4, stages=2, held=0, ctas=1): expected rows that are a multiple of 16 "
             "for each warp, keys of a multiple of 16, 2 stages or more, at most 32 warps"),
        Case("attention(q, q[..., :32], q)",
             "k: expected torch.float16 of shape (1, a divisor of 2, tokens, 64) but got torch.float16 of shape (1, "
             "2, 16, 32), for q of shape (1, 2, 16, 64)"),
    ),
    frame=FRAME,
    error=ArgumentError,
)  # fmt: skip
