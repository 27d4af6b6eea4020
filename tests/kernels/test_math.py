"""`T.exp`, `T.approx.exp` and the rest in kernels: near enough on both devices, and the same where they are exact."""

from __future__ import annotations

import float_errors
import numpy as np
import pytest
import torch
from refusals import refused

from warpjit import CompileError, T, warpjit
from warpjit.ir.dtypes import dtype
from warpjit.isa.scalar_math import MATH

COUNT, BLOCK = 4096, 128
ACCURATE = (
    T.exp,
    T.exp2,
    T.log,
    T.log2,
    T.sin,
    T.cos,
    T.tanh,
    T.erf,
    T.rsqrt,
    T.rcp,
    T.floor,
    T.ceil,
    T.round,
    T.trunc,
)
FAST = tuple(getattr(T.approx, name) for name in float_errors.FAST)
NAMES = tuple(function.__name__ for function in ACCURATE)


@warpjit
def accurate(A, Out):
    """Each function of A in a row of Out."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=COUNT // BLOCK, block=BLOCK))
    i = T.cuda.block_idx() * BLOCK + T.cuda.thread_idx()
    x = A[i]
    for row, function in enumerate(ACCURATE):
        Out[row, i] = function(x)


@warpjit
def fast(A, Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=COUNT // BLOCK, block=BLOCK))
    i = T.cuda.block_idx() * BLOCK + T.cuda.thread_idx()
    x = A[i]
    for row, function in enumerate(FAST):
        Out[row, i] = function(x)


def tensor(values, name):
    return torch.from_numpy(values.view(np.uint8)).view(getattr(torch, name))


def array(values, name):
    return values.cpu().contiguous().view(torch.uint8).numpy().view(dtype(name).numpy)


def results(run, device, kernel, x, name, rows):
    """What a kernel gives for x: (rows, COUNT)."""
    out = torch.zeros((rows, COUNT), dtype=getattr(torch, name), device=device)
    run(kernel, tensor(x, name).to(device), out)
    return array(out, name)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_accurate_functions(device, run, name):
    x = float_errors.arguments(dtype(name), COUNT)
    got = results(run, device, accurate, x, name, len(NAMES))
    for function, values in zip(NAMES, got, strict=True):
        wrong = ~float_errors.accurate(function, x, values)
        assert not wrong.any(), (function, x[wrong][:5], values[wrong][:5])
        simulated = MATH[function, name].meaning(x)
        exactly = float_errors.ACCURATE[function][name == "float64"] == 0
        if exactly or device == "cpu":
            assert (float_errors.ulps(values, simulated) == 0).all(), function


def test_fast_functions(device, run):
    x = float_errors.arguments(dtype("float32"), COUNT)
    got = results(run, device, fast, x, "float32", len(FAST))
    for function, values in zip(float_errors.FAST, got, strict=True):
        wrong = ~float_errors.fast(function, x, values)
        assert not wrong.any(), (function, x[wrong][:5], values[wrong][:5])


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_fast_functions_of_16_bits(device, run, name):
    """They are the float32 functions, rounded."""
    x = float_errors.arguments(dtype(name), COUNT)
    narrow = results(run, device, fast, x, name, len(FAST))
    with np.errstate(all="ignore"):
        single = results(run, device, fast, x.astype(np.float32), "float32", len(FAST)).astype(dtype(name).numpy)
        assert (float_errors.ulps(narrow, single) == 0).all()


@warpjit
def flushed(A, Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    Out[0, lane] = T.ptx["ex2.approx.ftz.f32"](A[lane])
    Out[1, lane] = T.approx.exp2(A[lane])


def test_the_flushing_form_by_its_name(device, run):
    x = torch.arange(-140.0, -108.0, device=device)
    out = torch.zeros((2, 32), device=device)
    run(flushed, x, out)
    values, (flushing, keeping) = x.cpu().numpy(), out.cpu().numpy()
    assert (flushing[values < -126] == 0).all() and (keeping > 0).all()
    assert float_errors.fast("exp2", values, keeping).all()
    assert float_errors.fast("exp2", values[values >= -126], flushing[values >= -126]).all()


@warpjit
def known(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
    Out[0] = T.exp(1.5)
    Out[1] = T.approx.log2(1024)
    Out[2] = T.round(2.5)
    Out[3] = T.rcp(-0.0)
    Out[4] = T.log(-1)


def test_numbers_that_are_known_while_tracing_leave_no_operation(device, run):
    out = torch.zeros(5, device=device)
    run(known, out)
    assert out[:4].tolist() == [np.float32(np.exp(1.5)), 10.0, 2.0, -np.inf] and out[4].isnan()
    source = known.source(out, target="sm_90a")
    assert "expf" not in source and "asm" not in source and "4.481689f" in source


def test_a_kernel_without_functions_declares_none():
    assert "float expf(float)" in accurate.source(torch.zeros(COUNT), torch.zeros(14, COUNT), target="sm_90a")
    assert 'extern "C" __device__' not in fast.source(torch.zeros(COUNT), torch.zeros(10, COUNT), target="sm_90a")


def strict(functions):
    @warpjit(strict=True)
    def computed(A, Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
        i = T.cuda.thread_idx()
        for function in functions:
            Out[i] = function(A[i])

    return computed


@pytest.mark.nvcc
def test_only_sine_and_cosine_need_a_stack_frame():
    a = torch.zeros(BLOCK, dtype=torch.float64)
    others = tuple(function for function in ACCURATE if function not in (T.sin, T.cos))
    for values in (a, a.float()):
        assert strict(others).resources(values, values, target="sm_90a").stack_bytes == 0
    with pytest.raises(CompileError, match="strict=True"):
        strict((T.sin,)).cubin(a, a, target="sm_90a")


def whole(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    Out[lane] = T.exp(lane)


def double(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    x = T.float64(T.cuda.lane_id())
    Out[0] = T.approx.exp(x)


def truth(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[0] = T.rsqrt(True)


def tensors(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[0] = T.approx.tanh(Out)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (whole, "T.exp: expected a float but got a scalar of type int32"),
        (double, "T.approx.exp: expected float16, bfloat16 or float32 but got a scalar of type float64"),
        (truth, "T.rsqrt: expected a float but got bool True"),
        (tensors, "T.approx.tanh: expected float16, bfloat16 or float32 but got the tensor Out"),
    ],
)
def test_other_values_are_refused(body, sentence):
    assert [message for message, _ in refused(body)] == [sentence]
