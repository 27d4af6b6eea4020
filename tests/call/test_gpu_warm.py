"""Warm calls on a GPU: each of the three doors of a call gives what the slow path gives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from call_kernels import rows, transfer
from test_dispatch import called

from warpjit import ArgumentError, LaunchError, T, guards, kernel, warpjit

pytestmark = pytest.mark.gpu

M = T.dynamic("M")
SLEEP = 200_000_000  # clock cycles: about a tenth of a second
DOORS = 4
"""Calls until a launch is recent: the slow path, the table twice, the guard."""


@warpjit
def added(X, Out, by):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=X.shape[0], block=32))
    row, lane = T.cuda.block_idx("x"), T.cuda.lane_id()
    if lane < X.shape[1]:
        Out[row, lane] = X[row, lane] + by


def poison(*shape: int, device: Any = "cuda") -> torch.Tensor:
    return torch.full(shape, float("nan"), device=device)


def forbid_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "specialize", lambda *args, **how: pytest.fail("the slow path"))


def test_torchs_guards_are_used() -> None:
    assert guards._torch_guards() is not None
    x = torch.zeros(4, 4, device="cuda")
    guard = guards.guard([x])
    assert guard(torch.empty(4, 4, device="cuda"))
    others = [x.cpu(), x.half(), x.t()[:2], x.new_empty(4, 5), x[:, :2], torch._neg_view(x), x.view(16)]
    assert not any(guard(other) for other in others)


def test_a_warm_call_is_two_functions() -> None:
    x, out = torch.ones((5, 32), device="cuda"), poison(5, 32)
    for _ in range(DOORS):
        added(x, out, 1.0)
    python, c = called(lambda: added(x, out, 2.0))
    assert python == ["call", "launch"]
    assert sorted(c) == sorted(
        ["check", "data_ptr", "data_ptr", "pop", "pack_into", "_cuda_getCurrentRawStream", "append"]
    )
    torch.cuda.synchronize()
    assert (out == 3).all()


def test_every_door_launches_on_the_current_stream() -> None:
    fresh, side = warpjit(added.function), torch.cuda.Stream()
    x, outputs = torch.zeros((3, 32), device="cuda"), [poison(3, 32) for _ in range(6)]
    fresh(x, poison(3, 32), 1.0)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(SLEEP)
        x.fill_(5.0)
        for number, out in enumerate(outputs):
            fresh(x, out, float(number))
    assert not side.query()  # no call waits
    side.synchronize()
    assert all((out == 5 + number).all() for number, out in enumerate(outputs))


@pytest.mark.parametrize("bind", [False, True], ids=["called", "bound"])
def test_warm_calls_are_captured_and_replayed(bind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x, middle, out = torch.zeros((5, 32), device="cuda"), poison(5, 32), poison(5, 32)
    first: Callable[..., None] = added.bind(x, middle, 1.0) if bind else added
    for _ in range(DOORS):
        first(x, middle, 1.0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    forbid_slow(monkeypatch)
    with torch.cuda.graph(graph):
        first(x, middle, 2.0)
        first(middle, out, 0.5)
    for start in (10.0, -4.0):
        x.fill_(start)
        graph.replay()
        torch.cuda.synchronize()
        assert (middle == start + 2).all() and (out == start + 2.5).all()


def test_a_new_size_in_a_capture_is_captured_where_its_program_is_loaded() -> None:
    fresh = warpjit(rows.function)
    x, out = (torch.ones((3, 8), dtype=torch.int32, device="cuda") for _ in range(2))
    fresh(x, out)
    torch.cuda.synchronize()
    graph, large = torch.cuda.CUDAGraph(), torch.ones((90, 8), dtype=torch.int32, device="cuda")
    wrong = torch.ones((90, 8), dtype=torch.int32, device="cuda").view(-1)[1:-7].view(89, 8)
    with torch.cuda.graph(graph):
        fresh(large, large)
        with pytest.raises(LaunchError, match="while a CUDA graph is captured"):
            fresh(wrong, wrong)
    assert (large == 1).all()
    graph.replay()
    torch.cuda.synchronize()
    assert (large == 2).all()


def test_a_thread_that_never_touched_cuda_launches_warm() -> None:
    x, out = torch.ones((4, 32), device="cuda"), poison(4, 32)
    for _ in range(DOORS):
        added(x, out, 1.0)
    torch.cuda.synchronize()
    out.fill_(float("nan"))
    torch.cuda.synchronize()
    thread = threading.Thread(target=lambda: [added(x, out, 7.0) for _ in range(3)])
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert (out == 8).all()


def test_every_device_and_the_current_one_as_it_was() -> None:
    before = torch.cuda.current_device()
    devices = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    inputs = [(torch.ones((4, 32), device=device), poison(4, 32, device=device)) for device in devices]
    for number in range(DOORS):
        for x, out in inputs:
            added(x, out, float(number))
            torch.cuda.synchronize(x.device)
            assert (out == 1 + number).all()
    assert torch.cuda.current_device() == before


VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "whole": lambda x: x,
    "transposed": lambda x: x.t(),
    "columns": lambda x: x[:, 2:7],
    "offset": lambda x: x[3:],
    "unaligned": lambda x: x.reshape(-1)[1:101].view(10, 10),
    "steps": lambda x: x[::2, ::3],
    "expanded rows": lambda x: x[:1].expand(5, -1),
    "expanded columns": lambda x: x[:, :1].expand(-1, 6),
    "one row": lambda x: x[4:5, :9],
    "one column": lambda x: x[:, 3:4],
    "odd strides": lambda x: x.as_strided((1, 8), (777, 1)),
    "no rows": lambda x: x[:0],
    "no columns": lambda x: x[:, :0],
    "parameter": torch.nn.Parameter,
}


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_through_every_door(view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = warpjit(transfer.function)
    base = torch.randn((12, 12), device="cuda")
    for number in range(DOORS + 2):
        if number == DOORS:
            forbid_slow(monkeypatch)
        x = VIEWS[view](base + number)
        out = torch.full(x.shape, float("nan"), device="cuda")
        fresh(x, out)
        torch.cuda.synchronize()
        assert torch.equal(out, x)


def test_views_in_turn_do_not_mix() -> None:
    base = torch.randn((12, 12), device="cuda")
    for _ in range(DOORS):
        for view in VIEWS.values():
            x = view(base)
            out = torch.full(x.shape, float("nan"), device="cuda")
            transfer(x, out)
            torch.cuda.synchronize()
            assert torch.equal(out, x)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_parameters_in_modes_of_torch(mode: Callable[[], Any]) -> None:
    weights = torch.nn.Parameter(torch.randn((4, 32), device="cuda"))
    for number in range(DOORS):
        out = poison(4, 32)
        added(weights, out, float(number))
        with mode():
            inside = poison(4, 32)
            added(weights, inside, float(number))
        torch.cuda.synchronize()
        assert torch.equal(out, weights.detach() + number) and torch.equal(inside, out)
    assert weights.requires_grad and weights.grad is None


@pytest.mark.parametrize(
    "by", [2, -(2**31), True, 0.1, np.int32(5), np.float64(0.1), np.float16(0.3), np.uint8(200), np.bool_(True)]
)
def test_numbers_through_every_door(by: Any) -> None:
    @warpjit
    def stored(Out, value):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = T.float64(value)

    expected = float(np.float32(by)) if type(by) is float else float(by)
    for _ in range(DOORS):
        out = torch.zeros(32, dtype=torch.float64, device="cuda")
        stored(out, by)
        torch.cuda.synchronize()
        assert (out == expected).all()


def test_a_wrong_warm_call_changes_nothing() -> None:
    x, out = torch.ones((4, 32), device="cuda"), torch.zeros((4, 32), device="cuda")
    for _ in range(DOORS):
        added(x, out, 1.0)
    torch.cuda.synchronize()
    out.zero_()
    for args in [(x, out.cpu(), 1.0), (x, out, 1e39), (torch._neg_view(x), out, 1.0), (x, out)]:
        with pytest.raises(ArgumentError):
            added(*args)
    torch.cuda.synchronize()
    assert not out.any()


def test_memory_that_moves_is_followed() -> None:
    x, out = torch.ones((4, 32), device="cuda"), torch.zeros((4, 32), device="cuda")
    for _ in range(DOORS):
        added(x, out, 1.0)
    bound = added.bind(x, out, 1.0)
    x.data = torch.full((4, 32), 6.0, device="cuda")
    for call in (lambda: added(x, out, 1.0), bound):
        out.zero_()
        call()
        torch.cuda.synchronize()
        assert (out == 7).all()
