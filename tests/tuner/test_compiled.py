"""Candidates made into cubins: in copies of the process or in it, the same comes out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from warpjit import ArgumentError, CompileError, Config, T, warpjit
from warpjit.cuda import processes
from warpjit.isa.target import Target
from warpjit.tuner import Limits, Settings
from warpjit.tuner.candidates import Candidate, Prepared, compiled
from warpjit.tuner.record import Entry

pytestmark = pytest.mark.nvcc
TARGET = Target.parse("sm_90a")


@warpjit
def odd(X: T.Tensor((32,), "float32"), Out: T.Tensor((32,), "float32"), *, how, times):
    """Out = times X, in the ways in which a configuration can go wrong before it runs."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    if how == "shared":
        arena = T.alloc_shared((1 << 20,), "float32")
        arena[lane] = X[lane]
    if how == "limit":
        arena = T.alloc_shared((1 << 13,), "float32")
        arena[lane] = X[lane]
    if how == "untraceable":
        Out[lane] = "a string"
    if how == "refused by ptxas":
        T.asm("no.such.instruction;")
    if how == "printing":
        T.static_print("traced")
    Out[lane] = X[lane] * times


HOWS = ("well", "shared", "limit", "untraceable", "refused by ptxas", "printing")
CONFIGS = [Config(how=how, times=times) for how in HOWS for times in (1.0, 2.0)]


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The compilers that this process itself ran; the store is the test's own."""
    found: list[Sequence[str]] = []
    run = processes.run

    def noted(command: Sequence[str], *more: Any) -> Any:
        found.append(command)
        return run(command, *more)

    monkeypatch.setattr(processes, "run", noted)
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "cache"))
    return found


def candidate(config: Config) -> Candidate:
    constants = {"how": config.how, "times": config.times}
    return Candidate(config, odd, (torch.ones(32), torch.ones(32)), constants)


def made(configs: Sequence[Config], **settings: Any) -> tuple[list[Prepared], list[Entry]]:
    given = Settings(progress=False, prune=Limits(shared_bytes=16 << 10), **settings)
    return compiled(candidate, configs, TARGET, given, "odd")


def told(ready: Sequence[Prepared], failed: Sequence[Entry]) -> tuple[Any, Any]:
    assert all(each.executable is not None for each in ready)
    machine = [(each.config.text, each.plan, each.code, each.executable.cubin) for each in ready if each.executable]
    return machine, sorted(failed, key=lambda each: each.config)


def test_copies_make_what_the_process_itself_makes(
    runs: list[Sequence[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_copies = told(*made(CONFIGS, jobs=2))
    assert runs == []
    assert capsys.readouterr().out == "traced\ntraced\n"  # once each: by who asked
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "another"))
    odd_again = told(*made(CONFIGS, jobs=1))
    assert runs != []
    assert in_copies == odd_again
    assert [text for text, *_ in in_copies[0]] == [each.text for each in CONFIGS if each.how in ("well", "printing")]
    assert {(each.config.split(",")[0], each.state.value) for each in in_copies[1]} == {
        ("how='shared'", "too-much-shared"),
        ("how='limit'", "pruned"),
        ("how='untraceable'", "compile-error"),
        ("how='refused by ptxas'", "compile-error"),
    }


def test_what_the_store_has_is_not_made_again(runs: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    well = [Config(how="well", times=float(times)) for times in range(5)]
    first = told(*made(well, jobs=2))
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("it forks"))
    assert told(*made(well, jobs=2)) == first
    assert runs == []


def test_without_a_folder_all_is_made_here(
    runs: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", "/dev/null/nowhere")
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("it forks"))
    ready, failed = made([Config(how="well", times=float(times)) for times in range(20, 24)], jobs=2)
    assert (len(ready), failed, len(runs) > 0) == (4, [], True)
    assert "kernels stay in memory" in caplog.text


def test_arguments_that_fit_nothing_and_a_missing_compiler_are_the_calls_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configs = [Config(how="well", times=float(times)) for times in range(30, 35)]

    def ill(config: Config) -> Candidate:
        return Candidate(config, odd, (torch.ones(31), torch.ones(32)), {"how": "well", "times": config.times})

    with pytest.raises(ArgumentError, match="X: expected shape"):
        compiled(ill, configs, TARGET, Settings(progress=False), "odd")
    monkeypatch.setenv("CUDA_HOME", "/nonexistent")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CompileError, match="nvcc"):
        made(configs, jobs=2)
