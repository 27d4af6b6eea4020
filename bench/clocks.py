"""The GPU's clock while something is measured.

Two readings: the one that counts, cycles against nanoseconds in a kernel that is launched right behind the measured
work (the clock does not change within its tenth of a millisecond), and nvidia-smi's, which reads 100 to 200 MHz more
while the GPU is throttled, with the power. `nvidia-smi --help-query-gpu` has the names of the fields.
"""

from __future__ import annotations

import datetime
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from bench.harness import gpu_id
from bench.measures import significant

PERIOD_MS = 100
FIELDS = "timestamp,clocks.sm,power.draw"


@dataclass(frozen=True)
class Sample:
    """What nvidia-smi read: seconds since the epoch, MHz, watts."""

    time: float
    mhz: float
    watts: float


@dataclass(frozen=True)
class Reading:
    """The medians over a stretch of time."""

    mhz: float
    watts: float
    samples: int


def parse(text: str) -> list[Sample]:
    """nvidia-smi's lines: "2026/11/30 07:25:24.123, 1665, 690.12" (local time). A line cut short is left out."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        try:
            moment = datetime.datetime.strptime(parts[0], "%Y/%m/%d %H:%M:%S.%f").timestamp()
            found.append(Sample(moment, float(parts[1]), float(parts[2])))
        except (ValueError, IndexError):
            continue
    return found


def over(samples: Iterable[Sample], stretches: Iterable[tuple[float, float]]) -> Reading | None:
    """The medians of the samples in any of the stretches (begin, end); None where there are none."""
    spans = list(stretches)
    inside = [each for each in samples if any(begin <= each.time <= end for begin, end in spans)]
    if not inside:
        return None
    mhz, watts = statistics.median(each.mhz for each in inside), statistics.median(each.watts for each in inside)
    return Reading(significant(mhz), significant(watts), len(inside))


class Watch:
    """nvidia-smi's samples since it was started."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def samples(self) -> list[Sample]:
        return parse(self._path.read_text(encoding="utf-8", errors="replace"))


@contextmanager
def watching() -> Iterator[Watch]:
    """nvidia-smi reads the clock ten times a second, in a process of its own. Where it is missing, nothing is read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "samples.csv")
        path.touch()
        program = shutil.which("nvidia-smi")
        if program is None or not torch.cuda.is_available():
            yield Watch(path)
            return
        # Into a file it might hold its lines back.
        stdbuf = shutil.which("stdbuf")
        unbuffered = [stdbuf, "--output=L"] if stdbuf else []
        query = [*unbuffered, program, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits", f"--id={gpu_id()}"]
        with path.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(
                [*query, f"--loop-ms={PERIOD_MS}"],
                stdout=file,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C"},
            )
            try:
                yield Watch(path)
            finally:
                process.terminate()
                process.wait()


def megahertz(clocks: torch.Tensor) -> float | None:
    """The clock from int64 (blocks, 2): cycles and nanoseconds as each block measured them; None before it has run."""
    counted = clocks.double().cpu()
    ran = counted[counted[:, 1] > 0]
    return significant(float((ran[:, 0] / ran[:, 1]).median()) * 1e3) if len(ran) else None
