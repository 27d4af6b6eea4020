"""Loads and stores of one element: `LOAD[(space, dtype name)]`, `STORE[(space, dtype name)]`.

The address is a typed C++ lvalue, so the compiler picks the instruction and knows what may alias. A bool is a byte:
stored it is 0 or 1, loaded it is whether the byte is not 0, which C++'s own bool would not look at. Matrix
moves, asynchronous copies and wide accesses have rows of their own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpjit.ir import numerics
from warpjit.ir.dtypes import DType, uint8
from warpjit.isa.needs import EVERYWHERE
from warpjit.isa.row import Array, Cxx, Kind, Mode, Operand, Row
from warpjit.isa.scalar_text import STORED, plain, result, value

SPACES = ("global", "shared")


def _address(name: str, mode: Mode, space: str, of: DType) -> Operand:
    return Operand(name, Kind.ADDRESS, mode, dtype=of, space=space, bytes=of.bytes, align=of.bytes)


def _from_bytes(of: DType) -> Callable[..., Array]:
    """Bytes (*batch, 32, n) to elements (*batch, 32)."""
    word = of.unsigned_word
    return plain(lambda octets: numerics.bitcast(numerics.pack(octets, word) if of.bytes > 1 else octets[..., 0], of))


def _to_bytes(of: DType) -> Callable[..., Array]:
    word = of.unsigned_word
    return plain(lambda values: numerics.unpack(np.asarray(numerics.bitcast(values, word)), uint8))


LOAD: dict[tuple[str, str], Row] = {
    (space, of.name): Row(
        text=f"load.{space}.{of.ptx}",
        operands=(result("d", of), _address("src", Mode.READ, space, uint8 if of.is_bool else of)),
        code=Cxx("{d} = {src} != 0;" if of.is_bool else "{d} = {src};"),
        meaning=_from_bytes(of),
        needs=EVERYWHERE,
        section="Data Movement and Conversion Instructions: ld",
    )
    for space in (*SPACES, "constant")
    for of in STORED
}
"""d = the element at src. Not pure: what it reads may be written between two loads."""

STORE: dict[tuple[str, str], Row] = {
    (space, of.name): Row(
        text=f"store.{space}.{of.ptx}",
        operands=(_address("dst", Mode.WRITE, space, of), value("a", of)),
        code=Cxx("{dst} = {a};"),
        meaning=_to_bytes(of),
        needs=EVERYWHERE,
        memory=True,
        section="Data Movement and Conversion Instructions: st",
    )
    for space in SPACES
    for of in STORED
}
"""The element at dst = a."""

ROWS: tuple[Row, ...] = (*LOAD.values(), *STORE.values())
