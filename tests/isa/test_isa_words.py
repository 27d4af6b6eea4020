"""Rows on the bits of words against Python's integers."""

from __future__ import annotations

import pytest
from isa_values import values

from warpjit.ir.dtypes import dtype, uint32
from warpjit.isa import scalar_words as words
from warpjit.isa.row import Array

COUNT = 3000


def some(seed: int, name: str = "uint32") -> Array:
    return values(dtype(name), COUNT, seed)


COUNTS = {
    "popc": lambda x, bits: x.bit_count(),
    "clz": lambda x, bits: bits - x.bit_length(),
    "brev": lambda x, bits: int(f"{x:0{bits}b}"[::-1], 2),
}


@pytest.mark.parametrize(("name", "bits"), list(words.COUNT))
def test_one_word(name: str, bits: int) -> None:
    a = some(1, f"uint{bits}")
    got = words.COUNT[name, bits].meaning(a)
    assert got.tolist() == [COUNTS[name](x, bits) for x in a.tolist()]


@pytest.mark.parametrize("table", [0, 0x80, 0xE8, 0xF0 & 0xCC ^ 0xAA, 0x1B, 0xFF])
def test_lop3(table: int) -> None:
    a, b, c = some(2), some(3), some(4)
    got = words.LOP3.meaning(a, b, c, lut=table)
    for x, y, z, found in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True):
        bits = (table >> (4 * (x >> i & 1) + 2 * (y >> i & 1) + (z >> i & 1)) & 1 for i in range(32))
        assert found == sum(bit << i for i, bit in enumerate(bits))


def octet(x: int, y: int, index: int) -> int:
    return (y << 32 | x) >> 8 * index & 255


FIXED = {
    "f4e": lambda s: (s, s + 1, s + 2, s + 3),
    "b4e": lambda s: (s, (s - 1) % 8, (s - 2) % 8, (s - 3) % 8),
    "rc8": lambda s: (s,) * 4,
    "ecl": lambda s: tuple(max(i, s) for i in range(4)),
    "ecr": lambda s: tuple(min(i, s) for i in range(4)),
    "rc16": lambda s: (2 * (s & 1), 2 * (s & 1) + 1) * 2,
}


def permuted(mode: str, x: int, y: int, z: int) -> int:
    if mode:
        return sum(octet(x, y, index) << 8 * i for i, index in enumerate(FIXED[mode](z & 3)))
    total = 0
    for i in range(4):
        digit = z >> 4 * i & 15
        chosen = octet(x, y, digit & 7)
        total |= (chosen if digit < 8 else 255 * (chosen >> 7)) << 8 * i
    return total


@pytest.mark.parametrize("mode", list(words.PERMUTE))
def test_permutations(mode: str) -> None:
    a, b, c = some(5), some(6), some(7)
    got = words.PERMUTE[mode].meaning(a, b, c)
    assert got.tolist() == [permuted(mode, *each) for each in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]


@pytest.mark.parametrize(("direction", "mode"), list(words.FUNNEL))
def test_funnel_shifts(direction: str, mode: str) -> None:
    a, b, c = some(8), some(9), some(10)
    c[::2] %= 40
    got = words.FUNNEL[direction, mode].meaning(a, b, c)
    for x, y, z, found in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True):
        n = z & 31 if mode == "wrap" else min(z, 32)
        wide = y << 32 | x
        assert found == ((wide << n) >> 32 if direction == "l" else wide >> n) & 0xFFFFFFFF


@pytest.mark.parametrize("name", list(words.EXTRACT_FIELD))
def test_extracted_fields(name: str) -> None:
    a, start, length = some(11, name), some(12) % 300, some(13) % 300
    got = words.EXTRACT_FIELD[name].meaning(a, start, length)
    bits = dtype(name).bits
    for x, p, n, found in zip(a.tolist(), start.tolist(), length.tolist(), got.tolist(), strict=True):
        p, n = p & 255, n & 255
        sign = x >> min(p + n - 1, bits - 1) & 1 if name.startswith("int") and n else 0
        places = [(x >> p + i & 1 if i < n and p + i < bits else sign) for i in range(bits)]
        value = sum(bit << i for i, bit in enumerate(places))
        assert found == (value - (1 << bits) if name.startswith("int") and places[-1] else value)


@pytest.mark.parametrize("bits", [32, 64])
def test_inserted_fields(bits: int) -> None:
    a, b = some(14, f"uint{bits}"), some(15, f"uint{bits}")
    start, length = some(16) % 80, some(17) % 80
    got = words.INSERT_FIELD[bits].meaning(a, b, start, length)
    for x, y, p, n, found in zip(*(each.tolist() for each in (a, b, start, length, got)), strict=True):
        mask = ((1 << n) - 1 << p) & (1 << bits) - 1
        assert found == y & ~mask | x << p & mask


def test_every_table_is_legal() -> None:
    assert words.LOP3.operand("lut").choices == tuple(range(256)) and words.LOP3.operand("d").dtype is uint32
