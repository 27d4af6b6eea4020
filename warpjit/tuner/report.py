"""What tuning found for a call, to be read: a table, and a plot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpjit.tuner.config import Config
from warpjit.tuner.key import Key
from warpjit.tuner.record import Entry

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class TuningReport:
    """The entries of a call's configurations, the fastest first, those without a time last.

    best   the configuration that calls use
    """

    name: str
    key: Key
    best: Config
    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, name: str, key: Key, best: Config, entries: tuple[Entry, ...]) -> TuningReport:
        order = sorted(entries, key=lambda each: each.median_us if each.timed and each.median_us else math.inf)
        return cls(name, key, best, tuple(order))

    @property
    def rows(self) -> list[tuple[str, str, str, str]]:
        """As text: configuration, microseconds with the spread, times the best one's, or why there is none."""
        least = next((each.median_us for each in self.entries if each.timed), None)
        return [_row(each, least) for each in self.entries]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.best!r}", *("  ".join(filter(None, row)) for row in self.rows)]
        return "\n".join(lines)

    def show(self, console: Any = None) -> None:
        """Print the table (on a rich console; None: one of its own)."""
        from rich.console import Console  # noqa: PLC0415  heavy
        from rich.table import Table  # noqa: PLC0415

        table = Table(title=f"{self.name}: {self.best.text}")
        for column in ("configuration", "µs", "of the best", ""):
            table.add_column(column, overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        (console or Console()).print(table, markup=False)

    def plot(self, figure: Figure | None = None) -> Figure:
        """Bars of the times with their spreads. Needs matplotlib."""
        from matplotlib.figure import Figure  # noqa: PLC0415  optional

        timed = [each for each in self.entries if each.timed]
        drawn = figure or Figure(figsize=(8, 1 + 0.3 * len(timed)), layout="constrained")
        axes = drawn.subplots()
        times = [each.median_us or 0.0 for each in timed]
        axes.barh([each.config for each in timed], times, xerr=[each.spread_us or 0.0 for each in timed])
        axes.invert_yaxis()
        axes.set_xlabel("µs")
        axes.set_title(self.name)
        return drawn


def _row(entry: Entry, least: float | None) -> tuple[str, str, str, str]:
    if not entry.timed or entry.median_us is None:
        return entry.config, "", "", f"{entry.state.value}: {entry.reason}"
    ratio = f"{entry.median_us / least:.3f}" if least else ""
    return entry.config, f"{entry.median_us:.2f} ±{entry.spread_us or 0.0:.2f}", ratio, ""
