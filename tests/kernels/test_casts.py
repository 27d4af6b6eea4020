"""Conversions between all types on the way through shared memory and packed registers: CUDA's, on both devices.

The first rows hold values that every type of the same sign has room for, where torch says what a conversion gives; the
last row the extremes of the source's type, where integers wrap, floats saturate and NaN becomes some integer.
"""

from __future__ import annotations

import pytest
import torch
from both import assert_same_bits

from warpjit import T, warpjit
from warpjit.ir import conversion, dtypes

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = (*FLOATS, *INTEGERS, "bool")
ROWS = 3


@warpjit
def converted(A, outs):
    """Each output: A converted to its type."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    box = T.alloc_shared((ROWS, 32), A.dtype)
    for i in range(ROWS):
        box[i, lane] = A[i, lane]
    for out in outs:
        mine = T.alloc_local((ROWS,), out.dtype)
        for i in range(ROWS):
            mine[i] = T.cast(box[i, lane], out.dtype)
        for i in range(ROWS):
            out[i, lane] = mine[i]


def samples(name: str) -> torch.Tensor:
    """(ROWS, 32) values of a type."""
    kind = getattr(torch, name)
    small = torch.cat([torch.arange(32), torch.arange(95, 127)]).double()
    if name in FLOATS:
        small = small + torch.tensor([0.0, 0.25, 0.5, 0.75]).repeat(16)
        info = torch.finfo(kind)
        ends = [0.0, -0.0, info.max, info.min, info.tiny, torch.inf, -torch.inf, torch.nan, -0.5, -1.5, 255.5, 300.0]
        ends += [-129.0, 32768.0, 65535.0, 65504.0, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 2049.0]
        last = torch.tensor(ends + [3.5] * (32 - len(ends)), dtype=torch.float64).to(kind)
    elif name == "bool":
        small, last = small % 2, torch.arange(32) % 3 == 0
    else:
        last = torch.randint(0, 256, (32, kind.itemsize), dtype=torch.uint8).view(kind)[:, 0]
        last[:4] = torch.tensor([0, 1, 127, 0], dtype=kind)
    return torch.cat([small.to(kind).view(2, 32), last.view(1, 32)])


def as_array(tensor: torch.Tensor, name: str):
    raw = tensor.contiguous().view(torch.uint8).numpy()
    return raw.view(dtypes.dtype(name).numpy)


@pytest.mark.parametrize("source", DTYPES)
def test_conversions_to_every_type(device, both, source):
    a = samples(source)
    outs = tuple(torch.zeros((ROWS, 32), dtype=getattr(torch, target), device=device) for target in DTYPES)
    both(converted, a.to(device), outs)
    for target, out in zip(DTYPES, outs, strict=True):
        assert_same_bits(a[:2].double().to(out.dtype), out[:2])
        expected = conversion.convert(as_array(a, source), dtypes.dtype(target))
        assert as_array(out.cpu(), target).tobytes() == expected.tobytes(), target
