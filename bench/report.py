"""What was measured, shown: tables on the terminal and PNG plots, both from the JSON files.

Where matplotlib is missing there are no plots. Left out: what the tables and plots of a figure hold (its own file).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from bench.harness import Bench


def load(path: Path) -> dict[str, Any]:
    """A record as it was written."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def show(bench: Bench, content: dict[str, Any], console: Console) -> None:
    """Print a record: the machine, and the figure's tables."""
    console.print(f"\n[bold]{bench.name}[/bold]: {bench.summary}", highlight=False)
    console.print(describe(content), highlight=False, markup=False)
    for table in bench.tables(content):
        shown = RichTable(title=table.title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
        for index, column in enumerate(table.columns):
            shown.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown, markup=False)


def describe(content: dict[str, Any]) -> str:
    """The machine that a record was taken on, in a line."""
    machine = content["machine"]
    parts = [machine["device"] if machine["device"] != "cpu" else machine["processor"]]
    if "driver" in machine:
        parts += [f"driver {machine['driver']}", f"at most {machine['most clock']}, {machine['power limit']}"]
    parts += [f"{name} {version}" for name, version in machine["versions"].items() if name in ("torch", "triton")]
    parts += [f"nvcc {machine['nvcc']}", f"commit {machine['commit']}", machine["date"]]
    return ", ".join(parts) + (", quick: not for quoting" if content["quick"] else "")


def plot(bench: Bench, content: dict[str, Any], path: Path) -> Path | None:
    """Draw a record to a PNG file. None, and no file, where matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  an optional package
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        return None
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    bench.draw(content, figure)
    figure.suptitle(f"{bench.name}: {bench.summary}\n{describe(content)}", fontsize=7)
    figure.savefig(path, dpi=110)
    return path
