"""Bits of words under `T`."""

# The bodies never run (see `core`). PTX manual: "Integer Arithmetic Instructions", "Logic and Shift Instructions".

from __future__ import annotations

from typing import TYPE_CHECKING

from warpjit.frontend.language.intrinsic import intrinsic

if TYPE_CHECKING:
    from warpjit.frontend.language import Flag, Integer, S, int32


@intrinsic()
def popc(a: Integer) -> int32:
    """How many bits of a 32- or 64-bit integer are 1 (int32)."""


@intrinsic()
def clz(a: Integer) -> int32:
    """How many bits of a 32- or 64-bit integer stand above its highest 1: its width for 0 (int32)."""


@intrinsic()
def brev(a: S) -> S:
    """A 32- or 64-bit integer with its bits in the opposite order."""


@intrinsic()
def lop3(a: S, b: Integer, c: Integer, table: int) -> S:
    """Any function of three bits, bit by bit, of 32-bit integers: bit 4 * a + 2 * b + c of `table` (static, 0 to 255).

    The table is the function of the words 0xF0, 0xCC and 0xAA: of `a & b ^ c` it is 0xF0 & 0xCC ^ 0xAA. The result has
    a's type (uint32 where a is a Python int).
    """


@intrinsic()
def prmt(a: S, b: Integer, selector: Integer) -> S:
    """Four of the eight bytes of two 32-bit integers, in a's type.

    Hexadecimal digit i of `selector` says what byte i of the result is: 0 to 3 a byte of a, 4 to 7 one of b (the
    lowest first); with 8 added it is that byte's sign in all eight bits.
    """


@intrinsic()
def funnel_shift_left(low: S, high: Integer, n: Integer, *, clamp: Flag = False) -> S:
    """The upper 32 bits of the 64-bit word (high, low) shifted left by n: modulo 32, or with `clamp` at most 32."""


@intrinsic()
def funnel_shift_right(low: S, high: Integer, n: Integer, *, clamp: Flag = False) -> S:
    """The lower 32 bits of the 64-bit word (high, low) shifted right by n: modulo 32, or with `clamp` at most 32."""


__all__ = ["brev", "clz", "funnel_shift_left", "funnel_shift_right", "lop3", "popc", "prmt"]
