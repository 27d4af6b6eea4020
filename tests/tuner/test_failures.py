"""Configurations that fail are data: their state and reason are kept, and the others are tuned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from tuner_kernels import MadeUp, blocks, doubled

from warpjit import ArgumentError, CompileError, Config, LaunchError, T, TargetError, TraceError, TuningError, warpjit
from warpjit.build import Resources
from warpjit.cuda.driver import DriverError
from warpjit.errors import Finding, Frame, Loc
from warpjit.isa.target import Target
from warpjit.tuner import Limits, State, Tuned, isolated
from warpjit.tuner.candidates import sentence, state_of
from warpjit.tuner.isolated import Isolation
from warpjit.tuner.settings import occupancy
from warpjit.tuner.trials import ContextLostError


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "cache"))


def tuned(kernel: Any, configs: Any, times: Any, **settings: Any) -> Tuned:
    return warpjit.autotune(configs, timer=MadeUp(times), **settings)(kernel)


N = T.dynamic("N")


@warpjit
def odd(X: T.Tensor((32,), "float32"), Out: T.Tensor((32,), "float32"), *, how):
    """Out = X, in the ways in which a configuration can go wrong."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    if how == "shared":
        arena = T.alloc_shared((1 << 20,), "float32")
        arena[lane] = X[lane]
    if how == "untraceable":
        Out[lane] = "a string"
    if how == "outside":
        Out[lane + 1] = X[lane]
    Out[lane] = X[lane] + (1.0 if how == "wrong" else 0.0)


WAYS = [Config(how=each) for each in ("shared", "untraceable", "outside", "wrong", "well", "slowly")]
TIMES = {"how='wrong'": 1.0, "how='well'": 2.0, "how='slowly'": 3.0}


def test_each_failure_is_kept_with_its_reason_and_the_rest_is_tuned() -> None:
    x, out = torch.arange(32.0), torch.zeros(32)
    kernel = tuned(odd, WAYS, TIMES, check=True)
    kernel(x, out)
    assert torch.equal(out, x)
    found = {each.config: each for each in kernel.tune(x, out).entries}
    assert {name: each.state.value for name, each in found.items()} == {
        "how='shared'": "too-much-shared",
        "how='untraceable'": "compile-error",
        "how='outside'": "launch-error",
        "how='wrong'": "mismatch",
        "how='well'": "timed",
        "how='slowly'": "timed",
    }
    assert "4,194,304" in found["how='shared'"].reason
    assert found["how='untraceable'"].reason.startswith("TraceError: ")
    assert found["how='outside'"].reason.startswith("SimulationError: ")
    assert found["how='wrong'"].reason == "32 of 32 elements of Out differ from most others'"


def test_failures_are_not_tried_again_and_are_listed_when_nothing_runs() -> None:
    x, out = torch.arange(32.0), torch.zeros(32)
    for _ in range(2):
        with pytest.raises(TuningError) as caught:
            tuned(odd, WAYS[:3], {})(x, out)
        lines = str(caught.value).splitlines()
        assert lines[0].endswith("odd: expected a configuration that runs but none of 3 does")
        assert [line.split(": ")[1] for line in lines[1:]] == ["too-much-shared", "compile-error", "launch-error"]
        first = odd.function.__code__.co_firstlineno
        assert [line.rpartition(" (")[2] for line in lines[1:]] == [f"{__file__}:{first + at})" for at in (1, 9, 11)]
    assert (out == 0).all()


def test_a_reason_is_one_line_with_a_place() -> None:
    frame = Frame("kernels.py", "kernel", 7, 0, 1)
    two = TraceError.collect([Finding("expected A\nbut got B", Loc((frame, replace(frame, line=3)))), Finding("more")])
    assert sentence(two) == "TraceError: expected A; but got B (kernels.py:3), and 1 more"
    assert sentence(TraceError("no place")) == "TraceError: no place"
    assert sentence(TraceError.at("x" * 500, Loc((frame,)))) == f"TraceError: {'x' * 400} (kernels.py:7)"
    assert sentence(RuntimeError("one\n\ntwo\nthree")) == "RuntimeError: one; two"


def test_a_reference_decides_what_is_right() -> None:
    def reference(X: torch.Tensor, Out: torch.Tensor) -> None:
        Out.copy_(X + 1.0)

    x, out = torch.arange(32.0), torch.zeros(32)
    kernel = tuned(odd, WAYS[3:], TIMES, reference=reference)
    assert kernel.best(x, out) == Config(how="wrong")
    states = {each.config: each.reason for each in kernel.tune(x, out).entries}
    assert states["how='well'"] == "32 of 32 elements of Out differ from the reference's"
    assert (out == 0).all()


def test_tolerances_are_the_users() -> None:
    x, out = torch.arange(32.0), torch.zeros(32)
    assert tuned(odd, WAYS[3:], TIMES, check=True, atol=1.5).best(x, out) == Config(how="wrong")


def test_arguments_that_fit_no_configuration_are_an_error_of_the_call() -> None:
    with pytest.raises(ArgumentError, match="X: expected shape"):
        tuned(odd, WAYS, TIMES)(torch.zeros(3), torch.zeros(32))


def test_an_error_while_timing_is_that_configurations() -> None:
    times = {"BLOCK=32": RuntimeError("CUDA driver said no"), "BLOCK=64": 2.0}
    report = tuned(doubled, blocks(32, 64), times).tune(torch.ones(8), torch.ones(8))
    states = {each.config: (each.state.value, each.reason) for each in report.entries}
    assert states["BLOCK=32"] == ("launch-error", "RuntimeError: CUDA driver said no")


def test_a_lost_context_ends_tuning_and_the_next_process_leaves_it_out() -> None:
    lost = DriverError("cuLaunchKernelEx", 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access")
    args = torch.ones(8), torch.zeros(8)
    with pytest.raises(ContextLostError, match=r"Config\(BLOCK=32\) has made the device unusable .* isolate=True"):
        tuned(doubled, blocks(32, 64), {"BLOCK=32": lost, "BLOCK=64": 2.0})(*args)
    kernel = tuned(doubled, blocks(32, 64), {"BLOCK=64": 2.0})
    kernel(*args)
    assert (args[1] == 2).all()
    assert {each.config: each.state.value for each in kernel.tune(*args).entries}["BLOCK=32"] == "context-lost"


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (DriverError("c", 700, "N", "t"), State.CONTEXT_LOST),
        (DriverError("c", 701, "N", "t"), State.TOO_MANY_REGISTERS),
        (DriverError("c", 1, "N", "t"), State.LAUNCH_ERROR),
        (LaunchError("no"), State.LAUNCH_ERROR),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), State.CONTEXT_LOST),
        (TargetError("at most 1 bytes of shared memory"), State.TOO_MUCH_SHARED),
        (CompileError("a stack frame or spilled registers"), State.TOO_MANY_REGISTERS),
        (CompileError("ptxas"), State.COMPILE_ERROR),
        (ArgumentError("M"), State.REFUSED),
    ],
)
def test_what_an_error_says(error: Exception, state: State) -> None:
    assert state_of(error) is state


# ---- limits ---------------------------------------------------------------------------------------------------


def test_shared_memory_beyond_a_limit_is_known_before_anything_runs() -> None:
    x, out = torch.arange(32.0), torch.zeros(32)
    kernel = tuned(odd, WAYS[4:], TIMES, prune=Limits(shared_bytes=512))
    with pytest.raises(TuningError, match="how='well': pruned: 1024 is above shared_bytes=512"):
        kernel(x, out)


def test_limits_of_what_was_compiled() -> None:
    found, target = Resources(registers=128, stack_bytes=16, shared_bytes=60 << 10), Target.parse("sm_90a")
    assert occupancy(found, 256, target) == 2
    assert Limits().after(found, 256, target) == ""
    assert Limits(registers=100).after(found, 256, target) == "128 is above registers=100"
    assert Limits(stack_bytes=0).after(found, 256, target) == "16 is above stack_bytes=0"
    few = "2 CTAs fit a multiprocessor, fewer than ctas_per_sm=3"
    assert Limits(ctas_per_sm=3).after(found, 256, target) == few
    assert Limits(ctas_per_sm=2, registers=128).after(found, 256, target) == ""


@pytest.mark.parametrize(
    ("registers", "shared", "threads", "fit"), [(32, 1, 1024, 2), (255, 1, 64, 4), (16, 1, 32, 32)]
)
def test_occupancy(registers: int, shared: int, threads: int, fit: int) -> None:
    assert occupancy(Resources(registers, 0, shared), threads, Target.parse("sm_90a")) == fit


# ---- classes and reports --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    factor: float

    @warpjit.autotune(blocks(32, 64), timer=MadeUp({"BLOCK=32": 2.0, "BLOCK=64": 1.0}))
    @warpjit
    def kernel(self, X: T.Tensor((N,), "float32"), Out: T.Tensor((N,), "float32"), *, BLOCK):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(N, BLOCK), block=BLOCK))
        i = T.cuda.block_idx("x") * BLOCK + T.cuda.thread_idx("x")
        if i < N:
            Out[i] = X[i] * self.factor


def test_kernels_in_classes_are_tuned() -> None:
    out = torch.zeros(8)
    Scale(3.0).kernel(torch.ones(8), out)
    assert (out == 3).all()
    assert Scale(3.0).kernel.best(torch.ones(8), out) == Config(BLOCK=64)
    assert "* 3.0f" in Scale(3.0).kernel.source(torch.ones(8), out, BLOCK=32)
    with pytest.raises(ArgumentError, match=r"BLOCK, which is tuned, but got 32: leave it out$"):
        Scale(3.0).kernel(torch.ones(8), out, BLOCK=32)
    for calls in (None, {"BLOCK": 32}, "BLOCK"):
        with pytest.raises(ArgumentError, match="calls: expected a list of calls"):
            Scale(3.0).kernel.warmup(calls)


def test_a_report_is_shown_and_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tuned(odd, WAYS, TIMES, check=True)
    report = kernel.tuning_report(torch.arange(32.0), torch.zeros(32))
    assert "how='well'" in capsys.readouterr().out
    console = Console(file=StringIO(), width=200)
    report.show(console)
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "how='slowly' │ 3.00 ±0.00 │ 1.500" in text
    assert "mismatch: 32 of 32 elements of Out differ" in text
    (axes,) = report.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["how='well'", "how='slowly'"]
    assert [round(bar.get_width(), 3) for bar in axes.patches] == [2.0, 3.0]


# ---- the process of its own -----------------------------------------------------------------------------------


def test_a_process_that_ends_or_says_nothing_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys  # noqa: PLC0415

    monkeypatch.setattr(isolated, "_write", lambda each, folder: None)
    answers = 'print("{}", flush=True); line = input(); '
    patience = 0.3
    programs = {
        "ends": (answers + "sys.exit(3)", (State.CONTEXT_LOST, "its process ended")),
        "hangs": (answers + "time.sleep(60)", (State.TIMEOUT, f"it did not end within {patience} s")),
        "tells": (
            answers + """print('{"state": "launch-error", "reason": "r"}', flush=True); input()""",
            (State.LAUNCH_ERROR, "r"),
        ),
        "well": (answers + """print('{"state": ""}', flush=True); input()""", None),
    }
    real = isolated.subprocess.Popen
    for program, expected in programs.values():
        command = [sys.executable, "-c", f"import sys, time; {program}"]
        monkeypatch.setattr(isolated.subprocess, "Popen", lambda given, command=command, **how: real(command, **how))
        isolation = Isolation(0, seconds=patience if "sleep" in program else 30.0)
        assert isolation.try_out(None) == expected  # type: ignore[arg-type]
        isolation.close()
        assert isolation.child is None


def test_the_process_that_is_apart_makes_integers_that_share_a_place(tmp_path: Path) -> None:
    """Torch writes no place twice: all of a row that is expanded are one."""
    payload = tmp_path / "bytes"
    expected = torch.arange(4, dtype=torch.int32).expand(3, 4)
    payload.write_bytes(expected.contiguous().numpy().tobytes())
    given = {"dtype": "int32", "shape": [3, 4], "strides": [0, 1], "place": 32}
    made = isolated._tensor(given, payload, "cpu", torch)
    assert torch.equal(made, expected)
    assert (made.stride(), made.data_ptr() % isolated.ALIGNMENT) == ((0, 1), 32)
