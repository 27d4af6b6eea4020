"""What the kernels that test rows share: which rows go into one kernel, and how registers come into fragments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.isa_inputs import kinds
from warpjit import Kernel, T
from warpjit.ir.dtypes import float64
from warpjit.isa.row import Row

ROWS_A_KERNEL = 8


def loaded(fragment, source, index, product, lane):
    """The fragment, with each lane's registers from `source`."""
    words = fragment.storage.view(source.dtype)
    for r in T.unroll(source.shape[3]):
        words[r] = source[index, product, lane, r]
    return fragment


def call(kernel: Kernel, *args: Any, **constants: Any) -> None:
    """What runs a kernel, where nobody wants to know."""
    kernel(*args, **constants)


def groups(chosen: Iterable[Row], most: int = ROWS_A_KERNEL) -> list[tuple[Row, ...]]:
    """Rows that one kernel can hold: at most so many, with operands and inputs of the same sizes."""
    alike: dict[object, list[Row]] = {}
    for row in chosen:
        sizes = tuple((each.registers, each.dtype == float64) for each in row.operands)
        alike.setdefault((sizes, kinds(row)), []).append(row)
    return [tuple(found[start : start + most]) for found in alike.values() for start in range(0, len(found), most)]
