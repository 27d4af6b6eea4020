"""The bar that long work shows, on a terminal; elsewhere nothing, and nothing is imported for it."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class Bar:
    """`with Bar("compiling", 32) as bar: … bar.step("the last one")`. `shown`: None: on a terminal.

    The total may be None, where nobody knows how much there is.
    """

    def __init__(self, title: str, total: int | None, shown: bool | None = None) -> None:
        self._progress: Any = None
        if shown or (shown is None and sys.stderr is not None and sys.stderr.isatty()):
            from rich.console import Console  # noqa: PLC0415  only where something is shown
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
            )
            self._progress = Progress(*columns, console=Console(stderr=True, force_terminal=shown), transient=True)
            self._task = self._progress.add_task(title, total=total, note="")

    def __enter__(self) -> Bar:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def step(self, note: str = "", count: int = 1) -> None:
        """`count` more are done; `note` is shown beside the bar."""
        if self._progress is not None:
            self._progress.update(self._task, advance=count, note=note)
