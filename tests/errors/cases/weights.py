"""Products with weights of 4 bits."""

from catalogue import Case, Topic

from warpjit.errors import ArgumentError

FRAME = """\
from warpjit.kernels.w4a16 import Tile, matmul
from warpjit.kernels.w4a16_pack import pack, pack_quantized

w, ones = torch.ones(64, 128).half(), torch.ones(64, 1).half()
q = torch.zeros(64, 128, dtype=torch.uint8)
...
"""

TOPIC = Topic(
    "The package's kernels",
    "Weights of 4 bits",
    (
        Case("pack(w[0])", "weight: expected a float tensor of shape (n, k) but got shape (128,) of torch.float16"),
        Case("pack(w[:0])", "weight: expected a matrix that is not empty but got shape (0, 128)"),
        Case('pack(w.to("meta"))', "weight: expected a dense tensor in memory but got torch.strided on meta"),
        Case("pack(w / 0)", "weight: expected finite numbers with scales in torch.float16 but got others"),
        Case("pack(w, dtype=torch.float64)", "dtype: expected float16 or bfloat16 but got torch.float64"),
        Case("pack(w, group=3)", "group: expected a power of two of at least 32 but got 3"),
        Case("pack_quantized(q[0], ones, ones)",
             "q: expected a tensor of two axes that are not empty but got shape (128,) of torch.uint8"),
        Case('pack_quantized(q, ones.to("meta"), ones)',
             "scales: expected a tensor on cpu, as q, but got one on meta"),
        Case("pack_quantized(q.to_sparse(), ones, ones)",
             "q: expected a dense tensor in memory but got torch.sparse_coo on cpu"),
        Case("pack_quantized(q, ones.T, ones)", "scales: expected shape (64, 1) but got (1, 64)"),
        Case("pack_quantized(q + 20, ones, ones)", "q: expected integers from 0 to 15 but got others, of torch.uint8"),
        Case("pack_quantized(q.to(torch.uint16), ones, ones)",
             "q: expected integers from 0 to 15 but got others, of torch.uint16"),
        Case("pack_quantized(q, ones / 0, q[:, :1])", "scales: expected finite numbers but got others"),
        Case("matmul(w, w)", "packed: expected what `pack` gives but got a tensor"),
        Case("matmul(w, pack(w), tile=64)", "tile: expected a Tile or None but got 64"),
        Case("matmul(w[:, :64], pack(w))",
             "x: expected torch.float16 of shape (…, m, 128) but got shape (64, 64) of torch.float16"),
        Case("matmul(w, pack(w), out=ones)",
             "out: expected a contiguous tensor of shape (64, 64), of float16, bfloat16 or float32, but got shape "
             "(64, 1), strides (1, 1) of torch.float16"),
        Case("Tile(0, 4, 2, 2)",
             "Tile(m=0, blocks=4, warps_n=2, warps_k=2, stages=3, splits=1): expected positive ints, 2 stages or "
             "more, and at most 32 warps"),
        Case("Tile(100, 4, 2, 2)",
             "Tile(m=100, blocks=4, warps_n=2, warps_k=2, stages=3, splits=1): expected m of 8, 16, or a multiple of "
             "32, and n that divides 64 or its multiple"),
    ),
    frame=FRAME,
    error=ArgumentError,
)  # fmt: skip
