"""How long tracing takes: the example's kernel and a whole product's; and what `import warpjit` costs.

Traced and verified: from a specialisation to a planned program, by a new kernel each time; once with cold caches in a
new process, and as the median of many. Emitted: from the program to CUDA C++ (nvcc not included). Simulated: one call
of the example's kernel. Import: after torch, of the package alone, whose names load when they are asked for, and with
the names that every kernel needs. Limits: what the project promises.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from bench.harness import ROOT, Bench, Record, Settings, Table, error_text, in_fresh_processes, timed
from bench.measures import shown, summary
from warpjit import Kernel, config, warpjit
from warpjit.build import build
from warpjit.frontend.kinds import Specialization
from warpjit.isa.target import Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRACE_LIMIT, SIMULATE_LIMIT, IMPORT_LIMIT = 20, 200, 30
RUNS, LARGE_RUNS, PROCESSES = 30, 7, 5
"""Repetitions; of what takes most of a second; of fresh processes."""
TARGET = Target.parse("sm_90a")

IMPORT = """
import time, torch
start = time.perf_counter()
{}
print((time.perf_counter() - start) * 1e3)
"""
NAMES = "from warpjit import T, warpjit; T.float32"

# The tracer is imported when the first kernel is traced: a figure of its own.
COLD = """
import warpjit.stages
from bench.trace import SUBJECTS, traced
print(traced(SUBJECTS[{!r}]()))
"""
COLD_SIMULATION = """
import warpjit.sim, warpjit.stages
from bench.trace import simulated
print(simulated())
"""


@dataclass(frozen=True)
class Subject:
    """A kernel that is not traced yet, for what it will be, and how often it is worth repeating."""

    kernel: Kernel
    specialization: Specialization
    runs: int


def example() -> Subject:
    """The kernel of examples/warp_matmul.py, anew."""
    kernel = warpjit(_example().function)
    return Subject(kernel, kernel.specialization((), {}), RUNS)


def _example() -> Kernel:
    folder = str(ROOT / "examples")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from warp_matmul import warp_matmul  # noqa: PLC0415  its folder is no package

    return warp_matmul


def product() -> Subject:
    """The kernel of warpjit.kernels.matmul with the reference's tiles, anew."""
    from bench.generated import untraced  # noqa: PLC0415  it brings kernels that only some figures need

    return Subject(*untraced(), LARGE_RUNS)


SUBJECTS: dict[str, Callable[[], Subject]] = {"example": example, "product": product}


def traced(subject: Subject) -> float:
    """Milliseconds to trace, verify and plan."""
    return timed(lambda: subject.kernel.program(subject.specialization, TARGET))


def emitted(subject: Subject) -> float:
    """Milliseconds to write the CUDA C++; tracing is done before, once for a subject."""
    program = subject.kernel.program(subject.specialization, TARGET)
    return timed(lambda: build(program, config.read()))


def simulated() -> float:
    """Milliseconds of a simulated call of the example; tracing is done before."""
    subject = example()
    subject.kernel.program(subject.specialization, TARGET)
    a, b = (torch.randn((rows, 16), dtype=torch.float16) for rows in (16, 8))
    out = torch.empty((16, 8))
    return timed(lambda: subject.kernel.simulate(a, b, out))


def run(settings: Settings, record: Record) -> None:
    """Take the figures; what fails is noted with its error."""
    processes = 1 if settings.quick else PROCESSES

    def repeated(take: Callable[[], float], runs: int = RUNS) -> list[float]:
        return [take() for _ in range(3 if settings.quick else runs)]

    def fresh(program: str) -> list[float]:
        return in_fresh_processes(program, processes)

    times: dict[str, Any] = {}
    errors: dict[str, str] = {}

    def note(name: str, take: Callable[[], list[float]], limit: float | None = None) -> None:
        try:
            times[name] = summary(take(), limit)
        except Exception as error:
            errors[name] = error_text(error)
        record.put(times=times, errors=errors)

    for name, make in SUBJECTS.items():
        limit = TRACE_LIMIT if name == "example" else None
        note(f"{name}: trace and verify, cold", partial(fresh, COLD.format(name)), limit)
        note(f"{name}: trace and verify", partial(_traced, make, repeated), limit)
        note(f"{name}: emit", partial(_emitted, make, repeated))
    note("example: simulate, cold", partial(fresh, COLD_SIMULATION), SIMULATE_LIMIT)
    note("example: simulate", partial(repeated, simulated), SIMULATE_LIMIT)
    note("import warpjit, after torch", partial(fresh, IMPORT.format("import warpjit")), IMPORT_LIMIT)
    note("the names a kernel needs, after torch", partial(fresh, IMPORT.format(NAMES)), IMPORT_LIMIT)
    note("these and the tracer, after torch", partial(fresh, IMPORT.format("import warpjit.stages")))


Repeated = Callable[[Callable[[], float], int], list[float]]


def _traced(make: Callable[[], Subject], repeated: Repeated) -> list[float]:
    return repeated(lambda: traced(make()), make().runs)


def _emitted(make: Callable[[], Subject], repeated: Repeated) -> list[float]:
    subject = make()
    return repeated(lambda: emitted(subject), subject.runs)


def tables(content: dict[str, Any]) -> list[Table]:
    """The times, with the limits and whether they are kept."""
    figures = content["figures"]
    rows = [
        (
            name,
            shown(each["median"]),
            f"{shown(each['least'])} to {shown(each['most'])}",
            f"{each['limit']}: {'kept' if each['kept'] else 'not kept'}" if "limit" in each else "",
        )
        for name, each in figures["times"].items()
    ]
    found = [Table("times on the host", ("what", "median, ms", "ms", "limit, ms"), tuple(rows))]
    if figures["errors"]:
        found.append(Table("left out", ("what", "why"), tuple(figures["errors"].items())))
    return found


def draw(content: dict[str, Any], figure: Figure) -> None:
    """A bar per time, with its limit."""
    found = list(content["figures"]["times"].items())[::-1]
    axes = figure.add_subplot()
    axes.barh([name for name, _ in found], [each["median"] for _, each in found])
    for position, (_, each) in enumerate(found):
        if "limit" in each:
            axes.plot([each["limit"]] * 2, [position - 0.4, position + 0.4], color="black")
    axes.set_xscale("log")
    axes.set_xlabel("ms (a line: the limit)")


BENCH = Bench("trace", "tracing, verifying and emitting kernels, and `import warpjit`", False, run, tables, draw)
