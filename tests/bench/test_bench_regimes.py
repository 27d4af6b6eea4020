"""The two regimes on a clock of their own: what is dropped, divided, shuffled and left out."""

from __future__ import annotations

import random

import pytest
from made_up import Script

from bench import regimes
from bench.regimes import Alternating, Runner, Sustained, alternating, sustained


def steady(timer: Script, name: str, milliseconds: float, launches: int = 1) -> Runner:
    return Runner(name, lambda: timer.work(name, milliseconds * launches), launches)


def failing(timer: Script, name: str, at: int) -> Runner:
    """Takes 1 ms until its issue number `at`."""
    count = iter(range(10**6))

    def issue() -> None:
        if next(count) >= at:
            raise RuntimeError("it broke\nat length")
        timer.work(name, 1.0)

    return Runner(name, issue)


def slow_between(timer: Script, name: str, start: int, end: int) -> Runner:
    """Takes 5 ms from issue number `start` to `end`, 1 ms otherwise."""
    count = iter(range(10**6))
    return Runner(name, lambda: timer.work(name, 5.0 if start <= next(count) < end else 1.0))


@pytest.mark.parametrize(("slow", "expected"), [(0, 1.0), (30, 1.0), (31, 1 + 4 / 60), (90, 5.0)])
def test_sustained_drops_the_first_third(slow: int, expected: float) -> None:
    timer = Script()
    # 4 issues measure it, 100 warm it up; the next 90 are its stretch, of which 30 are dropped.
    runner = slow_between(timer, "kernel", 104, 104 + slow)
    found = sustained([runner], timer, Sustained(seconds=0.09, rounds=1, warm_up=0.1), random.Random(0))
    assert found.milliseconds("kernel") == [pytest.approx(expected)]
    assert timer.log.count("kernel") == 4 + 100 + 90


def test_sustained_runs_each_for_its_time_in_each_round() -> None:
    timer, after = Script(), []
    runners = [steady(timer, "fast", 1.0), steady(timer, "slow", 4.0)]
    found = sustained(runners, timer, Sustained(seconds=0.4, rounds=3, warm_up=0.0), random.Random(1), after.append)
    assert found.milliseconds("fast") == [1.0] * 3
    assert found.milliseconds("slow") == [4.0] * 3
    assert timer.log.count("fast") == 4 + 3 * 400
    assert timer.log.count("slow") == 4 + 3 * 100
    assert sorted(after) == ["fast"] * 3 + ["slow"] * 3


def test_alternating_times_each_in_each_round() -> None:
    timer = Script()
    runners = [steady(timer, "a", 1.0), steady(timer, "b", 3.0)]
    found = alternating(runners, timer, Alternating(launches=4, rounds=15), random.Random(2))
    assert found.milliseconds("a") == [1.0] * 15
    assert found.milliseconds("b") == [3.0] * 15
    assert timer.log.count("a") == timer.log.count("b") == 4 + 15 * 4
    # Shuffled: neither always begins.
    rounds = [word for word in timer.log if word != "mark"][8:]
    begins = {rounds[index] for index in range(0, len(rounds), 8)}
    assert begins == {"a", "b"}


@pytest.mark.parametrize("regime", ["sustained", "alternating"])
def test_the_launches_of_a_graph_are_divided_by(regime: str) -> None:
    timer = Script()
    runner = steady(timer, "kernel", 0.05, launches=40)
    how = Sustained(0.1, 2, 0.0) if regime == "sustained" else Alternating(2, 3)
    found = getattr(regimes, regime)([runner], timer, how, random.Random(0))
    assert found.milliseconds("kernel") == [pytest.approx(0.05)] * how.rounds


@pytest.mark.parametrize("at", [0, 3, 10])
@pytest.mark.parametrize("regime", ["sustained", "alternating"])
def test_one_that_raises_is_left_out_and_the_others_go_on(regime: str, at: int) -> None:
    timer = Script()
    runners = [steady(timer, "good", 2.0), failing(timer, "bad", at)]
    how = Sustained(0.02, 4, 0.0) if regime == "sustained" else Alternating(4, 4)
    found = getattr(regimes, regime)(runners, timer, how, random.Random(0))
    assert found.milliseconds("good") == [2.0] * 4
    assert found.milliseconds("bad") == []
    assert found.errors == {"bad": "RuntimeError: it broke; at length"}
