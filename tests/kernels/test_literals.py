"""Literals have all their bits; a bool is whether a byte is not 0."""

from __future__ import annotations

import math
import struct

import torch

from warpjit import T, warpjit

DOUBLES = (0.1, -0.1, 1 / 3, math.pi, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e22, 2.0**63)
DOUBLES += (0.0, -0.0, math.inf, -math.inf, 1 + 2.0**-52, 123456789.123456789, 1e-5, 4503599627370497.5)
SINGLES = (0.1, 1e-45, 3.4028234663852886e38, 1 / 3, 16777217.0, -0.0, 8.5e-39)


@warpjit
def written(Doubles, Singles, Words):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    x = Doubles[0]
    for k, value in enumerate(DOUBLES):
        Doubles[k] = T.float64(value)
        Words[k] = T.reinterpret(x * 0 + value, "uint64")  # a literal takes the other side's type
    for k, value in enumerate(SINGLES):
        Singles[k] = value
    Words[len(DOUBLES)] = 2**64 - 1
    Words[len(DOUBLES) + 1] = T.uint64(T.int64(-(2**63)))


def test_literals_have_all_their_bits(device, run):
    doubles = torch.ones(len(DOUBLES), dtype=torch.float64, device=device)
    singles = torch.zeros(len(SINGLES), device=device)
    words = torch.zeros(len(DOUBLES) + 2, dtype=torch.uint64, device=device)
    run(written, doubles, singles, words)
    assert [struct.pack("<d", x) for x in doubles.tolist()] == [struct.pack("<d", x) for x in DOUBLES]
    assert singles.cpu().numpy().tobytes() == torch.tensor(SINGLES, dtype=torch.float64).float().numpy().tobytes()
    bits = [struct.unpack("<Q", struct.pack("<d", x + 0.0))[0] for x in DOUBLES]  # 0 + -0 is 0
    assert words.tolist() == [*bits, 2**64 - 1, 2**63]


@warpjit
def truths(Bytes, Flags, Outs, Numbers):
    """The same bytes read as bool from global memory, shared memory, registers and wide loads, and stored again."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=8, block=32))
    i = 32 * T.cuda.block_idx() + T.cuda.lane_id()
    shared = T.alloc_shared((32,), "uint8")
    shared[T.cuda.lane_id()] = Bytes[i]
    mine = T.alloc_local((4,), "uint8")
    mine[2] = Bytes[i]
    loaded = T.load(Flags[i : i + 1])
    values = (
        *(Flags[i], Bytes.view("bool")[i], shared.view("bool")[T.cuda.lane_id()], mine.view("bool")[2], loaded[0]),
        *(T.reinterpret(Bytes[i], "bool"), T.bool(Bytes[i])),
    )
    for k, value in enumerate(values):
        Outs[k, i] = value
        Numbers[k, i] = value + 2 * (not value) + 4 * (1 if value else 0)


def test_every_byte_but_0_is_true(device, run):
    octets = torch.arange(256, dtype=torch.uint8).to(device)
    outs = torch.zeros((7, 256), dtype=torch.bool, device=device)
    numbers = torch.zeros((7, 256), dtype=torch.int32, device=device)
    run(truths, octets, octets.view(torch.bool), outs, numbers)
    true = (torch.arange(256) != 0).expand(7, 256)
    assert torch.equal(outs.cpu().view(torch.uint8), true.to(torch.uint8))
    assert torch.equal(numbers.cpu(), torch.where(true, 5, 2).int())
