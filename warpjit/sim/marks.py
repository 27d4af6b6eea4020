"""Marks: small integers that say why a value must not be used, and where it came from.

0 is a good value. Any other mark indexes a table of (what is wrong, the line that brought it). A `Taint` goes with an
array of values: the mark of each element, and which of its bits are meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.errors import NOWHERE, Loc, Note

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Mark:
    """Why the value is bad, as a sentence, and the allocation, copy or load that brought it."""

    sentence: str
    loc: Loc = NOWHERE


class MarkTable:
    """The marks of one run. The last number stands for all marks that find no place."""

    LIMIT = np.iinfo(np.uint16).max

    def __init__(self) -> None:
        self._marks: list[Mark] = [Mark("a good value")]
        self._numbers: dict[Mark, int] = {}

    def number(self, mark: Mark) -> int:
        found = self._numbers.get(mark)
        if found is None:
            found = self._numbers[mark] = min(len(self._marks), self.LIMIT)
            self._marks.append(mark)
        return found

    def note(self, number: int) -> Note:
        mark = self._marks[number]
        return Note(mark.sentence, mark.loc)


@dataclass
class Taint:
    """Marks of an array of values: `mark` and `bits` have its shape; `bits` are unsigned words of its width."""

    mark: Array
    bits: Array

    def any(self, where: Array | None = None) -> bool:
        """Whether an element (of those where `where` holds) is marked."""
        return bool((self.mark != 0).any() if where is None else ((self.mark != 0) & where).any())


def shaped(values: Array, shape: tuple[int, ...]) -> Array:
    """The values in an array of this shape. Most have it: `np.broadcast_to` takes longer than an addition."""
    return values if values.shape == shape else np.broadcast_to(values, shape)


def word_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The unsigned type of a type's width."""
    return np.dtype(f"u{dtype.itemsize}")


def all_bits(dtype: np.dtype[Any]) -> Any:
    """A word in which every bit that matters is set (of a bool, the lowest)."""
    word = word_type(dtype)
    return word.type(1 if dtype == np.bool_ else np.iinfo(word).max)


def words_of(values: Array) -> Array:
    """The bits of an array of values, as unsigned words."""
    word = word_type(values.dtype)
    return values if values.dtype == word else np.ascontiguousarray(values).view(word)
