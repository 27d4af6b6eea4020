"""The figures themselves, as far as a machine without a GPU goes: on CPU tensors, with a clock of the host's."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from bench import clocks, gemm, launch, start, trace
from bench.clocks import Watch
from bench.contestants import Contestant, Entrant
from bench.harness import Record, Settings
from bench.launchers import Ground, Launcher, Loop, of_bound, of_warpjit
from bench.products import Case, Problem, Size


class HostTimer:
    """For work that is done when it has been issued."""

    def mark(self) -> float:
        return time.perf_counter()

    def milliseconds(self, start: float, end: float) -> float:
        return (end - start) * 1e3

    def wait(self) -> None:
        pass


def contestant(name: str, factor: float = 1.0, spoiled_at: int = 10**9) -> Contestant:
    """Multiplies with torch; with a factor, wrongly; from launch number `spoiled_at` on, not at all."""

    def prepare(problem: Problem, seed: int) -> Entrant:
        out = problem.poisoned()
        count = iter(range(10**9))

        def multiply() -> None:
            if next(count) < spoiled_at:
                torch.mm(problem.a, problem.w.t(), out=out).mul_(factor)

        return Entrant(multiply, problem.size.flop, lambda: problem.check(out), lambda: out.fill_(torch.nan))

    return Contestant(name, "a test's", prepare)


def absent(problem: Problem, seed: int) -> Entrant:
    raise ImportError("not installed\nat all")


def test_a_product_is_measured_by_those_who_are_right(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    entered = (
        contestant("reference"),
        contestant("reference again"),
        contestant("cuBLAS", factor=1.5),
        contestant("generated", spoiled_at=3),
        Contestant("Triton", "missing", absent),
    )
    monkeypatch.setattr(gemm, "CONTESTANTS", entered)
    monkeypatch.setattr(gemm, "Sustained", lambda **how: gemm_sustained)
    stage = gemm.Stage("cpu", HostTimer(), Watch(_nothing(tmp_path)))
    found = gemm.measure(Case(Size(64, 48, 32), "bfloat16"), Settings(quick=True, seed=5), stage)
    assert found["errors"].keys() == {"cuBLAS", "Triton"}
    assert found["errors"]["Triton"] == "ImportError: not installed; at all"
    assert found["errors"]["cuBLAS"].startswith("wrong: an element is ")
    assert found["checks"]["reference"]["error"] is None
    for regime in ("sustained", "alternating"):
        figures = found["regimes"][regime]
        assert figures["contestants"].keys() == {"reference", "reference again"}
        assert figures["contestants"]["reference"]["TFLOP/s"]["median"] > 0
        assert figures["ratios"].keys() == {"reference again / reference"}
        assert figures["spread of equals"] >= 0
        assert figures["errors"]["generated"].startswith("wrong after the regime: 3072 of 3072 elements are NaN")


gemm_sustained = gemm.Sustained(seconds=0.01, rounds=1, warm_up=0.0)


def _nothing(folder: Path) -> Path:
    path = folder / "samples.csv"
    path.touch()
    return path


def test_contestants_who_lack_a_gpu_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On CPU tensors torch multiplies and warpjit simulates; the others are left out with one line each."""
    monkeypatch.setattr(torch.cuda, "current_device", _no_gpu)
    stage = gemm.Stage("cpu", HostTimer(), Watch(_nothing(tmp_path)))
    settings = Settings(quick=True, regimes=(), contestants=NO_TRITON)
    found = gemm.measure(Case(Size(128, 256, 64), "float16"), settings, stage)
    assert found["errors"] == dict.fromkeys(("reference", "register-only"), "RuntimeError: no GPU")
    assert found["checks"].keys() == {"generated", "pinned", "cuBLAS"}
    assert all(check["error"] is None for check in found["checks"].values())


NO_TRITON = ("generated", "pinned", "reference", "register-only", "cuBLAS")


def _no_gpu() -> int:
    raise RuntimeError("no GPU")


NVIDIA_SMI = """#!/bin/sh
echo "$@" > {arguments}
while true; do
    date "+%Y/%m/%d %H:%M:%S.%3N, 1500, 650.5"
    sleep 0.01
done
"""


def test_samples_are_taken_while_it_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(NVIDIA_SMI.format(arguments=tmp_path / "arguments"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(clocks, "gpu_id", lambda: "GPU-x")
    begin = time.time()
    with clocks.watching() as watch:
        until = begin + 20
        while len(watch.samples) < 3 and time.time() < until:
            time.sleep(0.02)
        reading = clocks.over(watch.samples, [(begin - 0.01, time.time())])
    assert reading is not None
    assert (reading.mhz, reading.watts) == (1500.0, 650.5)
    words = "--query-gpu=timestamp,clocks.sm,power.draw --format=csv,noheader,nounits --id=GPU-x --loop-ms=100"
    assert (tmp_path / "arguments").read_text().strip() == words


def test_nothing_is_watched_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with clocks.watching() as watch:
        assert watch.samples == []


# ---- launch ----------------------------------------------------------------------------------------------------


def test_launches_are_timed_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "CHUNKS", 3)
    monkeypatch.setattr(launch, "LAUNCHES", 20)
    counts: list[int] = []
    errors: dict[str, str] = {}
    fails = iter([None, None, RuntimeError("lost")])

    def broken(count: int) -> None:
        error = next(fails)
        if error:
            raise error

    loops = {"slow": lambda count: time.sleep(count * 1e-4), "fast": counts.append, "broken": broken}
    found = launch.interleaved(loops, errors, 2, random.Random(0), lambda: None)
    assert errors == {"broken": "RuntimeError: lost"}
    assert counts == [20] * 6
    assert {name: [len(each) for each in rounds] for name, rounds in found.items()} == {"slow": [3, 3], "fast": [3, 3]}
    assert min(min(each) for each in found["slow"]) >= 100


def test_who_cannot_launch_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    def missing(ground: Ground, stack: object) -> None:
        raise ImportError("no such package")

    launchers = (Launcher("Triton", "", missing), Launcher("C loop", "", lambda ground, stack: lambda count: None))
    ground = Ground(*(torch.zeros(32) for _ in range(3)), stream=0, device=0)
    loops, errors = launch.prepared(launchers, Settings(), ground, None)
    assert list(loops) == ["C loop"]
    assert errors == {"Triton": "ImportError: no such package"}


def test_ratios_of_launches_are_of_the_least_chunks_of_a_round() -> None:
    chunks = {"warpjit": [[4.0, 9.0], [6.0, 5.0]], "Triton": [[8.0, 8.5], [20.0, 10.0]]}
    found = launch.figures(chunks)
    assert found["ratios"]["warpjit / Triton"] == {"median": 0.5, "least": 0.5, "most": 0.5, "count": 2}
    assert found["launch, us"]["warpjit"] == {"median": 5.5, "least": 4.0, "most": 9.0, "count": 4}
    assert "Triton / C loop" not in found["ratios"]


def test_the_core_is_given_back() -> None:
    with launch.pinned(None) as core, launch.pinned(core) as same:
        assert core == same
    with launch.pinned(None) as again:
        assert again == core


@pytest.mark.parametrize("prepare", [of_warpjit, of_bound])
def test_the_empty_kernel_runs_in_the_simulator(prepare: Callable[[Ground, ExitStack], Loop]) -> None:
    a, b, c = (torch.ones(32) for _ in range(3))
    with ExitStack() as stack:
        prepare(Ground(a, b, c, stream=0, device=0), stack)(2)
    assert all(torch.equal(each, torch.ones(32)) for each in (a, b, c))


# ---- start and trace -------------------------------------------------------------------------------------------


def test_a_start_is_timed_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "CONTESTANTS", (start.WARPJIT, start.TRITON))
    monkeypatch.setattr(start, "started", lambda contestant, device, pairs: made_up_starts(contestant, pairs))
    record = Record(tmp_path / "start.json", {})
    start.run(Settings(runs=2), record)
    assert record.figures["errors"] == {"Triton": "RuntimeError: no Triton"}
    cold = record.figures["starts"]["warpjit, cold"]
    assert (cold["to the first result"]["median"], cold["first"]["median"]) == (110.0, 100.0)
    assert record.figures["starts"]["warpjit, warm"]["to the first result"]["median"] == 15.0


def made_up_starts(contestant: start.Contestant, pairs: int) -> list[start.Started]:
    if contestant is start.TRITON:
        raise RuntimeError("no Triton")
    return [start.Started(kind, (10.0, 100.0 if kind == "cold" else 5.0, 1.0)) for kind in start.KINDS] * pairs


def test_the_example_starts_in_a_fresh_process(tmp_path: Path) -> None:
    parts = start._start(start.WARPJIT, "cpu", str(tmp_path))
    assert len(parts) == len(start.PARTS)
    assert all(part > 0 for part in parts)


@pytest.mark.parametrize("name", trace.SUBJECTS)
def test_a_kernel_is_traced_and_emitted_anew(name: str) -> None:
    make = trace.SUBJECTS[name]
    first, second = make(), make()
    assert first.kernel is not second.kernel
    assert trace.traced(first) > 0
    assert trace.emitted(first) > 0
    assert first.kernel._programs
    assert not second.kernel._programs
