"""The figures' machinery on a GPU: that loops count what they say, clocks are read, and every contestant is right."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import torch

from bench import gemm, launch
from bench.clocks import watching
from bench.contestants import AGAIN, CONTESTANTS, CUBLAS, LOOP, REFERENCE
from bench.harness import Settings
from bench.launchers import C_LOOP, CTYPES, LAUNCHERS, TORCH, WARPJIT, Ground
from bench.loop import Loop, Probe
from bench.products import DTYPES, Case, Problem, Size
from bench.regimes import Alternating, GpuTimer, Sustained, duration, runner_of

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]

CLOCKS = (100, 4000)
SMALL = Size(512, 768, 256)


@pytest.fixture(autouse=True)
def side_stream() -> Iterator[None]:
    with torch.cuda.stream(torch.cuda.Stream()):
        yield
    torch.cuda.synchronize()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_loop_adds_what_it_was_given_and_reads_its_clock(dtype: str) -> None:
    loop = Loop(dtype, seed=1)
    assert loop.error() < 2.0**-12
    loop.launch()
    torch.cuda.synchronize()
    clock = loop.clock()
    assert clock is not None
    assert CLOCKS[0] < clock < CLOCKS[1]


def test_the_probe_reads_the_clock() -> None:
    probe = Probe()
    probe("work")
    torch.cuda.synchronize()
    clock = probe.clock("work")
    assert clock is not None
    assert CLOCKS[0] < clock < CLOCKS[1]
    assert probe.clock("nothing") is None


@pytest.mark.parametrize("name", [REFERENCE, CUBLAS])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_contestant_is_right(dtype: str, name: str) -> None:
    (contestant,) = (each for each in CONTESTANTS if each.name == name)
    entrant = contestant.prepare(Problem(Case(SMALL, dtype), "cuda", seed=2), 2)
    assert "were not written" in str(entrant.check().error)
    entrant.launch()
    torch.cuda.synchronize()
    assert entrant.check().error is None


def test_short_launches_are_recorded_in_a_graph() -> None:
    (contestant,) = (each for each in CONTESTANTS if each.name == REFERENCE)
    entrant = contestant.prepare(Problem(Case(SMALL, "bfloat16"), "cuda", seed=3), 3)
    runner = runner_of(REFERENCE, entrant.launch, GpuTimer())
    assert runner.launches > 1
    entrant.poison()
    assert duration(runner, GpuTimer()) > 0
    assert entrant.check().error is None


def test_a_case_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm, "Sustained", lambda **how: Sustained(seconds=0.02, rounds=1, warm_up=0.0))
    monkeypatch.setattr(gemm, "Alternating", lambda **how: Alternating(rounds=3))
    names = (REFERENCE, AGAIN, LOOP, CUBLAS)
    with watching() as watch:
        stage = gemm.Stage("cuda", GpuTimer(), watch)
        found = gemm.measure(Case(SMALL, "bfloat16"), Settings(quick=True, contestants=names, seed=4), stage)
    assert found["errors"] == {}
    for regime in found["regimes"].values():
        assert regime["errors"] == {}
        assert regime["contestants"].keys() == set(names)
        assert f"{AGAIN} / {REFERENCE}" in regime["ratios"]
    assert CLOCKS[0] < found["regimes"]["sustained"]["contestants"][REFERENCE]["clock, MHz"] < CLOCKS[1]


def test_launches_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "CHUNKS", 2)
    names = (WARPJIT, C_LOOP, CTYPES, TORCH)
    with ExitStack() as stack:
        loops, errors = launch.prepared(LAUNCHERS, Settings(contestants=names), Ground.here(), stack)
        chunks = launch.interleaved(loops, errors, 2, random.Random(5), torch.cuda.synchronize)
    assert errors == {}
    assert chunks.keys() == set(names)
    assert all(0 < each < 1e4 for rounds in chunks.values() for chunk in rounds for each in chunk)
