"""8-bit floats: every byte to every type, and numbers of every type to 8 bits, one by one and in fragments."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from both import assert_same_bits, run_both, unbuilt

from warpjit import T, warpjit
from warpjit.ir import conversion, dtypes
from warpjit.layout import S, TileLayout, laneid

TYPES = ("float8_e4m3fn", "float8_e5m2")
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
BUILT = ("float8_e4m3fn", "float32", "float64")
"""The sources of the kernels that are built for every target."""
LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


@warpjit
def converted(A, outs):
    """Each output: A, n elements, converted to its type."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=A.shape[0] // 32, block=32))
    i = 32 * T.cuda.block_idx() + T.cuda.lane_id()
    x = A[i]
    for out in outs:
        out[i] = x


def as_array(tensor: torch.Tensor, name: str) -> np.ndarray:
    return tensor.cpu().contiguous().view(torch.uint8).numpy().view(dtypes.dtype(name).numpy)


def check(a: torch.Tensor, name: str, outs: tuple[torch.Tensor, ...], targets: tuple[str, ...]) -> None:
    for target, out in zip(targets, outs, strict=True):
        expected = conversion.convert(as_array(a, name), dtypes.dtype(target))
        assert as_array(out, target).tobytes() == expected.tobytes(), target


@pytest.mark.parametrize("name", TYPES)
def test_every_byte_to_every_type(device, run, name):
    a = torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))
    targets = (*FLOATS, *INTEGERS, "bool", *TYPES)
    outs = tuple(torch.zeros(256, dtype=getattr(torch, target), device=device) for target in targets)
    run_both(run if name in BUILT else unbuilt, converted, a.to(device), outs)
    check(a, name, outs, targets)
    for target, out in zip(FLOATS, outs, strict=False):  # exact, so torch's are the same but for the NaNs' bits
        torch.testing.assert_close(out.cpu(), a.to(getattr(torch, target)), rtol=0, atol=0, equal_nan=True)


def samples(name: str) -> torch.Tensor:
    """Numbers of a type around all borders of the 8-bit floats: each, the middles between them, and a bit beside."""
    if name in INTEGERS or name == "bool":
        kind = getattr(torch, name)
        random = torch.randint(0, 256, (224, kind.itemsize), dtype=torch.uint8).view(torch.uint8)
        return torch.cat([torch.arange(32).to(kind), (random & 1 if name == "bool" else random).view(kind)[:, 0]])
    numbers = torch.cat([torch.arange(256, dtype=torch.uint8).view(getattr(torch, each)).double() for each in TYPES])
    numbers = numbers[numbers.isfinite()].unique()
    middles = (numbers[1:] + numbers[:-1]) / 2
    points = torch.cat([numbers, middles, torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, -torch.nan])])
    kind = getattr(torch, name)
    beside = [points * (1 + step) for step in (0, 2.0**-10, -(2.0**-10), 2.0**-23, -(2.0**-23), 2.0**-45, -(2.0**-45))]
    found = torch.cat([*beside, torch.tensor([1e-8, -1e-8, 1e4, 3e38, -1e5, 464.0, 61440.0])]).to(kind)
    return torch.cat([found, found[: -len(found) % 32]])


@pytest.mark.parametrize("name", (*FLOATS, *INTEGERS, "bool"))
def test_numbers_of_every_type_to_8_bits(device, run, name):
    a = samples(name)
    outs = tuple(torch.zeros(len(a), dtype=getattr(torch, target), device=device) for target in TYPES)
    run_both(run if name in BUILT else unbuilt, converted, a.to(device), outs)
    check(a, name, outs, TYPES)
    for target, out in zip(TYPES, outs, strict=True):
        inside = (a.double().abs() <= LARGEST[target]) if name in FLOATS else torch.zeros(len(a), dtype=torch.bool)
        if name != "float64":  # which torch rounds twice
            assert_same_bits(a.float().to(getattr(torch, target))[inside], out.cpu()[inside])


PLACED = TileLayout(S[(32, 8) : (1 @ laneid, 1)])


@warpjit
def cast_fragments(A, outs):
    """A (32, 8), a row a lane, cast whole to each output's type and back to float32."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    mine = T.alloc_local((32, 8), A.dtype, layout=PLACED)
    for i in range(8):
        mine.regs[i] = A[lane, i]
    for out, back in outs:
        there = mine.cast(out.dtype)
        for i in range(8):
            out[lane, i] = there.regs[i]
        again = there.cast("float32")
        for i in range(8):
            back[lane, i] = again.regs[i]


@pytest.mark.parametrize("name", ("float16", "bfloat16", "float32", *TYPES))
def test_fragments_are_cast_in_pairs(device, run, name):
    a = samples("float32")[:: len(samples("float32")) // 256][:256].view(32, 8).to(getattr(torch, name))
    targets = ("float16", "bfloat16", "float32", *TYPES)
    outs = tuple(
        (torch.zeros((32, 8), dtype=getattr(torch, target), device=device), torch.zeros((32, 8), device=device))
        for target in targets
    )
    run_both(run if name in BUILT else unbuilt, cast_fragments, a.to(device), outs)
    check(a, name, tuple(out for out, _ in outs), targets)
    for target, (out, back) in zip(targets, outs, strict=True):
        check(out, target, (back,), ("float32",))
