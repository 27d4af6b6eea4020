"""What is nearest to a layout that does not fit: parts of registers moved, k permuted, blocks transposed.

Every fix that is returned has been checked by the rule of the proof itself (`places.agree`). The fix that always
exists, the instruction's own layout, is added by `proof`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from warpjit.isa.places import Atom, Held, Ints, agree
from warpjit.isa.refusal import Fix
from warpjit.isa.row import Operand
from warpjit.layout import Layout, TileLayout
from warpjit.layout.recovery import Recovered, recover

BLOCK = 8
_SHOWN = 16
_FEW = 2


@dataclass(frozen=True, eq=False)
class Question:
    """A view that does not fit, in arrays and as it was written.

    packed  elements of the view in one register
    """

    operand: Operand
    layout: Layout
    shape: tuple[int, ...]
    repeats: tuple[int, ...]
    packed: int
    view: Held
    atom: Atom

    @property
    def extents(self) -> tuple[int, ...]:
        """Of the atom, in elements of the view."""
        *rows, last = self.operand.shape
        return (*rows, last * self.packed)

    def agrees(self, view: Held) -> bool:
        return agree(view, self.atom, self.operand.registers)

    def under(self, index: Ints) -> Layout | None:
        """The layout of the view whose element n is element index[n] of this one, where iters have that map."""
        groups = self.layout.size() // index.size
        whole = (np.arange(groups)[:, None] * index.size + index.reshape(-1)).reshape(-1)
        values = {name: value[whole] for name, value in self.layout.enumerate().items()}
        found = recover(values)
        if not isinstance(found, Recovered):
            return None
        return TileLayout.from_iters(found.iters, offset=dict(found.origin))


def nearest(question: Question) -> Fix | None:
    """The first of the fixes below that holds."""
    for find in _FINDERS:
        fix = find(question)
        if fix is not None:
            return fix
    return None


# ---- registers -------------------------------------------------------------------------------------------


def _registers(question: Question) -> Fix | None:
    """Every element is in its lane: the parts of registers are to be moved, in all lanes alike."""
    view, atom, count = question.view, question.atom, question.operand.registers
    if (view.lane != atom.lane).any() or (view.warp != np.arange(view.warp.shape[0])[:, None, None]).any():
        return None
    place = view.word * question.packed + view.part
    first = np.zeros((count, question.packed), np.int64)
    first[atom.register[::-1], atom.part[::-1]] = np.arange(atom.register.size)[::-1]
    sources = place[0][:, first]
    if (place != sources[:, atom.register, atom.part]).any():
        return None
    moves = tuple(
        tuple((int(each) // question.packed, int(each) % question.packed) for each in register)
        for register in sources.reshape(-1, question.packed)
    )
    wrong = [number for number, parts in enumerate(moves) if not _whole(parts)]
    shown = "; ".join(f"register {number} is {_parts_text(moves[number])}" for number in wrong[:_FEW])
    more = "" if len(wrong) <= _FEW else f"; and {len(wrong) - _FEW} more"
    sentence = f"Every element is in its lane, so that its registers can be put together (t.convert): {shown}{more}"
    return Fix("registers", sentence, registers=moves) if wrong else None


def _whole(parts: Sequence[tuple[int, int]]) -> bool:
    return all(part == (parts[0][0], number) for number, part in enumerate(parts))


def _parts_text(parts: Sequence[tuple[int, int]]) -> str:
    """Low parts first: "part 1 of 0, part 1 of 2"."""
    return ", ".join(f"part {part} of {register}" for register, part in parts)


# ---- k ---------------------------------------------------------------------------------------------------


def _permuted_k(question: Question) -> Fix | None:
    """The columns are those of the instruction in another order, the same in all rows."""
    operand = question.operand
    if not operand.repeats or operand.repeats[-1] != "K" or len(question.extents) != 2:
        return None
    *others, steps = question.repeats
    rows, columns = question.extents
    shape = (question.view.lane.shape[0], prod(others), steps, rows, columns)
    order = _column_order(question, shape)
    if order is None or order == list(range(steps * columns)):
        return None
    elements = np.arange(prod(shape[1:])).reshape(shape[1:]).transpose(0, 2, 1, 3).reshape(-1, rows, steps * columns)
    moved = elements[:, :, order].reshape(prod(others), rows, steps, columns).transpose(0, 2, 1, 3)
    index = np.ascontiguousarray(moved).reshape(-1, rows * columns)
    if not question.agrees(question.view.taken(index)):
        return None
    wide = operand.packed // question.packed
    k = tuple(column * wide + part for column in order for part in range(wide))
    fitting = question.under(index)
    how = f"; its layout is then {fitting!r}" if fitting is not None else ""
    sentence = (
        f"With k permuted it fits: let k = 0, 1, 2, … of the instruction be k = {_listed(k)} of A and of B alike{how}"
    )
    return Fix("k", sentence, layout=fitting, k=k)


def _column_order(question: Question, shape: tuple[int, ...]) -> list[int] | None:
    """Column of the view for each column of the instruction; words are matched by who holds them."""

    def columns(values: Ints) -> Ints:
        return np.broadcast_to(values, shape).transpose(2, 4, 0, 1, 3).reshape(shape[2] * shape[4], -1)

    view, atom, packed = question.view, question.atom, question.packed
    issue = np.arange(shape[2])[:, None, None]
    own_word = columns(atom.register.reshape(shape[3:]) + issue * question.operand.registers)
    own = _word_columns(columns(atom.lane.reshape(shape[3:])), own_word, columns(atom.part.reshape(shape[3:])), packed)
    lane, word, part = (columns(each.reshape(shape)) for each in (view.lane, view.word, view.part))
    theirs = _word_columns(lane, word, part, packed)
    if own is None or theirs is None:
        return None
    order = [-1] * (shape[2] * shape[4])
    left = list(theirs.values())
    for wanted in own.values():
        found = next((each for each in left if each.keys() == wanted.keys()), None)
        if found is None:
            return None
        left.remove(found)
        for lanes, places in wanted.items():
            for place, column in zip(places, found[lanes], strict=True):
                order[place] = column
    return order


def _word_columns(lane: Ints, word: Ints, part: Ints, packed: int) -> dict[bytes, dict[bytes, list[int]]] | None:
    """Columns by their registers, then by their lanes: those of one register in the order of their parts."""
    found: dict[bytes, dict[bytes, list[int]]] = {}
    for column in range(len(lane)):
        number = int(part[column, 0])
        if (part[column] != number).any():
            return None
        places = found.setdefault(word[column].tobytes(), {}).setdefault(lane[column].tobytes(), [-1] * packed)
        if places[number] >= 0:
            return None
        places[number] = column
    complete = all(-1 not in places for lanes in found.values() for places in lanes.values())
    return found if complete else None


# ---- transposed blocks -----------------------------------------------------------------------------------


def _transposed(question: Question) -> Fix | None:
    """Each 8 x 8 block of 16-bit elements is where the instruction wants its transpose."""
    extents = question.extents
    operand = question.operand
    if question.packed != 2 or operand.dtype is None or operand.dtype.bits != 32:
        return None
    if len(extents) < 2 or extents[-1] % BLOCK or extents[-2] % BLOCK:
        return None
    rows, columns = extents[-2:]
    blocks = (
        np.arange(prod(extents)).reshape(-1, rows // BLOCK, BLOCK, columns // BLOCK, BLOCK).transpose(0, 1, 4, 3, 2)
    )
    element = blocks.reshape(-1)
    index = np.arange(question.view.lane.shape[1])[:, None] * element.size + element
    if not question.agrees(question.view.taken(index)):
        return None
    sentence = (
        "Its 8 x 8 blocks are transposed: load it with .trans if it is loaded without (and without if with), or move "
        "each register with movmatrix"
    )
    return Fix("trans", sentence)


_FINDERS: Sequence[Callable[[Question], Fix | None]] = (_registers, _permuted_k, _transposed)


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    return shown if len(numbers) <= _SHOWN else f"{shown}, …"
