"""Mistakes that programs of kinds nobody had thought of once brought to light, in loops and in sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import warpjit
from warpjit import T

ONE = T.cuda.LaunchConfig(grid=1, block=1)


@warpjit.warpjit
def wide_ranges(Out: T.Tensor((4,), "int64"), a: T.uint64, b: T.uint64, c: T.int64, d: T.int64):
    T.device_entry(launch=ONE)
    total = T.int64(0)
    for i in range(a, b, 7):
        total = total * 3 + T.int64(i)
    Out[0] = total
    total = T.int64(0)
    for i in range(b, a, -7):
        total = total * 3 + T.int64(i)
    Out[1] = total
    total = T.int64(0)
    for j in range(c, d, 2**62):
        total = total * 3 + j
    Out[2] = total
    total = T.int64(0)
    for j in range(d, c, -(2**62)):
        total = total * 3 + j
    Out[3] = total


def _sum(values: range) -> int:
    total = 0
    for value in values:
        total = _wrapped(total * 3 + value)
    return total


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize(
    ("a", "b", "c", "d"),
    [
        (2**64 - 5, 5, -(2**63), 2**63 - 1),
        (2**63 - 10, 2**63 + 10, 5, 5),
        (3, 25, 2**63 - 1, -(2**63)),
        (2**64 - 20, 2**64 - 1, -3, 2**62),
    ],
)
def test_ranges_of_64_bits_run_as_python_s(
    run: Callable[..., None], device: str, a: int, b: int, c: int, d: int
) -> None:
    out = torch.zeros(4, dtype=torch.int64, device=device)
    run(wide_ranges, out, a, b, c, d)
    ranges = [range(a, b, 7), range(b, a, -7), range(c, d, 2**62), range(d, c, -(2**62))]
    assert out.tolist() == [_sum(values) for values in ranges]


@warpjit.warpjit
def start_of_range(Out: T.Tensor((4,), "int32"), n, *, start):
    T.device_entry(launch=ONE)
    for i in range(start, n):
        Out[i] = i


@warpjit.warpjit
def batch_of_fragments(Out: T.Tensor((4,), "int32"), *, batch):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    T.cuda.fragments(T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"], "D", batch=batch)


@warpjit.warpjit
def fragments_of(Out: T.Tensor((4,), "int32"), *, instruction):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    T.cuda.fragments(instruction, "D")


@warpjit.warpjit
def axis_of_thread(Out: T.Tensor((4,), "int32"), n):
    T.device_entry(launch=ONE)
    Out[0] = T.cuda.thread_idx(n)


@warpjit.warpjit
def negated_tensor(Out: T.Tensor((4,), "int32")):
    T.device_entry(launch=ONE)
    Out[0] = -Out


@warpjit.warpjit
def store_of(Out: T.Tensor((4,), "int32"), *, dtype):
    T.device_entry(launch=ONE)
    shared = T.alloc_shared((8,), dtype)
    shared[0] = 1


@warpjit.warpjit
def load_of(Out: T.Tensor((4,), "int32"), *, dtype):
    T.device_entry(launch=ONE)
    shared = T.alloc_shared((8,), dtype)
    Out[0] = shared[0]


@warpjit.warpjit
def comparison_of(Out: T.Tensor((4,), "int32"), *, dtype):
    T.device_entry(launch=ONE)
    shared = T.alloc_shared((8,), dtype)
    Out[0] = shared[0] < shared[1]


REFUSED: list[tuple[Any, tuple[Any, ...], dict[str, Any], int, str]] = [
    (start_of_range, (3,), {"start": 2.5}, 3, "an argument of range: expected an int but got float 2.5"),
    (start_of_range, (3,), {"start": None}, 3, "an argument of range: expected an int but got None"),
    (start_of_range, (3,), {"start": "a"}, 3, "an argument of range: expected an int but got str 'a'"),
    (batch_of_fragments, (), {"batch": 3}, 3, "T.cuda.fragments: expected batch to be a tuple but got int 3"),
    (
        fragments_of,
        (),
        {"instruction": 3},
        3,
        'T.cuda.fragments: expected an instruction, T.ptx["..."], but got int 3',
    ),
    (axis_of_thread, (3,), {}, 3, 'axis: expected "x", "y" or "z" but got a scalar of type int32'),
    (
        store_of,
        (),
        {"dtype": "int4"},
        4,
        "expected whole bytes to be stored but shared holds int4: T.store a local tensor, or view the tensor as uint8",
    ),
    (comparison_of, (), {"dtype": "float8_e5m2"}, 4, "lt is not defined for float8_e5m2"),
    (negated_tensor, (), {}, 3, "neg: expected a number but got the tensor Out: read an element with an index"),
]


@pytest.mark.parametrize(("kernel", "args", "constants", "line", "sentence"), REFUSED)
def test_what_has_no_meaning_is_refused_in_a_sentence(
    kernel: Any, args: tuple[Any, ...], constants: dict[str, Any], line: int, sentence: str
) -> None:
    with pytest.raises(warpjit.TraceError) as caught:
        kernel(torch.zeros(4, dtype=torch.int32), *args, **constants)
    (finding,) = caught.value.findings
    assert finding.message == sentence
    assert finding.loc.line == kernel.function.__code__.co_firstlineno + line


@warpjit.warpjit
def numbered_names(Out: T.Tensor((5, 32), "int32")):
    """Names that look like those that the tracer makes of names that are bound again."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    x = T.alloc_local((1,), "int32")
    x[0] = 1
    x = T.alloc_local((1,), "int32")
    x[0] = 2
    x_1 = T.alloc_local((1,), "int32")
    x_1[0] = 3
    x_1_1 = T.alloc_local((1,), "int32")
    x_1_1[0] = 4
    y = lane
    for i in range(lane % 3):
        y = y + i
    y_1 = 10 * lane
    for i in range(lane % 3):
        y_1 = y_1 + i
    for row, value in enumerate((x[0], x_1[0], x_1_1[0], y, y_1)):
        Out[row, lane] = value


def test_names_with_numbers_stay_apart(run: Callable[..., None], device: str) -> None:
    out = torch.zeros(5, 32, dtype=torch.int32, device=device)
    run(numbered_names, out)
    lane = torch.arange(32)
    more = (lane % 3 == 2).int()
    rows = [torch.full((32,), 2), torch.full((32,), 3), torch.full((32,), 4), lane + more, 10 * lane + more]
    assert torch.equal(out.cpu(), torch.stack(rows).int())
