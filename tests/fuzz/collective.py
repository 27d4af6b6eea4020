"""What the threads of a warp, and of a CTA, tell each other, for the oracle: from what each says to each answer."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from .numbers import Invalid, Number, cast, extreme, lifted
from .types import BITS, FLOATS, WORDS

Said = Sequence[tuple[tuple[Any, ...], dict[str, Any]]]
Answers = list[Any]
LANES = 32


def _all(said: Said, position: int = 0) -> list[Number]:
    numbers = [lifted(args[position]) for args, _ in said]
    if len({number.type for number in numbers}) != 1 or numbers[0].type not in (*BITS, *FLOATS, "bool"):
        raise Invalid("lanes with numbers of several types")
    return numbers


def _width(said: Said, position: int) -> int:
    args, words = said[0]
    return operator.index(args[position] if len(args) > position else words.get("width", LANES))


def _shuffle(source: Callable[[int, int, int], int]) -> Callable[[Said], Answers]:
    def run(said: Said) -> Answers:
        numbers, width = _all(said), _width(said, 2)
        answers = []
        for lane, (args, _) in enumerate(said):
            segment = lane - lane % width
            place = source(lane - segment, operator.index(args[1]), width)
            answers.append(numbers[segment + place] if 0 <= place < width else numbers[lane])
        return answers

    return run


def _vote(decide: Callable[[list[bool]], Number]) -> Callable[[Said], Answers]:
    return lambda said: [decide([bool(args[0]) for args, _ in said])] * len(said)


def _match_any(said: Said) -> Answers:
    values = [number.value for number in _all(said)]
    return [Number(sum(1 << k for k, other in enumerate(values) if other == value), "uint32") for value in values]


def _match_all(said: Said) -> Answers:
    values = [number.value for number in _all(said)]
    return [Number(len(set(values)) == 1, "bool")] * len(said)


def _summable(numbers: list[Number]) -> list[Number]:
    if numbers[0].type not in (*WORDS, *FLOATS):
        raise Invalid(f"a sum over lanes of {numbers[0].type}")
    return numbers


def _reduce(step: Callable[[Number, Number], Number]) -> Callable[[Said], Answers]:
    """Pairs at distances width / 2, ..., 1."""

    def run(said: Said) -> Answers:
        numbers, distance = _summable(_all(said)), _width(said, 1) // 2
        while distance:
            numbers = [step(numbers[lane], numbers[lane ^ distance]) for lane in range(len(numbers))]
            distance //= 2
        return list(numbers)

    return run


def _scan(said: Said) -> Answers:
    numbers, distance = _summable(_all(said)), 1
    while distance < LANES:
        numbers = [
            numbers[lane] + numbers[lane - distance] if lane >= distance else numbers[lane] for lane in range(LANES)
        ]
        distance *= 2
    if said[0][1].get("exclusive", False):
        return [cast(0, numbers[0].type), *numbers[:-1]]
    return list(numbers)


def _combined(said: Said) -> Answers:
    """By a function: neighbours first, lower lanes on its left."""
    values, width, operation = [args[0] for args, _ in said], _width(said, 2), said[0][0][1]
    distance = 1
    while distance < width:
        pairs = [(values[lane & ~distance], values[lane | distance]) for lane in range(len(values))]
        values, distance = [operation(a, b) for a, b in pairs], 2 * distance
    if isinstance(values[0], tuple):
        return [tuple(lifted(item) for item in value) for value in values]
    return [lifted(value) for value in values]


def _cta_scan(said: Said) -> Answers:
    """Sums over the threads before, warp by warp."""
    exclusive = said[0][1].get("exclusive", False)
    before: Number | None = None
    answers: Answers = []
    for first in range(0, len(said), LANES):
        warp = [((args[0],), {"exclusive": False}) for args, _ in said[first : first + LANES]]
        mine = _scan(warp)
        if exclusive:
            shown = [before, *(each if before is None else before + each for each in mine[:-1])]
        else:
            shown = [each if before is None else before + each for each in mine]
        answers += shown
        before = mine[-1] if before is None else before + mine[-1]
    return [cast(0, lifted(said[0][0][0]).type) if each is None else each for each in answers]


def _over_cta(step: Callable[[Number, Number], Number]) -> Callable[[Said], Answers]:
    """Each warp's, then those of all warps, the first first."""

    def run(said: Said) -> Answers:
        warps = [
            _reduce(step)([(args[:1], {}) for args, _ in said[first : first + LANES]])[0]
            for first in range(0, len(said), LANES)
        ]
        return [functools.reduce(step, warps)] * len(said)

    return run


def _nothing(said: Said) -> Answers:
    return [None] * len(said)


_SUM, _MIN, _MAX = operator.add, functools.partial(extreme, True), functools.partial(extreme, False)

WARP: dict[str, Callable[[Said], Answers]] = {
    "T.cuda.warp_sync": _nothing,
    "T.cuda.shuffle": _shuffle(lambda lane, count, width: count % width),
    "T.cuda.shuffle_up": _shuffle(lambda lane, count, width: lane - count),
    "T.cuda.shuffle_down": _shuffle(lambda lane, count, width: lane + count),
    "T.cuda.shuffle_xor": _shuffle(lambda lane, count, width: lane ^ count),
    "T.cuda.all": _vote(lambda votes: Number(all(votes), "bool")),
    "T.cuda.any": _vote(lambda votes: Number(any(votes), "bool")),
    "T.cuda.ballot": _vote(lambda votes: Number(sum(vote << lane for lane, vote in enumerate(votes)), "uint32")),
    "T.cuda.match_any": _match_any,
    "T.cuda.match_all": _match_all,
    "T.cuda.warp_sum": _reduce(_SUM),
    "T.cuda.warp_min": _reduce(_MIN),
    "T.cuda.warp_max": _reduce(_MAX),
    "T.cuda.warp_scan": _scan,
    "T.cuda.warp_reduce": _combined,
}
CTA: dict[str, Callable[[Said], Answers]] = {
    "T.cuda.cta_sync": _nothing,
    "T.cuda.cta_sum": _over_cta(_SUM),
    "T.cuda.cta_min": _over_cta(_MIN),
    "T.cuda.cta_max": _over_cta(_MAX),
    "T.cuda.cta_scan": _cta_scan,
}


@functools.cache
def together() -> frozenset[str]:
    """The names that all lanes, or all threads, say together."""
    return frozenset((*WARP, *CTA))
