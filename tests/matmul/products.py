"""Operands of products, and the bound that every element of a result must keep."""

from __future__ import annotations

import torch

# Half a unit in the last place of 1, and the relative Frobenius error that a product of random numbers may have.
ROUNDING = {torch.bfloat16: (2.0**-8, 1.8e-3), torch.float16: (2.0**-11, 3e-4), torch.float32: (2.0**-24, 5e-5)}
STEP = 2.0**-22
"""What one mma of k = 16 may cut off a sum, as a part of the magnitudes that it adds."""


def operand(shape: tuple[int, ...], dtype: torch.dtype, device: str, turned: bool) -> torch.Tensor:
    """Random numbers; `turned`: the last index but one is contiguous in memory."""
    if turned:
        *batch, rows, columns = shape
        return torch.randn(*batch, columns, rows, device=device).to(dtype).mT
    return torch.randn(*shape, device=device).to(dtype)


def poisoned(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> torch.Tensor:
    return torch.full(shape, float("nan"), dtype=dtype, device=device)


def assert_product(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """out = a @ b: each element |out − ref| ≤ u·|ref| + (⌈k/16⌉ + 1)·2⁻²²·Σ|a·b|, and on the whole."""
    expected = a.double() @ b.double()
    magnitude = a.double().abs() @ b.double().abs()
    unit, relative = ROUNDING[out.dtype]
    smallest = torch.finfo(out.dtype).smallest_normal * unit
    steps = -(-a.shape[-1] // 16) + 1
    bound = unit * expected.abs() + steps * STEP * magnitude + smallest
    error = (out.double() - expected).abs()
    wrong = ~(error <= bound)  # also where it is NaN
    if wrong.any():
        where = tuple(int(i) for i in wrong.nonzero()[0])
        raise AssertionError(
            f"{tuple(a.shape)} @ {tuple(b.shape)}: {int(wrong.sum())} elements are wrong, the first at {where}: "
            f"expected {expected[where].item()} within {bound[where].item()} but got {out[where].item()}"
        )
    if out.numel() >= 4096:
        assert (error.norm() / expected.norm()).item() <= relative
