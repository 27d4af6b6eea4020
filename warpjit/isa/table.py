"""All rows, and how a text finds its row.

Modifiers may stand in any order; the manual's order is what the row's text has. A text that names no row raises
InstructionError, which says what is wrong with it: an unknown instruction, a modifier that is not legal at that
point (with the legal ones), modifiers that are missing, or a combination that does not exist (with the nearest rows).

The files of rows are imported when a text asks for them: most programs use few families of some thousand rows.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib import import_module

from warpjit.errors import InstructionError
from warpjit.isa.row import Row

FILES: dict[str, tuple[str, ...]] = {
    "scalar": (),
    "scalar_math": (),
    "scalar_words": (),
    "memory": (),
    "wide_memory": (),
    "cached_memory": ("prefetch",),
    "atomics": ("atom", "red"),
    "warp": ("shfl", "vote", "match", "redux", "activemask"),
    "matrix_move": ("ldmatrix", "stmatrix", "movmatrix"),
    "matrix_move_bytes": ("ldmatrix", "stmatrix"),
    "mma_floats": ("mma",),
    "mma_double": ("mma",),
    "mma_fp8": ("mma",),
    "mma_integers": ("mma",),
    "mma_sparse": ("mma.sp", "mma.sp::ordered_metadata"),
    "mma_scaled": ("mma", "mma.sp::ordered_metadata"),
    "async_copy": ("cp",),
    "barriers": ("bar", "barrier", "membar", "fence", "mbarrier", "mbarrier_wait", "elect"),
}
"""The files of rows, in the order of `rows`, and the names of instructions that stand in no file without them."""


def collect(rows: Iterable[Row]) -> dict[str, Row]:
    """Rows by text. Raises InstructionError where a text stands twice."""
    found: dict[str, Row] = {}
    for row in rows:
        if row.text in found:
            raise InstructionError(f"two rows have the text {row.text!r}")
        found[row.text] = row
    return found


@cache
def family(file: str) -> dict[str, Row]:
    """The rows of one of `FILES` by text."""
    return collect(import_module(f"warpjit.isa.{file}").ROWS)


@cache
def rows() -> tuple[Row, ...]:
    """Every row, family by family."""
    return tuple(collect(row for file in FILES for row in family(file).values()).values())


def lookup(text: str) -> Row:
    """The row of a full instruction text, modifiers in any order. Raises InstructionError."""
    if not isinstance(text, str):
        raise InstructionError(f"expected the text of an instruction but got {text!r}")
    return _lookup(text)


def as_row(instruction: Row | str) -> Row:
    """A row as it is, or that of a text. Raises InstructionError."""
    return instruction if isinstance(instruction, Row) else lookup(instruction)


@lru_cache(maxsize=4096)
def _lookup(text: str) -> Row:
    wanted = text.strip().removesuffix(";")
    name, modifiers = _split(wanted)
    for file in _files_of(name):
        exact = family(file).get(wanted)
        if exact is not None:
            return exact
    same_name = [row for file in _files_of(name) for row in family(file).values() if _name(row) == name]
    if not same_name:
        raise InstructionError(_unknown_name(name))
    found = [row for row in same_name if _in_some_order(row, modifiers)]
    if found:
        return found[0]
    raise InstructionError(_refusal(text, name, modifiers, same_name))


def _files_of(name: str) -> Iterator[str]:
    """Where rows of this name may stand."""
    declared = any(name in names for names in FILES.values())
    return (file for file, names in FILES.items() if name in names or not declared)


_SHOWN = 4
"""Nearest rows that a refusal names."""

_OF_NAMES = ("sp", "sp::ordered_metadata")
"""Modifiers that are as good as another name: sparse products have operands and shapes of their own."""


def _split(text: str) -> tuple[str, list[str]]:
    """Name and modifiers: "mma.sp.sync.aligned" is mma.sp with sync and aligned."""
    first, *modifiers = text.split(".")
    name = ".".join([first, *(each for each in modifiers if each in _OF_NAMES)])
    return name, [each for each in modifiers if each not in _OF_NAMES]


def _name(row: Row) -> str:
    return _split(row.text)[0]


def _modifiers(row: Row) -> list[str]:
    return _split(row.text)[1]


def _in_some_order(row: Row, modifiers: list[str]) -> bool:
    """The same modifiers; those that speak of single operands (.row.col, .f32.f16.f16.f32) keep their order."""
    own = _modifiers(row)
    return Counter(own) == Counter(modifiers) and _of_operands(own) == _of_operands(modifiers)


_OF_OPERANDS = frozenset(
    "row col f16 bf16 tf32 f32 f64 e4m3 e5m2 e3m2 e2m3 e2m1 s4 u4 s8 u8 s16 u16 s32 u32 s64 u64 b1 pred".split()
)


def _of_operands(modifiers: list[str]) -> list[str]:
    """Types and orders of operands: their order says which operand has which."""
    return [each for each in modifiers if each in _OF_OPERANDS]


# ---- why a text names no row -------------------------------------------------------------------------


def _unknown_name(name: str) -> str:
    names = sorted({_name(row) for row in rows()})
    near = difflib.get_close_matches(name.lower(), names, n=3)
    return f"there is no instruction {name!r}" + (f"; did you mean {' or '.join(near)}?" if near else "")


def _refusal(text: str, name: str, modifiers: list[str], candidates: list[Row]) -> str:
    """The sentence about a text whose name is known."""
    known = {each for row in candidates for each in _modifiers(row)}
    used: list[str] = []
    for modifier in modifiers:
        if not _compatible(candidates, [*used, modifier]):
            legal = _legal_next(candidates, used)
            where = ".".join([name, *used])
            if modifier not in known:
                return f"{where} has no modifier '.{modifier}'; legal here: {legal}"
            return (
                f"{text}: there is no such combination: '.{modifier}' does not go with {where}; legal here: {legal}; "
                f"nearest: {_nearest(text, candidates)}"
            )
        used.append(modifier)
    legal = _legal_next(candidates, used)
    if legal:
        return f"{text} is not complete; it may go on with {legal}; nearest: {_nearest(text, candidates)}"
    near = _nearest(text, candidates)
    return f"{text}: the operands' types or orders stand in another order than in any row; nearest: {near}"


def _compatible(candidates: list[Row], used: list[str]) -> list[Row]:
    """Rows that have at least these modifiers."""
    return [row for row in candidates if not Counter(used) - Counter(_modifiers(row))]


def _legal_next(candidates: list[Row], used: list[str]) -> str:
    """The first modifier, in the manual's order, that each compatible row still lacks."""
    following: dict[str, None] = {}
    for row in _compatible(candidates, used):
        missing = _modifiers(row)
        for modifier in used:
            missing.remove(modifier)
        if missing:
            following[missing[0]] = None
    return ", ".join(f".{each}" for each in following)


def _nearest(text: str, candidates: list[Row]) -> str:
    ordered = sorted(candidates, key=lambda row: -difflib.SequenceMatcher(None, row.text, text).ratio())
    return ", ".join(row.text for row in ordered[:_SHOWN])
