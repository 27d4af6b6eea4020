"""How a figure is taken and kept: repeated timings, and one JSON file a figure with what it was measured on.

figures = {"trace": {"unit": "ms", "median": 4.1, ...}}
record("trace_seed", figures)          -> bench/results/trace_seed.<cpu or gpu>.json
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"
PACKAGES = ("torch", "numpy", "ml_dtypes", "pycuda")


def timed(run: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


def summary(milliseconds: list[float], limit: float | None = None) -> dict[str, Any]:
    """Median and spread of timings; with a limit, whether the median keeps it."""
    figure: dict[str, Any] = {
        "unit": "ms",
        "median": round(statistics.median(milliseconds), 3),
        "least": round(min(milliseconds), 3),
        "most": round(max(milliseconds), 3),
        "runs": len(milliseconds),
    }
    if limit is not None:
        figure |= {"limit": limit, "kept": figure["median"] <= limit}
    return figure


def in_fresh_processes(program: str, runs: int) -> list[float]:
    """What `program` prints (one number), each time in a new interpreter; a first one has left its bytecode behind."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    printed = [_run([sys.executable, "-c", program], environment) for _ in range(runs + 1)]
    return [float(each) for each in printed[1:]]


def _run(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return done.stdout.strip()


def processor() -> str:
    """The CPU's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def machine() -> dict[str, Any]:
    """What figures depend on: processor, GPU and its driver and clock, versions, commit, date."""
    installed = {each.metadata["Name"].lower() for each in importlib.metadata.distributions()}
    found: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": _run(["git", "rev-parse", "--short", "HEAD"]),
        "processor": processor(),
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES if name in installed},
        "device": "cpu",
    }
    if torch.cuda.is_available():
        query = ["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm", "--format=csv,noheader", "--id=0"]
        driver, clock = (part.strip() for part in _run(query).split(","))
        found |= {"device": torch.cuda.get_device_name(), "driver": driver, "clock": clock}
    return found


def record(name: str, figures: dict[str, Any]) -> Path:
    """Write the figures with the machine they belong to, and print them."""
    on = machine()
    path = RESULTS / f"{name}.{'cpu' if on['device'] == 'cpu' else 'gpu'}.json"
    RESULTS.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": on, "figures": figures}, indent=2) + "\n", encoding="utf-8")
    for key, figure in figures.items():
        print(f"{key:32} {figure}")
    return path
