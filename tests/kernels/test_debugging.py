"""Assertions and printing: on the device, in the simulator, and while tracing. Refusals: `tests/errors`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from warpjit import SimulationError, T, TraceError, warpjit

ONE_WARP = T.cuda.LaunchConfig(grid=1, block=32)
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@warpjit(debug=True)
def said(A, n):
    """Four lines by each of two warps of two CTAs."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=64))
    lane, cta = T.cuda.lane_id(), T.cuda.block_idx()
    if lane >= 30:
        print(f"CTA {cta}", T.cuda.warp_id(), lane, sep=" / ", end="!\n")
        print(f"{A[lane]:.2f} {A[lane] < 0} {{%}} {n:05d} {n:<4d}|{n + lane:x}", "50 %", None)
        T.printf('100%% "%s" %5d %-4u| %llx %c\n', "a\\b", lane, T.uint32(n), T.int64(-1), 65)
        T.printf("%8.3f %g %e\n", A[lane], T.float16(A[lane]), T.float64(A[lane]))


def said_by(cta: int, warp: int) -> str:
    return "".join(
        f"CTA {cta} / {warp} / {lane}!\n" for lane in (30, 31)
    ) + "".join(
        f"{-lane / 4:.2f} True {{%}} 00007 7   |{7 + lane:x} 50 % None\n" for lane in (30, 31)
    ) + "".join(
        f'100% "a\\b" {lane:5d} 7   | ffffffffffffffff A\n' for lane in (30, 31)
    ) + "".join(
        f"{-lane / 4:8.3f} {-lane / 4:g} {-lane / 4:e}\n" for lane in (30, 31)
    )  # fmt: skip


@pytest.mark.parametrize("seed", [0, 3])
def test_the_simulator_prints_in_the_order_of_ctas_warps_and_lanes(capsys, seed):
    said.simulate(-torch.arange(32) / 4, 7, seed=seed)
    assert capsys.readouterr().out == "".join(said_by(cta, warp) for cta in (0, 1) for warp in (0, 1))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_every_width_print_as_in_python(capsys, dtype):
    @warpjit(debug=True)
    def kernel(A):
        T.device_entry(launch=ONE_WARP)
        if T.cuda.lane_id() == 0:
            print(A[0], A[1], f"{A[0]:x}")

    limits = torch.iinfo(getattr(torch, dtype))
    kernel(torch.tensor([limits.max, limits.min], dtype=getattr(torch, dtype)))
    assert capsys.readouterr().out == f"{limits.max} {limits.min} {limits.max:x}\n"


def test_what_was_printed_before_a_finding_is_shown(capsys):
    @warpjit(debug=True)
    def kernel(A):
        T.device_entry(launch=ONE_WARP)
        lane = T.cuda.lane_id()
        if lane == 0:
            T.printf("begins\n")
        value = A[lane]
        assert 0 <= value < 30, f"{value} of lane {lane}"
        T.device_assert(value != 5, "never comes")

    a = torch.arange(32, dtype=torch.int32)
    with pytest.raises(SimulationError) as caught:
        kernel(a)
    assert capsys.readouterr().out == "begins\n"
    message = "assertion failed: 30 of lane 30; CTA (0, 0, 0), warp 0, lane 30 (and 1 more thread)"
    assert [finding.message for finding in caught.value.findings] == [message]
    assert 'assert 0 <= value < 30, f"{value} of lane {lane}"' in str(caught.value)


def checked(debug):
    @warpjit(debug=debug)
    def kernel(A, Out):
        T.device_entry(launch=ONE_WARP)
        lane = T.cuda.lane_id()
        assert A[lane] > 0
        T.device_assert(A[lane] > 0, "A")
        print("lane", lane)
        Out[lane] = lane

    return kernel


def test_without_debug_nothing_is_left_of_them(device, run, capsys):
    """Not even what only their arguments need."""
    a, out = (torch.zeros(32, dtype=torch.int32, device=device) for _ in range(2))
    run(checked(False), a, out)
    assert out.tolist() == list(range(32))
    assert capsys.readouterr().out == ""
    text = checked(False).source(a, out)
    assert "printf" not in text and "assert" not in text and "A +" not in text


def test_the_environment_asks_for_debug(monkeypatch, capsys):
    a = torch.zeros(32, dtype=torch.int32)
    for value, debugs in (("1", True), ("0", False), ("", False)):
        monkeypatch.setenv("WARPJIT_DEBUG", value)
        assert checked(None).options.debug == debugs
        assert not checked(False).options.debug
    monkeypatch.setenv("WARPJIT_DEBUG", "1")
    text = checked(None).source(a, a)
    assert '__assertfail("A[lane] > 0", "test_debugging.py", ' in text and '__assertfail("A", ' in text
    with pytest.raises(SimulationError, match=r"assertion failed: A\[lane\] > 0"):
        checked(None)(a, a)


def test_printing_builds_for_every_target(run):
    """(`run` notes the kernel for the compiler.)"""
    run(said, -torch.arange(32) / 4, 7)


# ---- while tracing -----------------------------------------------------------------------------------------


def test_static_print_shows_what_is_known(capsys):
    N = T.dynamic("N", multiple_of=4)

    @warpjit
    def kernel(A: T.Tensor((N, 8), "float32")):
        T.device_entry(launch=ONE_WARP)
        lane = T.cuda.lane_id()
        box = T.alloc_shared((4, 8), "float16")
        for i in range(3):
            T.static_print("loop", i)
        for i in T.unroll(2):
            T.static_print("copy", i)
        T.static_print(lane, T.int64(3), box, A.shape[0] > 4, (lane, 1))

    kernel(torch.zeros(8, 8))
    assert capsys.readouterr().out == (
        "loop int32, 0 to 2, known while tracing\ncopy 0\ncopy 1\n"
        "int32, 0 to 31, different from lane to lane int64(3) "
        "box: shared float16 (4, 8), layout TileLayout(S[(4, 8) : (8, 1)]) "
        "bool, 0 to 1, the same for the whole grid (int32, 0 to 31, different from lane to lane, 1)\n"
    )


def test_static_conditions_are_checked_while_tracing():
    @warpjit
    def kernel(A, *, size):
        T.device_entry(launch=ONE_WARP)
        T.static_assert(size % 4 == 0, f"size {size}")
        assert size < 100, "too large"
        for i in range(4):
            T.static_assert(i < 4)

    a = torch.zeros(32)
    kernel(a, size=8)
    with pytest.raises(TraceError, match="assertion failed: size 6"):
        kernel(a, size=6)
    with pytest.raises(TraceError, match="assertion failed: too large"):
        kernel(a, size=104)


# ---- on the device -----------------------------------------------------------------------------------------

SCRIPT = """
import sys
sys.path[:0] = {paths!r}
import torch
from test_debugging import checked, said
if sys.argv[1] == "print":
    said(-torch.arange(32, device="cuda") / 4, 7)
else:
    a = torch.zeros(32, dtype=torch.int32, device="cuda")
    checked(True)(a, a)
torch.cuda.synchronize()
"""


def in_a_process(what: str) -> subprocess.CompletedProcess[str]:
    """The driver writes to the process's own stdout, and a failed assertion is the end of a process."""
    script = SCRIPT.format(paths=[str(Path(__file__).parent), *sys.path])
    return subprocess.run([sys.executable, "-c", script, what], capture_output=True, text=True, check=False)


@pytest.mark.gpu
def test_the_device_prints_the_same_lines():
    done = in_a_process("print")
    assert done.returncode == 0, done.stderr
    wanted = "".join(said_by(cta, warp) for cta in (0, 1) for warp in (0, 1))
    assert sorted(done.stdout.splitlines()) == sorted(wanted.splitlines())


@pytest.mark.gpu
def test_a_failed_assertion_ends_the_kernel():
    done = in_a_process("assert")
    assert done.returncode != 0
    assert "device-side assert" in done.stderr
    assert "Assertion `A[lane] > 0` failed" in done.stderr + done.stdout
    assert "test_debugging.py" in done.stderr + done.stdout
