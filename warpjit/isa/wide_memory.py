"""Loads and stores of two or four 32-bit words: `LOAD_WORDS[(space, words)]`, `STORE_WORDS[(space, words)]`.

They move bits, so an unwritten byte is a mark in what was loaded, and not a use. Loads and stores of one element (and
of 4, 2 and 1 bytes) are in `memory`; forms with words of 8, 16 and 64 bits are left out, for they move the same bytes.
"""

from __future__ import annotations

import numpy as np

from warpjit.ir.dtypes import uint32
from warpjit.isa.memory import SPACES
from warpjit.isa.needs import EVERYWHERE
from warpjit.isa.row import Array, Asm, Kind, Mode, Operand, Row
from warpjit.isa.scalar_text import result, value

WORDS = (2, 4)
"""How many 32-bit words one access moves: 8 or 16 bytes, at a multiple of as many (PTX manual, "Vectors")."""


def _loaded_words(octets: Array) -> tuple[Array, ...]:
    """Bytes (*batch, 32, 4 * n) to n arrays of words (*batch, 32)."""
    found = np.ascontiguousarray(octets).view(uint32.numpy)
    return tuple(found[..., index] for index in range(found.shape[-1]))


def _stored_words(*words: Array) -> Array:
    return np.ascontiguousarray(np.stack(np.broadcast_arrays(*words), axis=-1), uint32.numpy).view(np.uint8)


def _words_place(name: str, mode: Mode, space: str, words: int) -> Operand:
    return Operand(name, Kind.ADDRESS, mode, space=space, bytes=4 * words, align=4 * words)


def _vector(names: list[str]) -> str:
    return "{{" + ", ".join(f"{{{name}}}" for name in names) + "}}"


def _load_words(space: str, words: int) -> Row:
    names = [f"d{index}" for index in range(words)]
    text = f"ld.{space}.v{words}.b32"
    return Row(
        text=text,
        operands=(*(result(name, uint32) for name in names), _words_place("src", Mode.READ, space, words)),
        code=Asm(f"{text} {_vector(names)}, [{{src}}];"),
        meaning=_loaded_words,
        needs=EVERYWHERE,
        memory=True,
        moves=True,
        section="Data Movement and Conversion Instructions: ld",
    )


def _store_words(space: str, words: int) -> Row:
    names = [f"a{index}" for index in range(words)]
    text = f"st.{space}.v{words}.b32"
    return Row(
        text=text,
        operands=(_words_place("dst", Mode.WRITE, space, words), *(value(name, uint32) for name in names)),
        code=Asm(f"{text} [{{dst}}], {_vector(names)};"),
        meaning=_stored_words,
        needs=EVERYWHERE,
        memory=True,
        moves=True,
        section="Data Movement and Conversion Instructions: st",
    )


LOAD_WORDS: dict[tuple[str, int], Row] = {
    (space, words): _load_words(space, words) for space in SPACES for words in WORDS
}
"""d0, d1, … = the words at src, in the order of addresses."""

STORE_WORDS: dict[tuple[str, int], Row] = {
    (space, words): _store_words(space, words) for space in SPACES for words in WORDS
}
"""The words at dst = a0, a1, …"""

ROWS: tuple[Row, ...] = (*LOAD_WORDS.values(), *STORE_WORDS.values())
