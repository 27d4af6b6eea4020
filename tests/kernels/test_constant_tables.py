"""T.constant: tables in constant memory, of every type, captured and made in the kernel. Refusals: `tests/errors`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from warpjit import SimulationError, T, warpjit

ONE_WARP = T.cuda.LaunchConfig(grid=1, block=32)
SQUARES = T.constant(np.arange(32) ** 2, "int64")
GRID = T.constant([[0.5, 1.5, -2.5], [3.0, 1e30, -0.0]], "float16")
TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
TYPES += ("float16", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("dtype", TYPES)
def test_elements_of_every_type(device, run, dtype):
    numbers = np.arange(40) % 2 if dtype == "bool" else np.arange(40) * 3 + 1
    table = T.constant(numbers, dtype)

    @warpjit
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        lane = T.cuda.lane_id()
        Out[lane] = table[lane + 8]

    out = torch.zeros(32, dtype=getattr(torch, dtype), device=device)
    run(kernel, out)
    assert torch.equal(out.cpu(), torch.from_numpy(numbers[8:].copy()).to(out.dtype))


@pytest.mark.parametrize(("dtype", "ulp"), [("bfloat16", 7), ("float16", 10), ("float8_e4m3fn", 3), ("float8_e5m2", 2)])
def test_numbers_are_rounded_once(device, run, dtype, ulp):
    """By way of float32, whose last place is 2**-23, these would meet halfway and go to the even neighbour, 1."""
    above = 1 + 2.0 ** -(ulp + 1) + 2.0**-40
    table, kind = T.constant((above, -above), dtype), getattr(T, dtype)

    @warpjit
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        lane = T.cuda.lane_id()
        Out[lane] = T.float32(table[lane % 2]) if lane < 16 else T.float32(kind(above))

    out = torch.zeros(32, device=device)
    run(kernel, out)
    next_ = 1 + 2.0**-ulp
    assert out.tolist() == [next_, -next_] * 8 + [next_] * 16


def test_integers_keep_all_their_bits():
    words = (0, 2**63 + 1, 2**64 - 1)
    assert np.frombuffer(T.constant(words, "uint64").data, np.uint64).tolist() == list(words)


@warpjit
def looked_up(A: T.Tensor((32,), "int32"), Out: T.Tensor((4, 32), "float32")):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    i = A[lane]
    local = T.constant(tuple(1 / (k + 1) for k in range(8)))
    Out[0, lane] = T.float32(SQUARES[i])
    Out[1, lane] = T.float32(GRID[i % 2, i % 3])
    total = 0.0
    for k in range(8):
        total += local[k]
    Out[2, lane] = total
    Out[3, lane] = local[3] + local.sub[4:8][i % 4]


def test_tables_are_indexed_by_values_of_the_device(device, run):
    a = (torch.arange(32, dtype=torch.int32) * 7 % 32).to(device)
    out = torch.zeros(4, 32, device=device)
    run(looked_up, a, out)
    i = a.cpu().numpy()
    inverse = (1 / (np.arange(8) + 1)).astype(np.float32)
    with np.errstate(over="ignore"):
        grid = np.array([[0.5, 1.5, -2.5], [3.0, 1e30, -0.0]]).astype(np.float16)
    total = np.float32(0)
    for each in inverse:
        total += each
    wanted = [i.astype(np.float32) ** 2, grid[i % 2, i % 3], np.full(32, total), inverse[3] + inverse[4 + i % 4]]
    assert (out.cpu().numpy() == np.array(wanted, np.float32)).all()


def test_the_simulator_checks_the_index():
    with pytest.raises(SimulationError, match=r"out of bounds: table_1\[32\] but table_1 has shape \(32,\)"):
        looked_up(torch.full((32,), 32, dtype=torch.int32), torch.zeros(4, 32))


@pytest.mark.nvcc
def test_a_table_is_read_from_constant_memory():
    ptx = looked_up.ptx(target="sm_90a")
    assert "ld.const" in ptx


def test_a_changed_table_is_another_program():
    def made(table):
        @warpjit
        def kernel(Out):
            T.device_entry(launch=ONE_WARP)
            Out[T.cuda.lane_id()] = table[T.cuda.lane_id() % 2]

        return kernel.source(T.Tensor((32,), "float32"))

    assert made(T.constant((1.0, 2.0))) == made(T.constant((1, 2)))
    assert made(T.constant((1.0, 2.0))) != made(T.constant((1.0, 3.0)))
