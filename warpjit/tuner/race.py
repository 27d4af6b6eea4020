"""Which of several is fastest, found with few timings: rounds in shuffled order, clear losers stopped early.

After each round those stay whose times cannot be told from the best one's (their quartiles overlap), and of the others
the better half as far as it is near. A device gets warm and slow on the way, so that times of one round say little
beside those of another: the last word has a final among all that came close to the best one, stopped or not.

What is timed, and how, is not known here.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Times: TypeAlias = Callable[[int, int], Sequence[float]]
"""(which, how many launches) to the microseconds of each."""


@dataclass(frozen=True)
class Rules:
    """How long a race is.

    rounds       at most
    first        launches of each in the first round
    least, most  launches of each in a later round
    visit_us     what a visit in a later round should take
    near         a loser that stays for now takes at most so many times the best one's time
    close        one that is in the final takes at most so many times the best one's time
    final        rounds of the final
    short_us     what a visit in the final should take: what came before it tells, so many short ones even out
    """

    rounds: int = 4
    first: int = 3
    least: int = 3
    most: int = 20
    visit_us: float = 4000.0
    near: float = 1.2
    close: float = 1.05
    final: int = 16
    short_us: float = 1000.0

    def launches(self, median: float) -> int:
        """Of a visit in a later round."""
        return max(self.least, min(self.most, int(self.visit_us / median)))

    def short(self, median: float) -> int:
        """Of a visit in the final."""
        return max(1, min(self.most, int(self.short_us / median)))


@dataclass
class Race:
    """What is known of each: valid times, those that failed with their errors, whether the time was up."""

    times: dict[int, list[float]] = field(default_factory=dict)
    errors: dict[int, Exception] = field(default_factory=dict)
    stopped: bool = False

    def median(self, which: int) -> float:
        return statistics.median(self.times[which])

    def quartiles(self, which: int) -> tuple[float, float]:
        return quartiles(self.times[which])

    @property
    def ranked(self) -> list[int]:
        """Those with times, the fastest first."""
        return sorted((which for which, times in self.times.items() if times), key=self.median)


def quartiles(times: Sequence[float]) -> tuple[float, float]:
    """The first and the third."""
    if len(times) < 2:
        return times[0], times[0]
    low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    return low, high


def run(
    count: int,
    times: Times,
    rules: Rules,
    order: random.Random,
    over: Callable[[], bool] = lambda: False,
    progress: Callable[[Race], None] = lambda race: None,
) -> Race:
    """Race `count` entrants. `over()`: the time is up; what was found until then stays. One that raises is out."""
    race = Race()
    alive = list(range(count))
    for turn in range(rules.rounds):
        for which in order.sample(alive, len(alive)):
            if over():
                race.stopped = True
                return race
            known = race.times.get(which)
            launches = rules.launches(race.median(which)) if known else rules.first
            _visit(race, which, times, launches)
            if turn == 0:
                progress(race)
        alive = _survivors(race, alive, rules)
        progress(race)
        if len(alive) <= 1:
            break
    _final(race, times, rules, order, over)
    progress(race)
    return race


def _final(race: Race, times: Times, rules: Rules, order: random.Random, over: Callable[[], bool]) -> None:
    """Time those again that came close, beside each other; what they took before does not count any more.

    Whose time of before would win among those of the final takes part as well.
    """
    final = Race()
    limit = rules.close * race.median(race.ranked[0]) if race.ranked else 0.0
    while close := [which for which in race.ranked if which not in final.times and race.median(which) <= limit]:
        entrants = [*close, *final.times]
        if len(entrants) < 2:
            return
        for _ in range(rules.final):
            for which in order.sample(entrants, len(entrants)):
                if over():
                    race.stopped = True
                    return
                if which not in final.errors:
                    _visit(final, which, times, rules.short(race.median(which)))
        for which in final.errors:
            race.times.pop(which, None)
        race.errors.update(final.errors)
        limit = final.median(final.ranked[0]) if final.ranked else 0.0
    race.times.update({which: found for which, found in final.times.items() if found})


def _visit(race: Race, which: int, times: Times, launches: int) -> None:
    try:
        found = times(which, launches)
    except Exception as error:
        race.errors[which] = error
        race.times.pop(which, None)
        return
    race.times.setdefault(which, []).extend(each for each in found if 0.0 < each < math.inf)


def _survivors(race: Race, alive: Sequence[int], rules: Rules) -> list[int]:
    ranked = [which for which in race.ranked if which in alive]
    if not ranked:
        return []
    best = race.median(ranked[0])
    _, limit = race.quartiles(ranked[0])
    half = ranked[: -(-len(ranked) // 2)]
    return [
        which
        for which in ranked
        if race.quartiles(which)[0] <= limit or (which in half and race.median(which) <= rules.near * best)
    ]
