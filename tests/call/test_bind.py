"""`kernel.bind`: a prepared call, on the simulator and against a stand-in for the driver."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from call_kernels import double, fill, rows
from conftest import Launches

from warpjit import ArgumentError, T, arguments, warpjit
from warpjit.arguments import Place

M = T.dynamic("M")
OFFSET = 10


@warpjit
def scaled(X, Out, n, more=None, *, step=1):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    value = X[lane] * T.int32(n) * step + OFFSET
    if more is not None:
        value += more[lane]
    Out[lane] = value


def fresh() -> Any:
    return warpjit(scaled.function)


def i32(*shape: int) -> torch.Tensor:
    return torch.arange(1, 1 + torch.Size(shape).numel(), dtype=torch.int32).view(shape)


# ---- results --------------------------------------------------------------------------------------------------


def test_a_bound_call_runs_on_what_was_bound_and_on_others(device, run) -> None:
    x, y, out = (i32(32).to(device) for _ in range(3))
    bound = scaled.bind(x, out, 2)
    assert torch.equal(out, x)  # nothing has run
    for call, expected in [
        (lambda: bound(), 2 * x + 10),
        (lambda: bound(y, out, 5), 5 * x + 10),
        (lambda: bound(), 2 * x + 10),
        (lambda: bound(x, y, -1), 2 * x + 10),
    ]:
        call()
        assert torch.equal(out, expected)
    assert torch.equal(y, 10 - x)
    run(scaled, x, out, 2)


def test_constants_and_defaults_stay_as_they_were_bound(device) -> None:
    x, out = i32(32).to(device), i32(32).to(device)
    bound = scaled.bind(x, n=3, Out=out, step=2)
    bound(x, out, 4)
    assert torch.equal(out, 8 * x + 10)
    bound()
    assert torch.equal(out, 6 * x + 10)
    with_more = scaled.bind(x, out, 1, x)
    with_more(x, out, 2, x)
    assert torch.equal(out, 3 * x + 10)


def test_captured_values_are_those_of_the_binding(device, monkeypatch) -> None:
    x, out = i32(32).to(device), i32(32).to(device)
    bound = scaled.bind(x, out, 1)
    monkeypatch.setitem(globals(), "OFFSET", 20)
    bound()
    assert torch.equal(out, x + 10)
    scaled(x, out, 1)
    assert torch.equal(out, x + 20)


def test_a_kernel_without_tensors_or_arguments_can_be_bound() -> None:
    @warpjit
    def nothing():
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

    bound = nothing.bind()
    bound()
    with pytest.raises(ArgumentError, match="expected 0 arguments, or none, but got 1"):
        bound(1)


# ---- refusals -------------------------------------------------------------------------------------------------

x, out = i32(32), i32(32)
KIND = "a tensor of int32, shape (32,), strides (one), aligned to 16 bytes, as was bound, but got a tensor of "
WRONG: list[tuple[tuple[Any, ...], str]] = [
    ((x, out), "expected 3 arguments, or none, but got 2"),
    ((x, out, 1, None), "expected 3 arguments, or none, but got 4"),
    (
        (x.float(), out, 1),
        "X: expected a tensor of int32, shape (32,), strides (one), aligned to 16 bytes, as was bound",
    ),
    (
        (x, out[:16], 1),
        "Out: expected a tensor of int32, shape (32,), strides (one), aligned to 16 bytes, as was bound",
    ),
    ((x, i32(33)[1:], 1), f"Out: expected {KIND}int32, shape (32,), strides (one), aligned to 4 bytes"),
    ((x, i32(64)[::2], 1), f"Out: expected {KIND}int32, shape (32,), strides (free)"),
    ((x, out, 1.0), "n: expected a number of type int32, as was bound, but got a number of type float32"),
    ((x, out, 2**31), "n: 2147483648 does not fit int32"),
    ((None, out, 1), "aligned to 16 bytes, as was bound, but got the constant None"),
    ((torch._neg_view(x), out, 1), "X: the tensor is a view that negates its memory"),
]


@pytest.mark.parametrize("taken", ["simulated", "launched"])
@pytest.mark.parametrize(("args", "sentence"), WRONG)
def test_what_is_not_of_the_bound_kinds_is_refused(
    request: pytest.FixtureRequest, taken: str, args: tuple[Any, ...], sentence: str
) -> None:
    launches = request.getfixturevalue("launches") if taken == "launched" else None
    kernel = fresh()
    if launches:
        launches.expect(kernel, x, out, 1)
    bound = kernel.bind(x, out, 1)
    for _ in range(2):
        with pytest.raises(ArgumentError) as caught:
            bound(*args)
        assert sentence in str(caught.value)
    assert launches is None or launches.lines == []
    assert torch.equal(out, i32(32)) and torch.equal(x, i32(32))


def test_wrong_arguments_are_refused_when_bound() -> None:
    with pytest.raises(ArgumentError, match="expected arguments for value"):
        fill.bind(torch.zeros(32))
    with pytest.raises(ArgumentError, match="expected a tensor of float32 but got int32"):
        fill.bind(x, 1.0)


def test_cpu_tensors_can_be_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPJIT_CPU", "error")
    with pytest.raises(ArgumentError, match="WARPJIT_CPU=error forbids to simulate"):
        double.bind(x, out)


# ---- launches -------------------------------------------------------------------------------------------------


def test_a_bound_call_launches_without_the_slow_path(launches: Launches) -> None:
    kernel = fresh()
    launches.expect(kernel, x, out, 5)
    plain, _ = launches.of(lambda: kernel(x, out, 5))
    bound = kernel.bind(x, out, 5)
    assert launches.lines == []
    for call in (lambda: bound(x, out, 5), bound, lambda: bound(x, out, 5), bound):
        assert launches.of(call) == (plain, 0)
    other, slow = launches.of(lambda: bound(out, x, 7))
    assert slow == 0 and other != plain
    assert repr(bound) == "<<warpjit kernel scaled> bound on cuda:0>"


def test_other_runtime_sizes_are_right_by_the_slow_path(launches: Launches) -> None:
    kernel, small, large = warpjit(rows.function), torch.zeros((3, 8), dtype=torch.int32), i32(9, 8)
    launches.expect(kernel, small, small)
    bound = kernel.bind(small, small)
    plain = launches.of(lambda: kernel(large, large))[0]
    assert launches.of(lambda: bound(large, large)) == (plain, 0)
    assert launches.of(lambda: bound(small, small))[0][0].startswith("launch 3,1,1")


def test_one_tensor_in_two_places_and_modes_of_torch(launches: Launches) -> None:
    kernel = fresh()
    launches.expect(kernel, x, out, 5)
    for first, second in [(x, out), (x, x)]:
        bound = kernel.bind(first, second, 5)
        plain = launches.of(lambda first=first, second=second: kernel(first, second, 5))[0]
        assert launches.of(lambda first=first, second=second, bound=bound: bound(first, second, 5))[0] == plain
        with torch.inference_mode():
            assert launches.of(lambda first=first, second=second, bound=bound: bound(first, second, 5))[0] == plain


def test_a_bound_tensors_new_memory_is_seen(launches: Launches) -> None:
    kernel, mine, other = fresh(), i32(32), i32(32)
    launches.expect(kernel, mine, out, 5)
    bound = kernel.bind(mine, out, 5)
    mine.data = other
    line = launches.of(bound)[0][0]
    assert f": {other.data_ptr().to_bytes(8, 'little').hex()} " in line


@pytest.mark.parametrize("taken", ["simulated", "launched"])
def test_no_tensor_outlives_what_was_bound(request: pytest.FixtureRequest, taken: str) -> None:
    """Without the garbage collector, which does not run when the device's memory is full."""
    kernel, mine = fresh(), i32(32)
    if taken == "launched":
        request.getfixturevalue("launches").expect(kernel, mine, out, 5)
    gc.collect()
    gc.disable()
    try:
        bound, seen = kernel.bind(mine, out, 5), weakref.ref(mine)
        bound()
        bound(mine, out, 6)
        del mine
        assert seen() is not None
        bound()
        del bound
        assert seen() is None
    finally:
        gc.enable()


def test_the_call_alone_is_refused(launches: Launches) -> None:
    kernel = fresh()
    launches.expect(kernel, x, out, 5)
    call = kernel.bind(x, out, 5).__call__
    with pytest.raises(ArgumentError, match="but only its __call__ was kept"):
        call()
    assert launches.lines == []


def test_without_tensors_another_current_device_is_refused(launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    @warpjit
    def idle(n):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

    launches.expect(idle, 1)
    bound = idle.bind(1)
    assert launches.of(bound) == launches.of(lambda: bound(1)) != ([], 0)
    monkeypatch.setattr(arguments, "current_device", lambda: 1)
    monkeypatch.setattr(arguments, "place_of", lambda specialization, runtime: Place("cuda", 1))
    for call in (bound, lambda: bound(1)):
        with pytest.raises(ArgumentError, match="on cuda:0, as was bound, but they are on cuda:1"):
            call()
    assert launches.lines == []
