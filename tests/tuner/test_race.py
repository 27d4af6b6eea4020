"""The race: who wins, who is stopped when, and what is not believed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from warpjit.tuner import race
from warpjit.tuner.race import Race, Rules


class Track:
    """Entrants with these times, and noise of a part of them; `log`: (which, how many launches) of each visit."""

    def __init__(self, times: Sequence[float], noise: float = 0.0, seed: int = 0) -> None:
        self.times_of, self.noise, self.random = times, noise, random.Random(seed)
        self.log: list[tuple[int, int]] = []

    def times(self, which: int, count: int) -> list[float]:
        self.log.append((which, count))
        return [self.times_of[which] * (1 + self.noise * self.random.uniform(-1, 1)) for _ in range(count)]

    def run(self, seed: int = 0, rules: Rules | None = None) -> Race:
        return race.run(len(self.times_of), self.times, rules or Rules(), random.Random(seed))


def test_the_fastest_wins_and_the_same_seed_gives_the_same_race() -> None:
    logs = []
    for _ in range(2):
        track = Track([30.0, 10.0, 20.0, 11.0], noise=0.05)
        assert track.run(seed=3).ranked[0] == 1
        logs.append(track.log)
    assert logs[0] == logs[1]


def test_losers_are_stopped_after_the_first_round() -> None:
    track = Track([100.0] * 31 + [10.0])
    found = track.run()
    assert found.ranked[0] == 31
    assert sum(launches for _, launches in track.log) == 32 * Rules().first


def test_what_cannot_be_told_apart_stays_until_the_end() -> None:
    track = Track([10.0, 10.0, 50.0])
    track.run()
    visits = [which for which, _ in track.log]
    every = Rules().rounds + Rules().final
    assert [visits.count(which) for which in range(3)] == [every, every, 1]


def test_half_of_those_that_are_near_is_stopped_each_round() -> None:
    times = [10.0 + 0.01 * index for index in range(8)]
    track = Track(times)
    assert track.run(rules=Rules(close=1.0)).ranked[0] == 0
    visits = [which for which, _ in track.log]
    assert [visits.count(which) for which in range(8)] == [3, 3, 2, 2, 1, 1, 1, 1]


@pytest.mark.parametrize("seed", range(10))
def test_a_shuffled_order_finds_a_winner_within_two_percent(seed: int) -> None:
    times = [100.0 * (1 + 0.015 * index) for index in range(32)]
    order = random.Random(seed).sample(times, len(times))
    found = Track(order, noise=0.05, seed=seed).run(seed)
    assert order[found.ranked[0]] <= 102.0


def test_all_that_came_close_are_timed_again_beside_each_other() -> None:
    """Those that were stopped too; what they took before, on a device that was cold, does not count any more."""
    warm = [10.3, 10.0, 10.2, 12.0]
    visits: list[int] = []

    def times(which: int, count: int) -> list[float]:
        visits.append(which)
        return [9.9 if which == 2 and len(visits) <= 4 else warm[which]] * count

    found = race.run(4, times, Rules(), random.Random(0))
    assert found.ranked == [1, 2, 0, 3]
    assert found.times[2].count(9.9) == 0
    assert sorted(visits[-3 * Rules().final :]) == sorted([0, 1, 2] * Rules().final)


def test_who_would_win_by_a_time_of_before_is_in_the_final() -> None:
    """The device slows down after the first round: the one that was stopped then is not faster for that."""
    visits: list[int] = []

    def times(which: int, count: int) -> list[float]:
        visits.append(which)
        return [[10.0, 10.2, 10.8][which] * (1.0 if len(visits) <= 3 else 1.1)] * count

    found = race.run(3, times, Rules(first=5), random.Random(0))
    assert found.ranked == [0, 1, 2]
    assert found.median(2) == pytest.approx(10.8 * 1.1)


def test_a_final_without_an_end_changes_nothing_and_one_that_raises_there_is_out() -> None:
    track = Track([10.0, 10.1, 10.2])
    limit = 3 + 4
    found = race.run(3, track.times, Rules(rounds=1), random.Random(0), over=lambda: len(track.log) >= limit)
    assert found.stopped and {len(times) for times in found.times.values()} == {Rules().first}

    visits: list[int] = []

    def times(which: int, count: int) -> list[float]:
        visits.append(which)
        if which == 0 and visits.count(0) == 2:
            raise RuntimeError("gone")
        return [10.0 + which / 10] * count

    found = race.run(3, times, Rules(rounds=1), random.Random(0))
    assert found.ranked == [1, 2] and str(found.errors[0]) == "gone"


@pytest.mark.parametrize("bad", [math.nan, 0.0, -1.0, math.inf, -math.inf])
def test_times_that_are_no_positive_numbers_never_win(bad: float) -> None:
    found = Track([bad, 5.0, bad]).run()
    assert found.ranked == [1]
    assert found.times[0] == []


def test_no_valid_time_at_all_ends_the_race() -> None:
    track = Track([math.nan, 0.0])
    assert track.run().ranked == []
    assert len(track.log) == 2


def test_some_bad_times_are_left_out_of_the_median() -> None:
    def times(which: int, count: int) -> list[float]:
        return [0.0, 8.0, -3.0] if which == 0 else [9.0] * count

    found = race.run(2, times, Rules(rounds=1), random.Random(0))
    assert found.ranked == [0, 1]
    assert found.median(0) == 8.0


def test_one_that_raises_is_out_with_its_error() -> None:
    calls = []

    def times(which: int, count: int) -> list[float]:
        calls.append(which)
        if which == 0 and calls.count(0) == 2:
            raise RuntimeError("gone")
        return [5.0] * count

    found = race.run(2, times, Rules(), random.Random(0))
    assert found.ranked == [1]
    assert str(found.errors[0]) == "gone"
    assert calls.count(0) == 2


def test_when_the_time_is_up_the_best_so_far_stays() -> None:
    track = Track([3.0, 2.0, 1.0])
    found = race.run(3, track.times, Rules(), random.Random(0), over=lambda: len(track.log) >= 2)
    assert found.stopped
    assert len(track.log) == 2
    assert found.ranked[0] == min((which for which, _ in track.log), key=lambda which: track.times_of[which])


def test_short_launches_are_repeated_and_long_ones_are_not() -> None:
    rules = Rules(least=2, most=50, visit_us=1000.0, short_us=200.0)
    assert [rules.launches(median) for median in (1.0, 100.0, 1e6)] == [50, 10, 2]
    assert [rules.short(median) for median in (1.0, 100.0, 1e6)] == [50, 2, 1]
