"""Loads and stores of global memory that say how caches treat them, non-coherent loads, and prefetches.

    CACHED_LOAD[(how, bits, words)], CACHED_STORE[(how, bits, words)]     `words` words of `bits` bits at once
    PREFETCH[level]                                                       a hint about the line at an address

`how` is written as in the instruction, without the leading dot: a cache operator ("cs"), an eviction priority of the L1
("L1::no_allocate"), "nc" alone or with one of these ("nc.L1::evict_last", "cg.nc"), and, but after a cache operator, a
prefetch size of the L2 ("nc.L2::128B"). `spelled` finds it for the parts in any order. A non-coherent load may be
served by a cache that sees no writes, so what it reads must not change while the kernel runs.

Sections of the manual: "Cache Operators", "Cache Eviction Priority Hints", "ld", "ld.global.nc", "st" and "prefetch,
prefetchu". Left out: L2 eviction priorities of ld and st (which only vectors of 256 bits have) and cache policies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from warpjit.ir.dtypes import DType, dtype
from warpjit.isa.needs import EVERYWHERE, since
from warpjit.isa.row import Array, Asm, Hint, Kind, Mode, Needs, Operand, Row
from warpjit.isa.scalar_text import result, value

_SECTION = "Data Movement and Conversion Instructions: "

LOAD_OPERATORS = ("ca", "cg", "cs", "lu", "cv")
STORE_OPERATORS = ("wb", "cg", "cs", "wt")
NC_OPERATORS = ("ca", "cg", "cs")
PRIORITIES = ("L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate")
PREFETCH_SIZES = ("L2::64B", "L2::128B", "L2::256B")

_PLAIN = ("", *PRIORITIES, "nc", *(f"nc.{each}" for each in PRIORITIES))

LOADS = (
    *LOAD_OPERATORS,
    *(f"{each}.nc" for each in NC_OPERATORS),
    *(each for each in _PLAIN if each),
    *(".".join(filter(None, (how, size))) for how in _PLAIN for size in PREFETCH_SIZES),
)
"""How a load may be cached."""
STORES = (*STORE_OPERATORS, *PRIORITIES)
"""How a store may be cached."""

WORDS = ((8, 1), (16, 1), (32, 1), (32, 2), (32, 4))
"""(bits, words) of one access."""


def spelled(how: str, legal: Sequence[str]) -> str | None:
    """The one of `legal` that has the parts of `how`, in any order; None if there is none."""
    parts = sorted(how.removeprefix(".").split("."))
    return next((each for each in legal if sorted(each.split(".")) == parts), None)


def _loaded(word: DType) -> Callable[..., tuple[Array, ...]]:
    def meaning(octets: Array) -> tuple[Array, ...]:
        found = np.ascontiguousarray(octets).view(word.numpy)
        return tuple(found[..., index] for index in range(found.shape[-1]))

    return meaning


def _stored(word: DType) -> Callable[..., Array]:
    def meaning(*words: Array) -> Array:
        together = np.stack(np.broadcast_arrays(*words), axis=-1)
        return np.ascontiguousarray(together, word.numpy).view(np.uint8)

    return meaning


def _needs(how: str) -> Needs:
    """ "Target ISA Notes" of ld: only prefetches of 256 bytes are missing somewhere (on sm_75)."""
    return since(80) if "L2::256B" in how else EVERYWHERE


def _text(name: str, how: str, bits: int, words: int) -> str:
    vector = f".v{words}" if words > 1 else ""
    return f"{name}.global.{how}{vector}.b{bits}"


def _loads(bits: int, words: int) -> dict[tuple[str, int, int], Row]:
    word, bytes_ = dtype(f"uint{bits}"), bits // 8 * words
    results = tuple(result(f"d{index}", word) for index in range(words))
    operands = (*results, Operand("src", Kind.ADDRESS, space="global", bytes=bytes_, align=bytes_))
    meaning, registers = _loaded(word), _registers("d", words)
    found = {}
    for how in LOADS:
        text, fixed = _text("ld", how, bits, words), "nc" in how.split(".")
        found[how, bits, words] = Row(
            text=text,
            operands=operands,
            code=Asm(f"{text} {registers}, [{{src}}];"),
            meaning=meaning,
            needs=_needs(how),
            memory=not fixed,
            volatile=True,
            moves=True,
            fixed=fixed,
            section=_SECTION + ("ld.global.nc" if fixed else "ld"),
        )
    return found


def _stores(bits: int, words: int) -> dict[tuple[str, int, int], Row]:
    word, bytes_ = dtype(f"uint{bits}"), bits // 8 * words
    place = Operand("dst", Kind.ADDRESS, Mode.WRITE, space="global", bytes=bytes_, align=bytes_)
    operands = (place, *(value(f"a{index}", word) for index in range(words)))
    meaning, registers = _stored(word), _registers("a", words)
    found = {}
    for how in STORES:
        text = _text("st", how, bits, words)
        found[how, bits, words] = Row(
            text=text,
            operands=operands,
            code=Asm(f"{text} [{{dst}}], {registers};"),
            meaning=meaning,
            needs=EVERYWHERE,
            memory=True,
            moves=True,
            section=_SECTION + "st",
        )
    return found


def _registers(letter: str, words: int) -> str:
    names = ", ".join(f"{{{letter}{index}}}" for index in range(words))
    return names if words == 1 else f"{{{{{names}}}}}"


CACHED_LOAD: dict[tuple[str, int, int], Row] = {
    key: row for bits, words in WORDS for key, row in _loads(bits, words).items()
}
"""d0, d1, … = the words at src, in the order of addresses."""

CACHED_STORE: dict[tuple[str, int, int], Row] = {
    key: row for bits, words in WORDS for key, row in _stores(bits, words).items()
}
"""The words at dst = a0, a1, …"""


def _prefetch(level: str, needs: Needs) -> Row:
    text = f"prefetch.global.{level}"
    return Row(
        text=text,
        operands=(Operand("src", Kind.ADDRESS, space="global", bytes=1),),
        code=Asm(f"{text} [{{src}}];"),
        meaning=None,
        needs=needs,
        effect=Hint(),
        volatile=True,
        section=_SECTION + "prefetch, prefetchu",
    )


PREFETCH: dict[str, Row] = {
    level: _prefetch(level, needs)
    for level, needs in (
        *(("L1", EVERYWHERE), ("L2", EVERYWHERE)),
        *(("L2::evict_last", since(80)), ("L2::evict_normal", since(80))),
    )
}

ROWS: tuple[Row, ...] = (*CACHED_LOAD.values(), *CACHED_STORE.values(), *PREFETCH.values())
