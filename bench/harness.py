"""What a figure is, where it is kept, and on which machine it was taken.

A figure is a `Bench`: a name, a function that measures, and two that show what was measured. What it measures goes into
a `Record`, which is written as JSON after each step, so that a run that is cut short leaves what it had.

Left out: how anything is timed (`regimes`, and each figure's own file).
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bench.products import Case

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"
REFERENCE = ROOT / "bench/reference"
PACKAGES = ("torch", "triton", "numpy", "ml_dtypes", "pycuda", "warpjit")


@dataclass(frozen=True)
class Settings:
    """What the command line asks for.

    quick        fewer and shorter repetitions: to see that everything runs, not for figures
    cases        gemm: sizes and types of the products; empty: the figure's own
    regimes      gemm: "sustained", "alternating"
    contestants  gemm, launch: the names that take part; empty: all
    core         launch: the core that the process is pinned to; None: the last that it may use
    runs         start: fresh processes of each kind; None: the figure's own number
    seed         of the random data and of the shuffled orders
    """

    quick: bool = False
    cases: tuple[Case, ...] = ()
    regimes: tuple[str, ...] = ("sustained", "alternating")
    contestants: tuple[str, ...] = ()
    core: int | None = None
    runs: int | None = None
    seed: int = 0

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of `names` that take part, in order."""
        return tuple(name for name in names if not self.contestants or name in self.contestants)


@dataclass(frozen=True)
class Table:
    """A table to be shown: rows of text under columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Bench:
    """A figure.

    run     measures, and puts what it finds into the record
    tables  shows the figures of a record
    draw    draws them
    contestants  who can be chosen to take part
    """

    name: str
    summary: str
    needs_gpu: bool
    run: Callable[[Settings, Record], None]
    tables: Callable[[dict[str, Any]], list[Table]]
    draw: Callable[[dict[str, Any], Figure], None]
    contestants: tuple[str, ...] = ()


@dataclass
class Record:
    """What a figure's run has found so far, and the file that it is in."""

    path: Path
    head: dict[str, Any]
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def content(self) -> dict[str, Any]:
        return {**self.head, "figures": self.figures}

    def put(self, **figures: Any) -> None:
        """Add or replace figures, and write the file."""
        self.figures.update(figures)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The old file stays whole if this process is killed while it writes.
        draft = self.path.with_suffix(".tmp")
        draft.write_text(json.dumps(self.content, indent=2) + "\n", encoding="utf-8")
        draft.replace(self.path)


def start_record(bench: Bench, settings: Settings, folder: Path, label: str) -> Record:
    """An empty record of `bench` on this machine: `folder/name[-label].<cpu or gpu>.json`."""
    on = machine()
    kind = "cpu" if on["device"] == "cpu" else "gpu"
    name = f"{bench.name}-{label}" if label else bench.name
    head = {"bench": bench.name, "machine": on, "quick": settings.quick, "seed": settings.seed}
    return Record(folder / f"{name}.{kind}.json", head)


def error_text(error: BaseException) -> str:
    """The beginning of an error as one line, for a result."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {'; '.join(lines[:3])}"[:400]


# ---- fresh processes ------------------------------------------------------------------------------------------


def in_fresh_processes(program: str, runs: int) -> list[float]:
    """What `program` prints (one number), each time in a new interpreter; a first one has left its bytecode behind."""
    printed = [fresh_process(program) for _ in range(runs + 1)]
    return [float(each) for each in printed[1:]]


def fresh_process(program: str, *arguments: str, **environment: str) -> str:
    """What `program` prints in a new interpreter at the root of the repository, with these variables set."""
    # Where bytecode may not be written, every start would compile all sources anew.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return _run([sys.executable, "-c", program, *arguments], {**inherited, **environment})


def _run(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise RuntimeError(f"{command[0]} failed with status {done.returncode}: {last}")
    return done.stdout.strip()


def timed(run: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


# ---- the machine ----------------------------------------------------------------------------------------------

UNKNOWN = "unknown"


def machine() -> dict[str, Any]:
    """What figures depend on: processor, GPU and its driver and clock, versions, code, date.

    `sources` says which code ran also where a checkout is a copy, whose commit need not be what was copied.
    """
    found: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M"),
        "commit": _answer(["git", "describe", "--always", "--dirty", "--exclude=*"]),
        "sources": sources(),
        "processor": processor(),
        "python": platform.python_version(),
        "versions": {name: version for name in PACKAGES if (version := _version(name)) is not None},
        "nvcc": _nvcc_version(),
        "device": "cpu",
    }
    if torch.cuda.is_available():
        query = ["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
        said = _answer([*query, f"--id={gpu_id()}"]).split(",")
        driver, clock, power = (part.strip() for part in said) if len(said) == 3 else (UNKNOWN,) * 3
        found |= {"device": torch.cuda.get_device_name(), "driver": driver, "most clock": clock, "power limit": power}
    return found


def sources(root: Path = ROOT) -> str:
    """A digest of the package's source files, by path and content."""
    digest = hashlib.sha256()
    for path in sorted((root / "warpjit").rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@functools.cache
def gpu_id() -> str:
    """The present GPU as nvidia-smi names it: its numbers are not CUDA's. "0" where it does not know that name."""
    uuid = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
    name = f"GPU-{uuid}"
    known = _answer(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader", f"--id={name}"])
    return name if known == name else "0"


def processor() -> str:
    """The CPU's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _nvcc_version() -> str:
    said = re.search(r"release [\d.]+, V([\d.]+)", _answer(["nvcc", "--version"]))
    return said[1] if said else UNKNOWN


def _answer(command: list[str]) -> str:
    """What a program says; UNKNOWN where it is missing or fails (a copy without its commits, say)."""
    if shutil.which(command[0]) is None:
        return UNKNOWN
    try:
        return _run(command)
    except RuntimeError:
        return UNKNOWN
