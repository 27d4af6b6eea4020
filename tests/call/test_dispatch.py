"""Which calls take the slow path: the first of its kind, and the first after each change; no other."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from call_kernels import CudaTensor
from conftest import Launches
from driver_stand_in import Fake

from warpjit import ArgumentError, T, arguments, dispatch, guards, warpjit
from warpjit.arguments import Place

M = T.dynamic("M")
SCALE = 3


@pytest.fixture(params=["torch", "python"])
def launching(request: pytest.FixtureRequest, launches: Launches, monkeypatch: pytest.MonkeyPatch) -> Launches:
    """By torch's guards, and without them."""
    if request.param == "python":
        monkeypatch.setattr(guards, "_torch_guards", lambda: None)
    else:
        assert guards._torch_guards() is not None
    return launches


def scaled() -> Any:
    """A kernel that nobody has called."""

    @warpjit
    def scaled(X, Out, n, more=None, *, step=1):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        value = X[0, 0] * T.int32(n) * step * SCALE
        if more is not None:
            value += more[0]
        Out[0, 0] = value

    return scaled


def tensor(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def test_the_slow_path_is_taken_once(launching: Launches) -> None:
    kernel, x, out = scaled(), tensor(4, 8), tensor(4, 8)
    launching.expect(kernel, x, out, 5)
    assert launching.of(lambda: kernel(x, out, 5))[1] == 1
    for _ in range(5):
        lines, slow = launching.of(lambda: kernel(x, out, 6))
        assert len(lines) == 1 and slow == 0
    assert launching.of(lambda: [kernel(tensor(4, 8), tensor(4, 8), i) for i in range(20)])[1] == 0


x, out = tensor(4, 8), tensor(4, 8)
wide, base = tensor(4, 64), tensor(1000)
CHANGES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "dtype": ((tensor(4, 8, dtype=torch.int64), out, 5), {}),
    "shape": ((tensor(8, 4), out, 5), {}),
    "rank": ((tensor(1, 4, 8)[0:1, :, :].view(4, 8)[:, :4], out, 5), {}),
    "transposed": ((tensor(8, 4).t(), out, 5), {}),
    "a stride of rows": ((wide[:, :8], out, 5), {}),
    "another stride of rows": ((tensor(4, 12)[:, :8], out, 5), {}),
    "expanded": ((tensor(1, 8).expand(4, 8), out, 5), {}),
    "alignment": ((base[1:33].view(4, 8), out, 5), {}),
    "the other's alignment": ((x, base[2:34].view(4, 8), 5), {}),
    "a number's type": ((x, out, True), {}),
    "numpy's number": ((x, out, np.int64(5)), {}),
    "a constant": ((x, out, 5), {"step": 2}),
    "a constant's type": ((x, out, 5), {"step": True}),
    "a tensor for None": ((x, out, 5, x[0]), {}),
    "None": ((x, out, 5, None), {}),
    "requires grad": ((torch.nn.Parameter(x, requires_grad=False), out, 5), {}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_takes_the_slow_path_once(launching: Launches, change: str) -> None:
    kernel, (args, constants) = scaled(), CHANGES[change]
    launching.expect(kernel, x, out, 5)
    for _ in range(3):
        kernel(x, out, 5)
    launching.expect(kernel, *args, **constants)
    changed, slow = launching.of(lambda: kernel(*args, **constants))
    assert slow == 1
    for _ in range(3):
        for _ in range(2):
            assert launching.of(lambda: kernel(*args, **constants)) == (changed, 0)
        launching.expect(kernel, x, out, 5)
        assert launching.of(lambda: kernel(x, out, 5))[1] == 0
        launching.expect(kernel, *args, **constants)


def test_a_changed_capture_takes_the_slow_path(launching: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = scaled()
    launching.expect(kernel, x, out, 5)
    for value, slow in [(3, 1), (3, 0), (3, 0), (3, 0), (7, 1), (7, 0), (7, 0), (3, 1), (3, 0), (7.0, 1), (7.0, 0)]:
        monkeypatch.setitem(globals(), "SCALE", value)
        assert launching.of(lambda: kernel(x, out, 5)) == (launching.of(lambda: kernel(x, out, 5))[0], slow)


def changing(value: float) -> tuple[Any, Any]:
    """A function that uses a value, and one that changes it."""

    def times(number: Any) -> Any:
        return number * value

    def change(new: float) -> None:
        nonlocal value
        value = new

    return times, change


def test_a_function_like_the_traced_one_may_change_as_well(launching: Launches) -> None:
    """Two functions that are one constant, until the second, of which the program holds nothing, is changed."""

    @warpjit
    def apply(X: T.Tensor((M, 8), "int32"), *, functions):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        X[0, 0] = functions[0](X[0, 0])

    (first, _), (second, change) = changing(2), changing(2)
    launching.expect(apply, x, functions=(first,))
    apply(x, functions=(first,))
    other, functions = tensor(5, 8), (second,)
    assert launching.of(lambda: apply(other, functions=functions))[1] == 1
    assert [launching.of(lambda: apply(other, functions=functions))[1] for _ in range(4)] == [0] * 4
    change(3)
    assert launching.of(lambda: apply(other, functions=functions))[1] == 1
    assert len(apply._programs) == 2
    assert [launching.of(lambda: apply(other, functions=functions))[1] for _ in range(4)] == [0] * 4


def test_two_devices_are_two_launches(gpu: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.parameters(8)

    @warpjit
    def fill(Out: T.Tensor((32,), "float32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = 1.0

    monkeypatch.setattr("warpjit.build.Built._obtained", lambda built: ("key", b"cubin"))
    for _ in range(4):
        for device in (0, 1):
            fill(CudaTensor(32, index=device))
            (line,) = (line for line in gpu.log if line.startswith("launch"))
            assert f"stream {0x70 + device:#x}" in line
    assert len(fill._dispatch.table) == 2


# ---- what a call costs ----------------------------------------------------------------------------------------


def called(call: Callable[[], object]) -> tuple[list[str], list[str]]:
    """The names of Python's and of C's functions that run in `call`."""
    python, c = [], []

    def note(frame: Any, event: str, arg: Any) -> None:
        if event == "call":
            python.append(frame.f_code.co_name)
        elif event == "c_call":
            c.append(arg.__name__)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return python[1:], c[:-1]  # without the call itself, and setprofile


def test_a_warm_call_is_two_functions(launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = dict.fromkeys(range(1), 0x70).__getitem__  # in C, as torch's
    monkeypatch.setattr("warpjit.arguments.stream_reader", lambda: reader)
    kernel = scaled()
    launches.expect(kernel, x, out, 5)
    for _ in range(3):
        kernel(x, out, 5)
    python, c = called(lambda: kernel(x, out, 5))
    assert python == ["call", "launch"]
    assert sorted(c) == sorted(["check", "data_ptr", "data_ptr", "pop", "pack_into", "__getitem__", "append"])
    bound = kernel.bind(x, out, 5)
    python, c = called(lambda: bound(x, out, 5))
    assert python == ["launch"]
    assert called(lambda: bound())[0] == ["launch", "again", "launch", "always"]
    assert len(launches.lines) == 6


def test_a_call_by_name_costs_one_function_more(launches: Launches) -> None:
    kernel = scaled()
    launches.expect(kernel, x, out, 5)
    for _ in range(3):
        kernel(x, out, n=5)
    python, _ = called(lambda: kernel(x, out, n=5))
    assert {"call", "_missed", "_bound", "by_name", "launch"} <= set(python) and len(python) < 25
    assert "_run" not in python and "_fact" not in python
    assert called(lambda: kernel(x, out, 5, step=1))[0].count("_run") == 1
    for _ in range(3):
        kernel(x, out, 5, step=1)
    assert "_missed" not in called(lambda: kernel(x, out, 5, step=1))[0]


# ---- the ways of passing --------------------------------------------------------------------------------------


def test_every_way_of_passing_is_the_same_launch(launching: Launches) -> None:
    kernel = scaled()
    launching.expect(kernel, x, out, 5)
    ways: list[Callable[[], object]] = [
        lambda: kernel(x, out, 5),
        lambda: kernel(x, out, 5, None),
        lambda: kernel(x, out, n=5),
        lambda: kernel(n=5, Out=out, X=x),
        lambda: kernel(x, out, 5, step=1),
        lambda: kernel(x, out, more=None, n=5, step=1),
    ]
    lines = {line for way in ways for _ in range(4) for line in launching.of(way)[0]}
    assert len(lines) == 1
    assert all(launching.of(way)[1] == 0 for way in ways)


WRONG: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((x,), {}, "scaled(X, Out, n, more, *, step): expected arguments for Out, n"),
    ((x,), {"n": 5}, "scaled(X, Out, n, more, *, step): expected arguments for Out"),
    ((x, out, 5), {"X": x}, "scaled(X, Out, n, more, *, step): expected X once but got it by position and by name"),
    ((x, out, 5), {"Y": x}, "scaled(X, Out, n, more, *, step): expected names of its parameters but got 'Y'"),
    ((x, out, 5, None, 1), {}, "scaled(X, Out, n, more, *, step): expected at most 4 positional arguments but got 5"),
    ((x, out, 2**31), {}, "n: 2147483648 does not fit int32 (-2147483648 to 2147483647): annotate n as T.int64"),
    ((x, out, "5"), {}, "n: expected a tensor, a number, a tuple of these or None but got '5'"),
    ((x, out, 5), {"step": [1]}, "step: expected a compile-time constant (hashable, and nothing in it can change)"),
    ((x.to_sparse(), out, 5), {}, "X: expected a dense tensor in memory, but"),
    ((torch._neg_view(x), out, 5), {}, "X: the tensor is a view that negates its memory"),
    (([x], out, 5), {}, "X: expected a tensor, a number, a tuple of these or None but got [tensor("),
]


@pytest.mark.parametrize(("args", "named", "sentence"), WRONG)
def test_a_wrong_call_is_refused_cold_and_warm(
    launching: Launches, args: tuple[Any, ...], named: dict[str, Any], sentence: str
) -> None:
    kernel = scaled()
    for warm in (False, True):
        if warm:
            launching.expect(kernel, x, out, 5)
            for _ in range(3):
                kernel(x, out, 5)
        launching.fake.library.fake_clear()
        for _ in range(2):
            with pytest.raises(ArgumentError) as caught:
                kernel(*args, **named)
            assert str(caught.value).startswith(sentence)
        assert launching.lines == []


def test_parameters_may_have_any_name(launching: Launches) -> None:
    @warpjit
    def odd(absent, launch, p0=1, rest: T.constexpr = 1, *, recent=1, named=1, n6=1):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        absent[0, 0] = launch[0, 0] + p0 + rest + recent + named + n6

    launching.expect(odd, x, out)
    ways: list[Callable[[], object]] = [
        lambda: odd(x, out, 1, 1, recent=1, named=1, n6=1),
        lambda: odd(launch=out, absent=x, p0=1, rest=1, n6=1),
        lambda: odd(x, out),
        lambda: odd(x, p0=1, launch=out, named=1),
    ]
    assert len({line for way in ways for _ in range(4) for line in launching.of(way)[0]}) == 1
    assert all(launching.of(way)[1] == 0 for way in ways)
    assert not {"absent", "launch", "rest"} & set(odd._dispatch.text.split("(")[1].split("=")[0].split())


# ---- what is remembered ---------------------------------------------------------------------------------------


def test_the_table_is_bounded_and_the_newest_stay(launching: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "KNOWN", 8)

    @warpjit
    def rows(X: T.Tensor((M, 8), "int32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=M, block=32))
        X[T.cuda.block_idx("x"), 0] = M

    launching.expect(rows, tensor(4, 8))
    for count in range(1, 30):
        for _ in range(3):
            rows(tensor(count, 8))
    assert len(rows._dispatch.table) <= 8
    assert len(rows._dispatch.recent) == dispatch.RECENT
    assert launching.of(lambda: rows(tensor(29, 8)))[1] == 0
    lines, slow = launching.of(lambda: rows(tensor(3, 8)))
    assert lines[0].startswith("launch 3,1,1") and slow == 1


def test_several_shapes_in_turn_are_all_recent(launching: Launches) -> None:
    kernel = scaled()
    launching.expect(kernel, x, out, 5)
    inputs = [tensor(rows, 8) for rows in (4, 5, 6, 7)]
    for _ in range(3):
        for each in inputs:
            kernel(each, out, 5)
    assert "_missed" not in called(lambda: [kernel(each, out, 5) for each in inputs])[0]


def test_no_tensor_is_kept_alive(launching: Launches) -> None:
    kernel, mine = scaled(), tensor(4, 8)
    launching.expect(kernel, x, out, 5)
    for _ in range(4):
        kernel(mine, out, 5)
    seen = weakref.ref(mine)
    del mine
    assert seen() is None


# ---- modes and threads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mode",
    [torch.no_grad, torch.inference_mode, torch.enable_grad, lambda: torch.autocast("cpu")],
    ids=["no_grad", "inference", "grad", "autocast"],
)
def test_modes_of_torch_change_nothing(launching: Launches, mode: Callable[[], Any]) -> None:
    kernel, weights = scaled(), torch.nn.Parameter(tensor(4, 8).float())
    launching.expect(kernel, weights, out, 5)
    for _ in range(3):
        kernel(weights, out, 5)
    outside, _ = launching.of(lambda: kernel(weights, out, 5))
    for _ in range(3):
        with mode():
            assert launching.of(lambda: kernel(weights, out, 5)) == (outside, 0)
        assert launching.of(lambda: kernel(weights, out, 5)) == (outside, 0)


def test_one_tensor_in_two_places(launching: Launches) -> None:
    kernel = scaled()
    launching.expect(kernel, x, out, 5)
    for first, second in [(x, out), (x, x), (out, x), (out, out)] * 3:
        kernel(first, second, 5)
    both, slow = launching.of(lambda: kernel(x, x, 5))
    assert slow == 0 and both[0].split()[-3] == both[0].split()[-2]
    assert "_missed" not in called(lambda: kernel(x, x, 5))[0]


def test_without_tensors_a_launch_follows_the_current_device(
    launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = [0]
    monkeypatch.setattr(arguments, "current_device", lambda: current[0])
    monkeypatch.setattr(arguments, "place_of", lambda specialization, runtime: Place("cuda", current[0]))

    @warpjit
    def idle(n):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

    launches.expect(idle, 1)
    for device in (0, 1, 0):
        current[0] = device
        for _ in range(3):  # by the slow path, by the table, by a guard
            (line,) = launches.of(lambda: idle(1))[0]
            assert f"stream {0x70 + device:#x}" in line
        assert launches.of(lambda: idle(1))[1] == 0


def test_threads_do_not_mix_their_arguments(launching: Launches) -> None:
    kernel, count = scaled(), 6
    inputs = [tensor(4, 8) for _ in range(count)]
    launching.expect(kernel, x, out, 5)
    kernel(x, out, 5)
    assert launching.lines

    def work(number: int) -> None:
        for _ in range(40):
            kernel(inputs[number], out, number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = launching.lines
    assert len(lines) == 40 * count
    for number, each in enumerate(inputs):
        own = each.data_ptr().to_bytes(8, "little").hex()
        mine = [line for line in lines if f": {own} " in line]
        assert len(mine) == 40 and all(f" {number.to_bytes(4, 'little').hex()}" in line for line in mine)
