"""Offsets beyond 2**31 bytes: loads in both back ends, on memory that is mostly not there; all accesses on the GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from warpjit import T, warpjit

ROWS, COLUMNS = 5, 1 << 30
ROW, COLUMN = 4, (1 << 30) - 2048
COPY = T.ptx["cp.async.cg.shared.global"]
BYTES = T.Tensor((ROWS, COLUMNS), "uint8")


@warpjit
def read(
    A: BYTES, Flat: T.Tensor((ROWS * COLUMNS,), "uint8"), Out: T.Tensor((7, 32), "uint8"), row: T.int32, at: T.int32
):
    """Byte 16 * lane after (row, at), in every way; the last way at a multiple of 2**32."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    T.assume(at % 16 == 0)
    lane = T.cuda.lane_id()
    box, other = T.alloc_shared((512,), "uint8"), T.alloc_shared((512,), "uint8")
    start = at + 16 * lane
    Out[0, lane] = A[row, start]
    Out[1, lane] = T.load(A.sub[row, start : start + 16], width=16)[0]
    T.copy(box, A.sub[row, at : at + 512])
    COPY(other.ptr(16 * lane), A.ptr(row, start), 16)
    T.ptx["cp.async.wait_all"]()
    T.cuda.cta_sync()
    Out[2, lane], Out[3, lane] = box[16 * lane], other[16 * lane]
    window = A[row : row + 1, at : at + 512]
    Out[4, lane] = window[0, 16 * lane]
    far = T.int64(row) * COLUMNS + at
    Out[5, lane] = Flat[far + 16 * lane]
    Out[6, lane] = T.load(Flat[far : far + 512].sub[16 * lane : 16 * lane + 4], width=1)[0]


def check_read(run, a: torch.Tensor, device: str) -> None:
    for row, column in ((ROW, COLUMN), (2, 0), (2, 512), (1, COLUMNS - 512)):
        values = torch.randint(0, 256, (512,), dtype=torch.uint8)
        a[row, column : column + 512] = values.to(device)
        out = torch.zeros(7, 32, dtype=torch.uint8, device=device)
        run(read, a, a.view(-1), out, row, column)
        assert out.tolist() == [values[::16].tolist()] * 7


def test_loads_beyond_31_bits(run, device, tmp_path):
    if device == "cuda":
        check_read(run, torch.zeros(ROWS, COLUMNS, dtype=torch.uint8, device=device), device)
    else:  # a file with holes: pages that nobody writes take no memory
        holes = np.memmap(tmp_path / "far", np.uint8, "w+", shape=(ROWS, COLUMNS))
        check_read(run, torch.from_numpy(holes), device)


@warpjit
def written(A: BYTES, Words: T.Tensor((ROWS, COLUMNS // 4), "int32"), row: T.int32, at: T.int32):
    """512 bytes at (row, at) each by plain stores, T.store, T.copy, and atomics."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    T.assume(at % 16 == 0)
    lane = T.cuda.lane_id()
    box, mine = T.alloc_shared((512,), "uint8"), T.alloc_local((16,), "uint8")
    for i in T.unroll(16):
        mine[i] = T.uint8(lane)
        box[16 * lane + i] = T.uint8(lane)
        A[row, at + 16 * lane + i] = T.uint8(lane)
    T.store(A.sub[row, at + 512 + 16 * lane : at + 512 + 16 * lane + 16], mine)
    T.cuda.cta_sync()
    T.copy(A.sub[row, at + 1024 : at + 1536], box)
    for i in T.unroll(4):
        T.atomic_add(Words, (row, (at + 1536) // 4 + 4 * lane + i), T.int32(lane) * 0x01010101)


@pytest.mark.gpu
def test_stores_and_atomics_beyond_31_bits():
    a = torch.zeros(ROWS, COLUMNS, dtype=torch.uint8, device="cuda")
    for row, column in ((ROW, COLUMN), (2, 0), (0, COLUMN)):
        written(a, a.view(torch.int32), row, column)
        lanes = torch.arange(32, dtype=torch.uint8).repeat_interleave(16).repeat(4)
        assert torch.equal(a[row, column : column + 2048].cpu(), lanes)
    assert int(a.count_nonzero()) == 3 * 4 * 31 * 16


def test_offsets_are_of_64_bits_where_a_tensor_needs_them():
    """Stores too, which the simulator would copy 5 GiB for."""
    small = T.Tensor((ROWS, 2048), "uint8")
    far = written.source(target="sm_90a")
    assert "long long offset" in far and "int offset" not in far.replace("long long offset", "")
    assert "long long" not in read_near.source(small, target="sm_90a")


@warpjit
def read_near(A):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    A[4, T.cuda.lane_id()] = T.uint8(0)
