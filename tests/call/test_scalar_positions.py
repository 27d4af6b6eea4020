"""Numbers of every type at every place among the parameters, on each way to a launch."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Launches

import warpjit as package
from warpjit import Kernel, T, warpjit
from warpjit.ir import dtypes
from warpjit.isa.target import Target

TYPES = (
    *(T.bool, T.float64, T.int8, T.uint64, T.float16, T.int16, T.float32, T.uint8, T.int64, T.bfloat16, T.int32),
    *(T.uint16, T.uint32),
)
VALUES = {
    **{T.bool: (True, False), T.int8: (-128, 127), T.int16: (-32768, 32767), T.int32: (-(2**31), 2**31 - 1)},
    **{T.int64: (-(2**63), 2**53 + 1), T.uint8: (255, 1), T.uint16: (65535, 2), T.uint32: (2**32 - 1, 3)},
    **{T.uint64: (2**64 - 1, 2**63), T.float16: (-65504.0, 0.1), T.bfloat16: (3.0e38, -0.3)},
    **{T.float32: (-3.4028234663852886e38, 1e-45), T.float64: (5e-324, 0.1)},
}
"""Two numbers of each type."""
FORMATS = {"float16": "H", "bfloat16": "H", "float32": "f", "float64": "d", "bool": "?"}
FORMATS |= {f"{sign}int{bits}": code for bits, codes in ((8, "bB"), (16, "hH"), (32, "iI"), (64, "qQ"))
            for sign, code in zip(("", "u"), codes, strict=True)}  # fmt: skip


def of_types(types: tuple[Any, ...]) -> Kernel:
    """A kernel of numbers of these types, which writes down the bits of each as one uint64."""

    def numbers(Out, a, b, c, d, e, f, g, h, i, j, k, l, m):  # noqa: E741
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        for n, x in enumerate((a, b, c, d, e, f, g, h, i, j, k, l, m)):
            word = x if x.dtype is T.bool else T.reinterpret(x, f"uint{x.dtype.bits}")
            Out[n] = T.uint64(word)

    numbers.__annotations__ = dict(zip("abcdefghijklm", types, strict=True))
    return warpjit(numbers)


def packed(value: Any, name: str) -> bytes:
    """The number as a parameter of its type, rounded once."""
    if name in ("float16", "bfloat16"):
        value = int(np.asarray(value, np.float64).astype(dtypes.dtype(name).numpy).view(np.uint16))
    return struct.pack("<" + FORMATS[name], value)


def rotated(by: int) -> tuple[Any, ...]:
    return (*TYPES[by:], *TYPES[:by])


ROTATIONS = (0, 4, 7, 9)


@pytest.mark.parametrize("by", ROTATIONS)
def test_what_the_kernel_reads(device, run, by):
    types = rotated(by)
    kernel = of_types(types)
    for turn in (0, 1, 0):
        values = [VALUES[each][turn] for each in types]
        expected = [int.from_bytes(packed(value, each.dtype.name), "little") for value, each in zip(values, types)]  # noqa: B905
        outs = [torch.zeros(13, dtype=torch.uint64, device=device) for _ in range(3)]
        run(kernel, outs[0], *values)
        kernel.bind(outs[1], *values)(outs[1], *values)
        ways = 2
        if device == "cuda":
            specs = T.Tensor((13,), "uint64"), *types
            package.compile(kernel, *specs, target="cuda")(outs[2], *values)
            ways = 3
        for out in outs[:ways]:
            assert out.tolist() == expected


@pytest.mark.parametrize("by", ROTATIONS)
def test_what_a_launch_passes(launches: Launches, by: int) -> None:
    """The slow first launch, the written one of later calls, and a bound call, with the driver's stand-in."""
    types = rotated(by)
    kernel = of_types(types)
    out = torch.zeros(13, dtype=torch.uint64)
    first, second = ([VALUES[each][turn] for each in types] for turn in (0, 1))
    launches.expect(kernel, out, *first)
    plan = kernel.program(kernel.specialization((out, *first), {}), Target.parse("sm_90a")).plan

    def expected(values: list[Any]) -> list[bytes]:
        given = [out.data_ptr(), *values]
        return [
            struct.pack("<Q", given[each.source[1]]) if each.pointer else packed(given[each.source[1]], each.dtype.name)
            for each in plan.parameters
        ]

    bound = kernel.bind(out, *first)
    for values in (first, second, first):
        for call in (kernel, bound):
            lines, _ = launches.of(lambda call=call, values=values: call(out, *values))
            (line,) = lines
            assert [bytes.fromhex(part) for part in line.partition(": ")[2].split()] == expected(values)
