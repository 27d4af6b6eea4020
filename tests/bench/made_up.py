"""Results that nobody measured, one of each figure, as `bench` writes them; and a clock that does as it is told."""

from __future__ import annotations

from typing import Any

from bench import gemm, launch
from bench.regimes import Segment, Timings

MACHINE = {
    "date": "2026-01-01 00:00",
    "commit": "unknown",
    "processor": "a processor",
    "python": "3.12.0",
    "versions": {"torch": "2.11.0", "triton": "3.6.0"},
    "nvcc": "13.0.88",
    "device": "a GPU",
    "driver": "580.0",
    "most clock": "1980 MHz",
    "power limit": "700.00 W",
}


def record(bench: str, figures: dict[str, Any]) -> dict[str, Any]:
    """A whole record with these figures."""
    return {"bench": bench, "machine": MACHINE, "quick": False, "seed": 1, "figures": figures}


def timings(**milliseconds: list[float]) -> Timings:
    """What a regime found: a list of times for each name ("_" stands for a space)."""
    return Timings(
        {name.replace("_", " "): [Segment(each, 0.0, 1.0) for each in times] for name, times in milliseconds.items()}
    )


def gemm_record() -> dict[str, Any]:
    found = gemm.figures(
        timings(generated=[2.0, 2.2], reference=[2.0, 2.0], reference_again=[2.02, 2.0], cuBLAS=[1.5, 1.6]),
        dict.fromkeys(("generated", "reference", "reference again", "cuBLAS"), 2 * 10**12),
    )
    found["contestants"]["reference"] |= {
        "clock, MHz": 1500.0,
        "nvidia-smi": {"mhz": 1650.0, "watts": 690.0, "samples": 7},
    }
    case = {
        "size": "8192x8192x8192",
        "dtype": "bfloat16",
        "checks": {},
        "notes": {},
        "launches in a graph": {},
        "errors": {"Triton": "ModuleNotFoundError: No module named 'triton'"},
        "regimes": {"sustained": found, "alternating": found},
    }
    failed = {"size": "1x1x1", "dtype": "float16", "errors": {"case": "RuntimeError: no"}}
    return record("gemm", {"contestants": dict.fromkeys(found["contestants"], "a kernel"), "cases": [case, failed]})


def launch_record() -> dict[str, Any]:
    chunks = {"warpjit": [[4.0, 4.5], [4.2, 5.0]], "Triton": [[8.0, 8.1], [8.4, 9.0]], "C loop": [[2.0], [2.1]]}
    return record(
        "launch", {"core": 3, "rounds": 2, **launch.figures(chunks), "errors": {"PyCUDA": "ImportError: none"}}
    )


def start_record() -> dict[str, Any]:
    part = {"unit": "ms", "median": 120.0, "least": 110.0, "most": 130.0, "runs": 3}
    parts = {"to the first result": part, "import": part, "first": part, "again": part}
    return record("start", {"starts": {"warpjit, cold": parts, "warpjit, warm": parts}, "errors": {"Triton": "none"}})


def trace_record() -> dict[str, Any]:
    time = {"unit": "ms", "median": 4.5, "least": 4.0, "most": 6.0, "runs": 30}
    times = {"example: trace": {**time, "limit": 4, "kept": False}, "example: emit": time}
    return record("trace", {"times": times, "errors": {"gemm: emit": "ImportError: none"}})


def tune_record() -> dict[str, Any]:
    call = {"seconds": 12.34, "right": True, "us": 250.0, "chosen": "Tile(m=128)"}
    shuffles = {
        "ratios": [1.0, 1.0125],
        "seconds": [0.5, 0.7],
        "winners": ["a", "b"],
        "times, us": {"a": 8.0, "b": 9.0},
    }
    figures = {"size": 4096, "configs": 32, "processes": {"warpjit, first": call}, "errors": {"Triton, first": "none"}}
    return record("tune", {**figures, "shuffles": shuffles})


RECORDS = {
    "gemm": gemm_record,
    "launch": launch_record,
    "start": start_record,
    "trace": trace_record,
    "tune": tune_record,
}


class Script:
    """A timer whose time passes when work is issued, by the milliseconds that the work is said to take."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[str] = []
        self.waits = 0

    def mark(self) -> float:
        self.log.append("mark")
        return self.now

    def milliseconds(self, start: float, end: float) -> float:
        return end - start

    def wait(self) -> None:
        self.waits += 1

    def work(self, name: str, milliseconds: float) -> None:
        self.now += milliseconds
        self.log.append(name)
