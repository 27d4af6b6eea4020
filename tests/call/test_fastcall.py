"""The written launch against the plain one: the same parameters, grid and stream, or the slow path and its sentence."""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Launches
from driver_stand_in import in_thread

from warpjit import ArgumentError, Kernel, LaunchError, T, warpjit

M, N = T.dynamic("M"), T.dynamic("N", multiple_of=4)
BLOCK = 32


class Count(enum.IntEnum):
    FIVE = 5


Pair = collections.namedtuple("Pair", "first second")


@dataclass(frozen=True)
class Factor:
    by: float


def i32(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.int32)


# ---- kernels --------------------------------------------------------------------------------------------------


@warpjit
def by_numbers(
    X: T.Tensor((M, 8), "int32"), m: T.int32, n: T.int32, s: T.float32, wide: T.int64 = 3, on: T.bool = True
):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=(T.cdiv(m, 4), max(n, 1), M), block=BLOCK))
    if on:
        X[0, 0] = T.int32(s) + T.int32(wide) + n


@warpjit
def strided(X: T.Tensor((M, N), "float16"), Out: T.Tensor((M, N), "float16")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=(M, T.cdiv(N, 32)), block=BLOCK))
    row, column = T.cuda.block_idx("x"), T.cuda.block_idx("y") * 32 + T.cuda.lane_id()
    if column < N:
        Out[row, column] = X[row, column]


@warpjit
def halves(X, a: T.float16, b: T.bfloat16, c: T.float64, d: T.uint8, e: T.int16):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
    X[0, 0] = T.int32(a) + T.int32(b) + T.int32(c) + T.int32(d) + T.int32(e)


@warpjit
def of_parts(X, parts, pair=(2, 3), *, factor=Factor(1.0)):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
    value = T.float32(pair[0] + pair[1]) * factor.by
    for tensor, (scale, _) in T.unroll(parts):
        value += T.float32(tensor[0, 0]) * scale
    X[0, 0] = T.int32(value)


@warpjit
def chosen(X: T.Tensor((M, 8), "int32"), m: T.int32, n: T.int32):
    blocks = m // n if n != 0 else M
    T.device_entry(launch=T.cuda.LaunchConfig(grid=blocks if m > 0 and not n > 100 else 1, block=BLOCK))
    X[0, 0] = blocks


@warpjit
def clustered(X: T.Tensor((M, 8), "int32"), n: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=(n, M), block=BLOCK, cluster=(4, 4)))
    X[0, 0] = n


x = i32(4, 8)
half = torch.zeros((4, 64), dtype=torch.float16)
base = torch.zeros(4096, dtype=torch.float16)
CASES: list[tuple[Kernel, list[tuple[Any, ...]]]] = [
    (by_numbers, [(x, 9, 2, 1.5), (x, 1, -7, -0.0), (i32(2, 8), 2**31 - 4, 65535, float("inf"))]),
    (by_numbers, [(x, 9, 2, 3, 2**63 - 1, False), (x, True, 0, float("nan"), -(2**63), True)]),
    (by_numbers, [(x, np.int32(9), np.int8(2), np.float64(0.1), np.int64(4), np.bool_(False))]),
    (by_numbers, [(x, Count.FIVE, 2, 10**30), (x, 0, 2, 1.0), (x, -3, 2, 1.0), (i32(0, 8), 4, 2, 1.0)]),
    (strided, [(half, half), (half[:, :32], half[:, 32:]), (half[::2, ::4], half[1::2, ::4])]),
    (strided, [(half.t(), half.t()), (half[:1].expand(9, -1), base[8:584].view(9, 64))]),
    (strided, [(base[1:257].view(4, 64), base[257:513].view(4, 64)), (base[8:264].view(4, 64), half)]),
    (strided, [(base.as_strided((1, 4), (777, 1)), base.as_strided((1, 4), (4, 1)))]),
    (strided, [(base.as_strided((4, 4), (1, 999)), base.as_strided((4, 4), (0, 0))), (half[:0], half[:0])]),
    (strided, [(half[:, :0], half[:, 64:]), (half[2:, :4], half[:2, 60:])]),
    (halves, [(x, 0.1, 0.1, 0.1, 255, -1), (x, -65504.0, 1e38, 1e300, 0, 32767), (x, 1, 2, 3, 4, 5)]),
    (halves, [(x, 0.0, -0.0, 0.0, 1, 1), (x, -0.0, 0.0, 0.0, 1, 1), (x, 1e-8, 1 + 2**-8 + 2**-40, 1.0, 1, 1)]),
    (halves, [(x, float("-inf"), float("nan"), float("inf"), True, np.int8(-4)), (x, np.float32(0.3), 5, 1, 1, 1)]),
    (of_parts, [(x, ()), (x, ((half, (2.0, None)),)), (x, ((x, (0.5, None)), (half, (-1.0, None))))]),
    (of_parts, [(x, ((half, (2, None)),), (7, 8)), (x, (), Pair(5, 6)), (x, (Pair(half, (np.float32(2), None)),))]),
    (chosen, [(x, 9, 2), (x, 9, 0), (x, 0, 2), (x, 9, 101), (x, 1, 5)]),
    (clustered, [(x, 8), (x, 0), (i32(8, 8), 4)]),
]


@pytest.mark.parametrize(("kernel", "calls"), CASES, ids=[f"{each[0].__name__}-{i}" for i, each in enumerate(CASES)])
def test_warm_launches_are_the_slow_paths(launches: Launches, kernel: Kernel, calls: list[tuple[Any, ...]]) -> None:
    fresh = warpjit(kernel.function)
    for args in calls:
        launches.expect(fresh, *args)
        plain, _ = launches.of(lambda args=args: fresh._run(args, {}))
        for _ in range(4):
            assert launches.of(lambda args=args: fresh(*args))[0] == plain
        assert launches.of(lambda args=args: fresh(*args)) == (plain, 0)
    assert len(fresh._dispatch.table) <= len(calls)


# ---- what a warm call refuses ---------------------------------------------------------------------------------

LIMIT = 2**31
REFUSED: list[tuple[Kernel, tuple[Any, ...], tuple[Any, ...], str]] = [
    (by_numbers, (x, 9, 2, 1.5), (x, LIMIT, 2, 1.5), "m: 2147483648 does not fit int32"),
    (by_numbers, (x, 9, 2, 1.5), (x, 9, -LIMIT - 1, 1.5), "n: -2147483649 does not fit int32"),
    (by_numbers, (x, 9, 2, 1.5), (x, 9, 2, 3.5e38), "s: 3.5e+38 is too large for float32"),
    (by_numbers, (x, 9, 2, 1.5), (x, 9, 2, 10**39), "s: 1000000000000000000000000000000000000000 is too large"),
    (by_numbers, (x, 9, 2, 1.5, 3), (x, 9, 2, 1.5, 2**63), "wide: 9223372036854775808 does not fit int64"),
    (
        by_numbers,
        (x, 9, 2, 1.5),
        (x, 9, 65536, 1.5),
        "by_numbers: expected a grid of at most (2147483647, ",
    ),
    (by_numbers, (x, 9, 2, 1.5), (x, -9, 2, 1.5), "by_numbers: expected a grid of at most (2147483647, "),
    (halves, (x, 1.0, 1.0, 1.0, 1, 1), (x, 65520.0, 1.0, 1.0, 1, 1), "a: 65520.0 is too large for float16"),
    (halves, (x, 1.0, 1.0, 1.0, 1, 1), (x, 1.0, 3.4e38, 1.0, 1, 1), "b: 3.4e+38 is too large for bfloat16"),
    (halves, (x, 1.0, 1.0, 1.0, 1, 1), (x, 1.0, 1.0, 1.0, -1, 1), "d: -1 does not fit uint8 (0 to 255)"),
    (halves, (x, 1.0, 1.0, 1.0, 1, 1), (x, 1.0, 1.0, 1.0, 1, 32768), "e: 32768 does not fit int16"),
    (chosen, (x, 9, 2), (x, -9, -LIMIT - 1), "n: -2147483649 does not fit int32"),
    (of_parts, (x, (), (2, 3)), (x, (), (2, LIMIT)), "pair[1]: 2147483648 does not fit int32"),
    (clustered, (x, 8), (x, 6), "clustered: expected a grid that is a multiple of the cluster, (4, 4, 1), "),
]


@pytest.mark.parametrize(("kernel", "good", "bad", "sentence"), REFUSED)
def test_a_number_that_does_not_fit_is_refused_as_ever(
    launches: Launches, kernel: Kernel, good: tuple[Any, ...], bad: tuple[Any, ...], sentence: str
) -> None:
    fresh = warpjit(kernel.function)
    launches.expect(fresh, *good)
    for _ in range(4):
        fresh(*good)
    bound = fresh.bind(*good)
    assert len(launches.lines) == 4
    for call in (fresh, fresh, bound):
        with pytest.raises(ArgumentError) as caught:
            call(*bad)
        assert str(caught.value).startswith(sentence)
    assert launches.lines == []
    assert launches.of(lambda: fresh(*good))[1] == 0


def test_a_cluster_of_more_than_eight_is_opted_in(launches: Launches) -> None:
    @warpjit
    def wide(X):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=(16, 2), block=BLOCK, cluster=(8, 2)))
        X[0, 0] = 1

    launches.expect(wide, x)
    for _ in range(4):
        wide(x)
    log = launches.fake.log
    assert log.count("set 14 to 1") == 1
    assert len([line for line in log if line.startswith("launch 16,2,1")]) == 4


def test_an_unused_number_is_checked_as_well(launches: Launches) -> None:
    @warpjit
    def unused(X, n: T.int32, s: T.float32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))

    launches.expect(unused, x, 1, 1.0)
    for _ in range(4):
        unused(x, 1, 1.0)
    for bad in ((LIMIT, 1.0), (1, 1e39)):
        with pytest.raises(ArgumentError, match=r"does not fit int32|is too large for float32"):
            unused(x, *bad)
    assert launches.of(lambda: unused(x, -LIMIT, float("-inf")))[1] == 0


def test_a_division_by_zero_is_refused_as_ever(launches: Launches) -> None:
    @warpjit
    def divided(X: T.Tensor((M, 8), "int32"), n: T.int32):
        blocks = 64 // n + 64 // M
        T.device_entry(launch=T.cuda.LaunchConfig(grid=blocks, block=BLOCK))
        X[0, 0] = 1

    launches.expect(divided, x, 5)
    for _ in range(4):
        divided(x, 5)
    assert len(launches.lines) == 4
    for bad in ((x, 0), (x, 0), (x[:0], 5)):
        with pytest.raises(ArgumentError, match="expression of this launch divides by zero"):
            divided(*bad)
    assert launches.lines == []
    assert launches.of(lambda: divided(x, 8))[1] == 0


def test_an_arm_that_was_not_taken_may_divide_by_zero(launches: Launches) -> None:
    @warpjit
    def guarded(X: T.Tensor((M, 8), "int32"), n: T.int32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=64 // M if n > 0 else 1, block=BLOCK))
        X[0, 0] = 1

    launches.expect(guarded, x[:0], -1)
    for _ in range(4):
        assert launches.of(lambda: guarded(x[:0], -1))[0][0].startswith("launch 1,1,1")
    with pytest.raises(ArgumentError, match="expression of this launch divides by zero"):
        guarded(x[:0], 1)
    assert launches.of(lambda: guarded(x, 1))[0][0].startswith("launch 16,1,1")


# ---- addresses ------------------------------------------------------------------------------------------------


def test_alignment_and_memory_are_looked_at_each_time(launches: Launches) -> None:
    @warpjit
    def promised(X: T.Tensor((16,), "float32", align=64), Y):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
        X[0] = Y[0]

    storage = torch.zeros(256)
    start = -storage.data_ptr() // 4 % 16
    good, other = storage[start : start + 16], storage[start + 16 : start + 32]
    launches.expect(promised, good, other)
    for _ in range(4):
        promised(good, other)
    assert launches.of(lambda: promised(other, good))[1] == 0
    with pytest.raises(ArgumentError, match=r"^X: expected an address that is a multiple of 64 bytes but got"):
        promised(storage[start + 4 : start + 20], other)
    assert launches.of(lambda: promised(good, storage[start + 4 : start + 20]))[1] == 0  # still 16 bytes
    assert launches.of(lambda: promised(good, storage[start + 5 : start + 21]))[1] == 1  # another program
    assert launches.of(lambda: promised(good, storage[start + 5 : start + 21]))[1] == 0


def test_memory_that_was_freed_is_noticed(launches: Launches) -> None:
    mine, out = i32(4, 8), i32(4, 8)

    @warpjit
    def first(X, Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
        Out[0, 0] = X[0, 0]

    launches.expect(first, mine, out)
    for _ in range(4):
        first(mine, out)
    bound = first.bind(mine, out)
    assert launches.lines
    mine.untyped_storage().resize_(0)
    for call in (lambda: first(mine, out), lambda: bound(mine, out), bound):
        with pytest.raises(ArgumentError, match=r"^X: expected a tensor in memory but got a Tensor without any"):
            call()
    assert launches.lines == []
    mine.untyped_storage().resize_(128)
    assert launches.of(bound)[1] == 0


# ---- the driver -----------------------------------------------------------------------------------------------


def warm(launches: Launches) -> Callable[[], object]:
    fresh = warpjit(strided.function)
    launches.expect(fresh, half, half)
    for _ in range(3):
        fresh(half, half)
    assert launches.lines
    return lambda: fresh(half, half)


def test_a_refusal_of_the_driver_is_raised_and_forgotten(launches: Launches) -> None:
    call = warm(launches)
    launches.fake.fail("cuLaunchKernelEx", 700)
    with pytest.raises(LaunchError, match="a kernel that ran before did this"):
        call()
    assert len(launches.of(call)[0]) == 1


def test_a_thread_without_a_context_launches_in_the_right_one(launches: Launches) -> None:
    call = warm(launches)
    assert in_thread(call) is None
    log = launches.fake.log
    assert [line.split()[0] for line in log] == ["refused", "push", "launch", "pop"]


def test_a_launch_reads_the_stream_each_time(launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = iter(range(100, 110))
    monkeypatch.setattr("warpjit.arguments.stream_reader", lambda: lambda device: next(streams))
    call = warm(launches)
    assert [launches.of(call)[0][0].split("stream ")[1].split(":")[0] for _ in range(3)] == ["0x67", "0x68", "0x69"]


# ---- the text -------------------------------------------------------------------------------------------------

TEXT = """\
def make(check, fixed, again=None, other=None):
    s0, = fixed
    def launch(p0, p1):
        if not (type(p1) is int and check(p0)):
            return False
        a0 = p0.data_ptr()
        if a0 % 16 or not (a0):
            return False
        try:
            if holder0[name0] is not value0:
                return False
            if holder0[name1] is not value1:
                return False
            if holder0[name2] is not value2:
                return False
            x0 = ((p1 + (3)) // (4))
            if not 0 <= x0 <= 2147483647:
                return False
            try:
                slot = take()
            except IndexError:
                slot = new()
            pack(slot.buffer, 0, a0, s0, p1, x0, s0, (1))
        except misfits:
            return False
        if not (x0 and s0):
            keep(slot)
            return True
        slot.words[6] = stream(0)
        code = enter(slot.configuration, handle, slot.pointers, extra)
        if code:
            recover(slot, code)
        keep(slot)
        return True
    return launch
"""


def test_the_text_can_be_read(launches: Launches) -> None:
    @warpjit
    def short(secret_name: T.Tensor((M, 8), "int32"), another_secret: T.int32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=(T.cdiv(another_secret, 4), M), block=BLOCK))
        secret_name[0, 0] = another_secret

    launches.expect(short, x, 5)
    short(x, 5)
    (known,) = short._dispatch.table.values()
    assert known.template.text == TEXT
