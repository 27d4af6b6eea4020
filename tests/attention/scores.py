"""Attention in float64, and the bounds that `attention` states for its results."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

# Half a unit in the last place of 1, and what a weight of 16 bits may lose besides where it is subnormal.
UNIT = {torch.bfloat16: (2.0**-8, 0.0), torch.float16: (2.0**-11, 2.0**-25)}
STEP = 2.0**-22


@dataclass(frozen=True)
class Inputs:
    """q, k and v, and how they are to be attended to."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    causal: bool = False
    scale: float | None = None

    @property
    def factor(self) -> float:
        return self.q.shape[-1] ** -0.5 if self.scale is None else self.scale

    @property
    def each_head(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """In float64, with keys and values for each head."""
        q, k, v = (each.double() for each in (self.q, self.k, self.v))
        repeats = q.shape[1] // max(k.shape[1], 1)
        return q, k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)

    @property
    def hidden(self) -> torch.Tensor:
        """(m, n): what a query does not see."""
        m, n = self.q.shape[2], self.k.shape[2]
        i, j = torch.arange(m, device=self.q.device), torch.arange(n, device=self.q.device)
        return (j[None, :] > i[:, None] + n - m) & torch.tensor(self.causal, device=self.q.device)


@dataclass(frozen=True)
class Expected:
    """Results and logarithms of sums in float64, and how far from them float32 may be."""

    out: torch.Tensor
    lse: torch.Tensor
    bound: torch.Tensor
    lse_bound: torch.Tensor


def expected(inputs: Inputs) -> Expected:
    """The sum of a row's weights is 1, or 0 where it sees no key."""
    q, k, v = inputs.each_head
    dim, n = q.shape[3], k.shape[2]
    scores = (q @ k.mT * inputs.factor).masked_fill(inputs.hidden, -math.inf)
    lse = torch.logsumexp(scores, -1)
    weights = torch.exp(scores - torch.where(lse == -math.inf, 0.0, lse)[..., None])
    out = weights @ v
    sizes = (q.abs() @ k.abs().mT * inputs.factor).masked_fill(inputs.hidden, 0.0)
    most = sizes.amax(-1) if n else lse.new_zeros(lse.shape)
    score_error = (-(-dim // 16) + 2) * STEP * most
    unit, subnormal = UNIT[inputs.q.dtype]
    relative = unit + 2 * score_error + (-(-n // 16) + 8) * STEP
    bound = unit * out.abs() + relative[..., None] * (weights @ v.abs())
    bound = (
        bound + subnormal * ((~inputs.hidden).double() @ v.abs()) + torch.finfo(inputs.q.dtype).smallest_normal * unit
    )
    return Expected(out, lse, bound, (score_error + 8 * STEP * (1 + lse.abs().nan_to_num(posinf=0.0))) / 4)


def assert_attention(inputs: Inputs, out: torch.Tensor, lse: torch.Tensor | None = None) -> None:
    """Each element is within its bound."""
    wanted = expected(inputs)
    _assert_near("out", out, wanted.out, wanted.bound, inputs)
    if lse is not None:
        assert lse.dtype == torch.float32 and lse.shape == out.shape[:3]
        _assert_near("lse", lse, wanted.lse, wanted.lse_bound, inputs)


def _assert_near(name: str, got: torch.Tensor, want: torch.Tensor, bound: torch.Tensor, inputs: Inputs) -> None:
    wrong = ~(((got.double() - want).abs() <= bound) | (got.double() == want))  # also where it is NaN
    if wrong.any():
        where = tuple(int(i) for i in wrong.nonzero()[0])
        raise AssertionError(
            f"{name} of q {tuple(inputs.q.shape)}, k {tuple(inputs.k.shape)}, causal={inputs.causal}: "
            f"{int(wrong.sum())} elements are wrong, the first at {where}: expected {want[where].item()} within "
            f"{bound[where].item()} but got {got[where].item()}"
        )
