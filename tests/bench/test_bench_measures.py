"""Medians, spreads and ratios of numbers that were made up."""

from __future__ import annotations

import pytest
import torch

from bench.clocks import Sample, megahertz, over, parse
from bench.measures import Spread, deviation, rate, ratios, summary


def test_a_spread_is_the_middle_and_the_ends() -> None:
    spread = Spread.of([3.0, 1.0, 2.0, 10.0])
    assert spread == Spread(median=2.5, least=1.0, most=10.0, count=4)
    assert spread.relative == pytest.approx(3.6)
    assert Spread.of([1.23456789]).as_json() == {"median": 1.2346, "least": 1.2346, "most": 1.2346, "count": 1}
    with pytest.raises(ValueError, match="expected at least one figure but got none"):
        Spread.of([])


def test_ratios_are_of_the_same_rounds() -> None:
    # Each round has its own clock: the rates move by half, their ratio by a hundredth.
    found = ratios([100.0, 150.0, 120.0], [200.0, 303.0, 240.0])
    assert (found.median, found.least, found.most) == (0.5, 0.49505, 0.5)
    with pytest.raises(ValueError, match="expected figures of the same rounds but got 2 and 1"):
        ratios([1.0, 2.0], [1.0])


def test_the_spread_of_equals_is_the_farther_end() -> None:
    assert deviation(Spread(1.0, 0.97, 1.01, 2)) == pytest.approx(0.03)
    assert deviation(Spread(1.0, 0.99, 1.05, 2)) == pytest.approx(0.05)


def test_a_rate_is_in_teraflops() -> None:
    assert rate(2 * 8192**3, 2.0) == pytest.approx(549.756, abs=1e-3)


def test_a_summary_says_whether_the_limit_is_kept() -> None:
    figure = summary([4.0, 6.0, 5.0], limit=5)
    assert figure == {"unit": "ms", "median": 5.0, "least": 4.0, "most": 6.0, "runs": 3, "limit": 5, "kept": True}
    assert not summary([5.1], limit=5)["kept"]
    assert "limit" not in summary([5.1])


def test_what_nvidia_smi_says_is_read() -> None:
    said = "2026/11/30 07:25:24.100, 1665, 690.12\n2026/11/30 07:25:24.200, 1650, 688.00\n[N/A], x\n2026/11/30 07:25"
    first, second = parse(said)
    assert (first.mhz, first.watts, second.mhz) == (1665, 690.12, 1650)
    assert second.time - first.time == pytest.approx(0.1, abs=1e-3)


def test_the_clock_of_a_stretch_is_the_median_inside_it() -> None:
    samples = [Sample(float(at), 1000.0 + at, 500.0 + at) for at in range(10)]
    reading = over(samples, [(2.0, 4.0), (7.0, 7.5)])
    assert reading is not None
    assert (reading.mhz, reading.watts, reading.samples) == (1003.5, 503.5, 4)
    assert over(samples, [(20.0, 30.0)]) is None


def test_the_clock_in_a_kernel_is_cycles_over_nanoseconds() -> None:
    clocks = torch.tensor([[1_500_000, 1_000_000], [1_600_000, 1_000_000], [1_700_000, 1_000_000], [0, 0]])
    assert megahertz(clocks) == 1600.0
    assert megahertz(torch.zeros((2, 2), dtype=torch.int64)) is None
