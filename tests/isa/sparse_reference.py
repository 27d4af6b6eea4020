"""How the manual's figures place the metadata of sparse matrices, one row at a time, and a reference of the products.

Independent of the package's arrays: everything is a loop over single elements. No tests here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from mma_model import LAYOUTS, modelled, read

from warpjit.isa.row import Array, Row

BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
    "e4m3": 8,
    "e5m2": 8,
    "s32": 32,
    "f32": 32,
}
_TEXT = re.compile(
    r"mma\.sp(::ordered_metadata)?\.sync\.aligned\.m16n8k(\d+)\.row\.col(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)\."
)


@dataclass(frozen=True)
class Form:
    """What a row's text says."""

    ordered: bool
    k: int
    saturate: bool
    result: str
    left: str
    right: str

    @classmethod
    def of(cls, row: Row) -> Form:
        found = _TEXT.match(row.text)
        assert found is not None
        return cls(bool(found[1]), int(found[2]), bool(found[3]), found[4], found[5], found[6])

    @property
    def bits(self) -> int:
        return BITS[self.left]

    @property
    def group(self) -> tuple[int, int]:
        """(stored, whole) elements of a group: 1 of 2 for tf32, two pairs of four for 4 bits, else 2 of 4."""
        return {32: (1, 2), 4: (4, 8)}.get(self.bits, (2, 4))

    @property
    def threads(self) -> int:
        """Threads of a group of four that contribute metadata (section "Sparse matrix storage")."""
        return {
            (32, 8): 1, (32, 16): 2, (16, 16): 1, (16, 32): 2, (8, 32): 2, (8, 64): 4, (4, 64): 2, (4, 128): 4
        }[self.bits, self.k]  # fmt: skip


def bits_of_row(form: Form, places: list[int]) -> int:
    """The metadata of one row, as one number: `places` are the columns of the stored elements."""
    stored, whole = form.group
    number = 0
    for chunk in range(form.k // whole):
        kept = [place % whole for place in places[chunk * stored : (chunk + 1) * stored]]
        if form.bits == 32:
            code = {0: 0b0100, 1: 0b1110}[kept[0]]
        elif form.bits == 4:
            code = kept[0] // 2 | kept[2] // 2 << 2
        else:
            code = kept[0] | kept[1] << 2
        number |= code << 4 * chunk
    return number


def metadata_of(form: Form, rows: list[list[int]], selector: int, noise: Array) -> Array:
    """Words (32,) of the lanes; lanes that do not contribute hold `noise`.

    The figures of "Matrix Fragments for sparse mma.…": T(4 i + …) for rows i and i + 8.
    """
    words = [int(each) for each in noise]
    half = {16: 16, 32: 16}.get(form.bits, 32)
    for i in range(8):
        low, high = bits_of_row(form, rows[i]), bits_of_row(form, rows[i + 8])
        first = 4 * i + form.threads * selector
        for t in range(form.threads):
            if half == 16:
                words[first + t] = low >> 16 * t & 0xFFFF | (high >> 16 * t & 0xFFFF) << 16
            else:
                words[first + t] = (high if t % 2 else low) >> 32 * (t // 2) & 0xFFFFFFFF
    return np.array(words, np.uint32)


def random_places(form: Form, rng: np.random.Generator) -> list[list[int]]:
    """For each of 16 rows the columns of its stored elements, group by group."""
    stored, whole = form.group
    rows = []
    for _ in range(16):
        places: list[int] = []
        for chunk in range(form.k // whole):
            if form.bits == 4:
                pairs = sorted(rng.choice(4, 2, replace=False).tolist())
                kept = [2 * pair + j for pair in pairs for j in (0, 1)]
            else:
                kept = sorted(rng.choice(whole, stored, replace=False).tolist())
            places += [whole * chunk + each for each in kept]
        rows.append(places)
    return rows


def float_products(form: Form, a: Array, b: Array, c: Array, rows: list[list[int]]) -> Array:
    """Codes of D for codes a (16, k / 2), b (8, k), c (16, 8)."""
    lines, columns, sums = (
        [[read(code, LAYOUTS[kind]) for code in line] for line in codes.tolist()]
        for codes, kind in ((a, form.left), (b, form.right), (c, form.result))
    )
    result = [
        [modelled(lines[i], [columns[j][place] for place in rows[i]], sums[i][j], form.result) for j in range(8)]
        for i in range(16)
    ]
    return np.array(result, c.dtype)


def integer(code: int, kind: str) -> int:
    """The number that a code of "s8", "u4", … is."""
    bits = BITS[kind]
    return code - (1 << bits) if kind[0] == "s" and code >> bits - 1 else code


def integer_products(form: Form, a: Array, b: Array, c: Array, rows: list[list[int]]) -> Array:
    """int32 D for codes a (16, k / 2), b (8, k) and integers c (16, 8)."""
    lines, columns = (
        [[integer(code, kind) for code in line] for line in codes.tolist()]
        for codes, kind in ((a, form.left), (b, form.right))
    )
    result = np.zeros((16, 8), np.int32)
    for i, j in np.ndindex(16, 8):
        total = int(c[i, j]) + sum(x * columns[j][place] for x, place in zip(lines[i], rows[i], strict=True))
        if form.saturate:
            total = min(max(total, -(2**31)), 2**31 - 1)
        result[i, j] = (total + 2**31) % 2**32 - 2**31
    return result
