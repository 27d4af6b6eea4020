"""4-bit elements: two a byte in memory and eight a register, read one by one, moved whole and cast."""

from __future__ import annotations

import pytest
import torch
from refusals import refused

from warpjit import T, warpjit
from warpjit.layout import S, TileLayout, laneid

NAMES = {"int4": torch.int8, "uint4": torch.uint8}
PLACED = TileLayout(S[(32, 16) : (1 @ laneid, 1)])


@warpjit
def unpacked(Words, Whole, Copied, Half, Floats, *, name):
    """Words (32, 8) bytes: a row of 16 elements a lane."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    elements = Words.view(name)
    tile = T.alloc_shared((32, 16), name)
    T.copy(tile, elements)
    T.cuda.cta_sync()
    for k in range(16):
        Whole[0, lane, k] = elements[lane, k]
        Whole[1, lane, k] = tile[lane, (k + lane) % 16]
    row = T.load(tile[lane, :])
    few = T.load(elements[lane, 8:16], width=1)
    for k in range(16):
        Whole[2, lane, k] = row[k]
    for k in range(8):
        Whole[3, lane, 8 + k] = few[k]
    mine = T.alloc_local((16,), name)
    for k in range(16):
        mine[k] = row[15 - k]
    T.store(Copied.view(name)[lane, :], mine)
    spread = T.alloc_local((32, 16), name, layout=PLACED)
    for k in range(16):
        spread.regs[k] = row[k]
    halves, floats = spread.cast("float16"), spread.cast("float32")
    for k in range(16):
        Half[lane, k] = halves.regs[k]
        Floats[lane, k] = floats.regs[k] + T.float32(row[k])
    T.ptx["cp.async.ca.shared.global"](tile.ptr(lane, 8), Words.view(name).ptr(lane, 0), 4)
    T.ptx["cp.async.wait_all"]()
    for k in range(8):
        Whole[3, lane, k] = tile[lane, 8 + k]


@pytest.mark.parametrize("name", NAMES)
def test_nibbles_in_memory_and_registers(device, run, name):
    words = torch.randint(0, 256, (32, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(5))
    numbers = torch.stack([words & 15, words >> 4], -1).view(32, 16).to(torch.int8)
    if name == "int4":
        numbers = (numbers ^ 8) - 8
    whole = torch.zeros((4, 32, 16), dtype=NAMES[name], device=device)
    copied = torch.zeros((32, 8), dtype=torch.uint8, device=device)
    half = torch.zeros((32, 16), dtype=torch.float16, device=device)
    floats = torch.zeros((32, 16), device=device)
    run(unpacked, words.to(device), whole, copied, half, floats, name=name)
    turned = torch.stack([row.roll(-lane) for lane, row in enumerate(numbers)])
    few = torch.cat([numbers[:, :8], numbers[:, 8:]], 1)
    for got, want in zip(whole.cpu(), (numbers, turned, numbers, few), strict=True):
        assert torch.equal(got, want.to(got.dtype))
    reversed_ = numbers.flip(1) & 15
    assert torch.equal(copied.cpu(), (reversed_[:, ::2] | reversed_[:, 1::2] << 4).to(torch.uint8))
    assert torch.equal(half.cpu(), numbers.half()) and torch.equal(floats.cpu(), 2.0 * numbers)


ONE = T.cuda.LaunchConfig(grid=1, block=32)


@warpjit
def parts_of_a_word(Out: T.Tensor((3, 32), "int32")):
    T.device_entry(launch=ONE)
    lane, some, filled = T.cuda.lane_id(), T.alloc_local((8,), "int4"), T.alloc_local((4,), "uint4")
    some[2], some[7] = lane, -3
    filled.fill(11)
    Out[0, lane], Out[1, lane], Out[2, lane] = some[2], some[7], filled[3]


def test_an_element_is_read_beside_others_that_nobody_wrote(device):
    out = torch.zeros(3, 32, dtype=torch.int32, device=device)
    parts_of_a_word(out)
    assert out.tolist() == [[(lane + 8) % 16 - 8 for lane in range(32)], [-3] * 32, [11] * 32]


def test_what_halves_of_bytes_cannot_do():
    def odd(Out):
        T.device_entry(launch=ONE)
        T.alloc_shared((4, 8), "int4").ptr(0, 3)

    def window(Out):
        T.device_entry(launch=ONE)
        tile = T.alloc_shared((4, 8), "int4")
        Out[0] = tile[0, 1:4][0]

    def partly(Out):
        T.device_entry(launch=ONE)
        T.copy(T.alloc_shared((4, 8), "int4"), T.alloc_shared((4, 8), "int4"), valid=(4, 6))

    assert [[message for message, _ in refused(body)] for body in (odd, window, partly)] == [
        ["expected the last index to be known to be even but shared holds int4, two a byte"],
        ["view(uint8) of tile: expected a last axis that is a multiple of 2 but got shape (3,)"],
        ["T.copy: dst: expected elements of a byte or more but shared holds int4: view it as uint8"],
    ]
