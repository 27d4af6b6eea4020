"""The call: what a first one makes, what a second one finds, and what is noticed between two."""

from __future__ import annotations

import threading
import types
from typing import Any

import numpy as np
import pytest
import torch
from call_kernels import M, double, fill, nothing_new, rows, transfer
from warp_matmul import warp_matmul

import warpjit as package
from warpjit import ArgumentError, T, stages, warpjit


def test_a_second_call_does_no_work_twice(monkeypatch):
    a, b = torch.ones((16, 16), dtype=torch.float16), torch.ones((8, 16), dtype=torch.float16)
    first, second = torch.empty((16, 8)), torch.empty((16, 8))
    warp_matmul(a, b, first)
    with nothing_new(monkeypatch):
        warp_matmul(a, b, second)
    assert torch.equal(second, torch.full((16, 8), 16.0))


def test_what_is_forbidden_would_be_seen(monkeypatch):
    @warpjit
    def once(Out: T.Tensor((32,), "int32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = 1

    with nothing_new(monkeypatch), pytest.raises(AssertionError, match=r"may not use warpjit\.stages\.trace"):
        once(torch.empty(32, dtype=torch.int32))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of kernels as they are traced from now on."""
    traced: list[str] = []
    real = stages.trace

    def trace(source: Any, *args: Any) -> Any:
        traced.append(source.name)
        return real(source, *args)

    monkeypatch.setattr(stages, "trace", trace)
    return traced


def test_two_threads_in_the_same_first_call_trace_once(monkeypatch):
    traced = counted(monkeypatch)

    @warpjit
    def both(Out: T.Tensor((32,), "int32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = T.cuda.lane_id()

    outputs = [torch.zeros(32, dtype=torch.int32) for _ in range(4)]
    gate = threading.Barrier(4)

    def work(out: torch.Tensor) -> None:
        gate.wait()
        both(out)

    threads = [threading.Thread(target=work, args=(out,)) for out in outputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert traced == ["both"]
    assert all(torch.equal(out, torch.arange(32, dtype=torch.int32)) for out in outputs)


# ---- what stands outside --------------------------------------------------------------------------------------

ADDEND = 3


class Numbers:
    addend = 3


class Holder:
    def __init__(self) -> None:
        self.addend = 3


HOLDER = Holder()
module = types.ModuleType("a_module_of_the_test")
module.addend = 3


def helper(x):
    return x + T.int32(3)


def from_outside():
    return ADDEND


def through_another():
    return from_outside()


@warpjit
def of_global(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = T.cuda.lane_id() + ADDEND


@warpjit
def of_class(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = T.cuda.lane_id() + Numbers.addend


@warpjit
def of_object(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = T.cuda.lane_id() + HOLDER.addend


@warpjit
def of_module(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = T.cuda.lane_id() + module.addend


@warpjit
def of_helper(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = helper(T.cuda.lane_id())


@warpjit
def of_python(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = T.cuda.lane_id() + through_another()


def five(x):
    return x + T.int32(5)


CHANGES = [
    (of_global, "ADDEND", None),
    (of_class, "addend", Numbers),
    (of_object, "addend", HOLDER),
    (of_module, "addend", module),
    (of_python, "ADDEND", None),
]


def result(kernel: Any) -> int:
    out = torch.zeros(32, dtype=torch.int32)
    kernel(out)
    assert torch.equal(out - out[0], torch.arange(32, dtype=torch.int32))
    return int(out[0])


@pytest.mark.parametrize(("kernel", "name", "owner"), CHANGES, ids=[case[0].__name__ for case in CHANGES])
def test_a_changed_capture_is_noticed(monkeypatch, kernel, name, owner):
    traced = counted(monkeypatch)
    target = globals() if owner is None else owner
    change = monkeypatch.setitem if owner is None else monkeypatch.setattr
    assert result(kernel) == 3
    del traced[:]
    assert result(kernel) == 3
    assert traced == []
    change(target, name, 5)
    assert result(kernel) == 5
    assert traced == [kernel.__name__]
    change(target, name, 3)
    assert result(kernel) == 3
    assert traced == [kernel.__name__]  # the first program is still there


def test_another_helper_is_noticed(monkeypatch):
    assert result(of_helper) == 3
    monkeypatch.setitem(globals(), "helper", five)
    assert result(of_helper) == 5


def test_a_helpers_new_body_is_noticed(monkeypatch):
    assert result(of_helper) == 3
    monkeypatch.setattr(helper, "__code__", five.__code__)
    assert result(of_helper) == 5


def test_a_changed_closure_is_noticed():
    addend = 3

    @warpjit
    def of_closure(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = T.cuda.lane_id() + addend

    assert result(of_closure) == 3
    addend = 5
    assert result(of_closure) == 5


def test_a_name_that_hides_a_builtin_later_is_noticed(monkeypatch):
    @warpjit
    def of_builtin(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = T.cuda.lane_id() + abs(-3)

    assert result(of_builtin) == 3
    monkeypatch.setitem(globals(), "abs", lambda x: 5)
    assert result(of_builtin) == 5


@pytest.mark.parametrize(("value", "text"), [(1, "1"), (True, "True"), (1.0, "1.0")])
def test_captured_numbers_keep_their_types(monkeypatch, value, text):
    @warpjit
    def of_type(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = T.float32(len(str(ADDEND)))

    out = torch.zeros(32)
    monkeypatch.setitem(globals(), "ADDEND", value)
    of_type(out)
    assert out[0] == len(text)


LISTED = [1, 2]
TENSOR = torch.zeros(3)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("LISTED", "LISTED is a captured list: it may change unnoticed. Use a tuple, or pass it as a constant"),
        ("TENSOR", "TENSOR is a captured tensor: pass it as an argument of the kernel"),
    ],
)
def test_what_could_change_unnoticed_is_refused(monkeypatch, name, sentence):
    @warpjit
    def of_mutable(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = LISTED[0]

    @warpjit
    def of_tensor(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = TENSOR[0]

    chosen = of_mutable if name == "LISTED" else of_tensor
    with pytest.raises(package.TraceError) as caught:
        chosen(torch.zeros(32, dtype=torch.int32))
    (finding,) = caught.value.findings
    assert finding.message == sentence
    assert finding.loc.line == chosen.function.__code__.co_firstlineno + 3


# ---- what a kernel may be -------------------------------------------------------------------------------------


class Group:
    """Kernels in a class: they take no self."""

    @staticmethod
    @warpjit
    def outside(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = T.cuda.lane_id() + 3

    @warpjit
    @staticmethod
    def inside(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = T.cuda.lane_id() + 3

    @warpjit(contract=False)
    def plain(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = T.cuda.lane_id() + 3


@pytest.mark.parametrize("name", ["outside", "inside", "plain"])
def test_kernels_in_classes(name):
    assert result(getattr(Group, name)) == 3
    if name != "plain":  # of an object it is a method: see test_methods
        assert result(getattr(Group(), name)) == 3


def test_a_kernel_is_called_what_the_function_is():
    assert fill.__name__ == "fill"
    assert rows.__doc__ == "A warp for each row."
    assert repr(double) == "<warpjit kernel double>"


@pytest.mark.parametrize("spelling", [package.warpjit, package.jit, package.warpjit(strict=True)])
def test_the_decorators_spellings(spelling):
    @spelling
    def spelled(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = T.cuda.lane_id() + 3

    assert result(spelled) == 3


# ---- where it runs --------------------------------------------------------------------------------------------


def test_a_grid_of_nothing_does_nothing(device, run):
    x, out = (torch.empty((0, 8), dtype=torch.int32, device=device) for _ in range(2))
    run(rows, x, out)
    assert out.shape == (0, 8)


def test_a_grid_beyond_the_hardware_is_refused():
    @warpjit
    def tall(X, n: T.int32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=(1, n, 1), block=32))
        X[T.cuda.lane_id()] = 1

    x = torch.zeros(32, dtype=torch.int32)
    for count in (65536, -1):
        with pytest.raises(ArgumentError) as caught:
            tall(x, count)
        assert str(caught.value) == (
            f"tall: expected a grid of at most (2147483647, 65535, 65535) CTAs, none negative, but got (1, {count}, 1)"
        )
    assert not x.any()


def test_a_host_expression_that_overflows_is_refused():
    @warpjit
    def squared(X, n: T.int32):
        area = n * n
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        X[T.cuda.lane_id()] = T.int64(area)

    x = torch.zeros(32, dtype=torch.int64)
    squared(x, 1 << 20)
    assert x[0] == 1 << 40
    squared(x, -7)
    assert x[0] == 49


def test_cpu_tensors_can_be_forbidden(monkeypatch):
    x, out = torch.ones((2, 8), dtype=torch.int32), torch.zeros((2, 8), dtype=torch.int32)
    monkeypatch.setenv("WARPJIT_CPU", "error")
    with pytest.raises(ArgumentError, match="the tensors are on the CPU, and WARPJIT_CPU=error forbids to simulate"):
        rows(x, out)
    assert not out.any()
    monkeypatch.setenv("WARPJIT_CPU", "maybe")
    with pytest.raises(ArgumentError, match='WARPJIT_CPU: expected "simulate" or "error" but got \'maybe\''):
        rows(x, out)
    rows.simulate(x, out)  # asked for by name
    assert torch.equal(out, x + 1)


def test_simulate_gives_a_report():
    x, out = torch.ones((3, 8), dtype=torch.int32), torch.zeros((3, 8), dtype=torch.int32)
    report = rows.simulate(x, out, seed=5)
    assert (report.ctas, report.warps) == (3, 3)
    assert report.steps > 0
    assert torch.equal(out, x + 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.t(),
        lambda x: x[:, 2:7],
        lambda x: x[1:],
        lambda x: x[::2, ::3],
        lambda x: x[:1].expand(5, -1),
        lambda x: x[:, :1].expand(-1, 6),
        lambda x: x[:0],
        lambda x: x[:, :0],
        lambda x: x[3:4, 4:5],
        lambda x: torch.nn.Parameter(x),
    ],
    ids=["transposed", "columns", "offset", "steps", "rows", "expanded", "no-rows", "no-columns", "one", "parameter"],
)
def test_strided_tensors(device, run, make):
    x = make(torch.randn((9, 12), device=device))
    out = torch.full(x.shape, float("nan"), device=device)
    run(transfer, x, out)
    assert torch.equal(out, x)
    assert type(x) is not torch.nn.Parameter or (x.requires_grad and x.grad is None)


def test_a_strided_output_leaves_what_lies_between_alone(device, run):
    base = torch.full((6, 20), -1.0, device=device)
    x = torch.randn((6, 9), device=device)
    run(transfer, x, base[:, 1:19:2])
    assert torch.equal(base[:, 1:19:2], x)
    assert (base[:, 0:20:2] == -1).all() and (base[:, 19] == -1).all()


def test_in_place_is_legal(device, run):
    x = torch.arange(32, dtype=torch.float32, device=device)
    run(double, x, x)
    assert torch.equal(x, torch.arange(32, dtype=torch.float32, device=device) * 2)


# ---- beyond 32 bits -------------------------------------------------------------------------------------------


@warpjit
def last_rows(X, Out, row: T.int32):
    """The last 32 bytes of the last row three times: by index, through a slice, through a view."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    columns = X.shape[1]
    Out[0, lane] = X[row, columns - 32 + lane]
    Out[1, lane] = X[row - 1 : row + 1, columns - 32 :][1, lane]
    Out[2, lane] = X.permute(1, 0)[columns - 32 + lane, row]


@warpjit
def last_rows_runtime(X: T.Tensor((M, T.dynamic("N")), "int8"), Out, row: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    columns = X.shape[1]
    Out[0, lane] = X[row, columns - 32 + lane]
    Out[1, lane] = X[row - 1 : row + 1, columns - 32 : columns][1, lane]
    Out[2, lane] = X.permute(1, 0)[columns - 32 + lane, row]


@pytest.mark.parametrize("chosen", [last_rows, last_rows_runtime])
def test_offsets_beyond_32_bits(device, run, chosen):
    # numpy's zeros on the CPU: pages that nobody touches take no memory, and torch writes to all of its own.
    shape = (5, 1 << 29)
    on_cpu = device == "cpu"
    x = torch.from_numpy(np.zeros(shape, np.int8)) if on_cpu else torch.zeros(shape, dtype=torch.int8, device=device)
    x[4, -32:] = torch.arange(1, 33, dtype=torch.int8)
    out = torch.zeros((3, 32), dtype=torch.int8, device=device)
    run(chosen, x, out, 4)
    assert torch.equal(out.cpu(), torch.arange(1, 33, dtype=torch.int8).expand(3, 32))
