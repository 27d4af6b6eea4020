"""out = gelu(a @ b + bias) by warpjit's matrix product: the error against float64 and, on a GPU, TFLOP/s beside torch.

    python examples/matmul.py [M N K] [--dtype float16]

Without a GPU the product is simulated: keep it small.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch

from warpjit import T
from warpjit.kernels.matmul import matmul


def bias_gelu(value, row, column, bias):
    """What becomes of a sum before it is rounded: GELU, by the error function."""
    x = value + bias[column]
    return 0.5 * x * (1.0 + T.erf(x * 0.7071067811865476))


def rate(flop: int, call: Callable[[], object], calls: int = 20) -> float:
    """TFLOP/s of back-to-back calls."""
    for _ in range(3):
        call()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return flop * calls / start.elapsed_time(end) / 1e9


def main() -> None:
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = [4096, 4096, 4096] if gpu else [48, 40, 64]
    parser.add_argument("size", type=int, nargs="*", default=size, metavar="N", help="M, N and K")
    parser.add_argument("--dtype", choices=("float16", "bfloat16"), default="bfloat16")
    chosen = parser.parse_args()
    if len(chosen.size) != 3:
        parser.error("expected three sizes: M N K")
    m, n, k = chosen.size
    dtype, device = getattr(torch, chosen.dtype), "cuda" if gpu else "cpu"
    torch.manual_seed(0)
    a, b = torch.randn(m, k, device=device).to(dtype), torch.randn(k, n, device=device).to(dtype)
    bias = torch.randn(n, device=device)

    out = matmul(a, b, epilogue=bias_gelu, operands=(bias,))

    expected = torch.nn.functional.gelu(a.double() @ b.double() + bias.double())
    error = (out.double() - expected).norm() / expected.norm()
    where = f"on {torch.cuda.get_device_name()}" if gpu else "in the simulator, on the CPU"
    print(f"gelu(a @ b + bias), ({m}, {k}) x ({k}, {n}), {chosen.dtype} with float32 sums, {where}")
    print(f"relative error against float64: {error.item():.2e} (allowed: 4e-3)")
    if not error <= 4e-3:
        raise SystemExit("wrong")
    if gpu:
        flop, plain = 2 * m * n * k, torch.empty_like(out)
        ours = rate(flop, lambda: matmul(a, b, out=plain))
        theirs = rate(flop, lambda: torch.mm(a, b, out=plain))
        fused = rate(flop, lambda: matmul(a, b, out=plain, epilogue=bias_gelu, operands=(bias,)))
        print(f"a @ b: {ours:.0f} TFLOP/s, torch.mm {theirs:.0f}; with the epilogue {fused:.0f}")


if __name__ == "__main__":
    main()
