"""Medians, spreads and ratios of timings. Plain numbers in, plain numbers out."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

DIGITS = 5
"""Significant digits that are kept of a figure."""


def significant(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def shown(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass(frozen=True)
class Spread:
    """The middle and the ends of some figures."""

    median: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Raises `ValueError` where there are none."""
        if not values:
            raise ValueError("expected at least one figure but got none")
        middle, least, most = (significant(f(values)) for f in (statistics.median, min, max))
        return cls(middle, least, most, len(values))

    @property
    def relative(self) -> float:
        """From the least to the most, as a part of the median."""
        return (self.most - self.least) / self.median

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def ratios(above: Sequence[float], below: Sequence[float]) -> Spread:
    """The ratios, round by round, of figures that were taken in the same rounds."""
    if len(above) != len(below):
        raise ValueError(f"expected figures of the same rounds but got {len(above)} and {len(below)}")
    return Spread.of([a / b for a, b in zip(above, below, strict=True)])


def deviation(same: Spread) -> float:
    """How far apart two runs of one thing lie: the spread that a ratio of two different things must exceed."""
    return significant(max(abs(same.least - 1), abs(same.most - 1)))


def rate(flop: int, milliseconds: float) -> float:
    """TFLOP/s."""
    return flop / milliseconds / 1e9


def summary(milliseconds: Sequence[float], limit: float | None = None) -> dict[str, Any]:
    """Median and spread of timings; with a limit, whether the median keeps it."""
    spread = Spread.of(milliseconds)
    figure: dict[str, Any] = {
        "unit": "ms",
        "median": round(spread.median, 3),
        "least": round(spread.least, 3),
        "most": round(spread.most, 3),
        "runs": spread.count,
    }
    if limit is not None:
        figure |= {"limit": limit, "kept": figure["median"] <= limit}
    return figure
