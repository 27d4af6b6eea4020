"""`return` in helpers: in loops of the device and expanded ones, of structures, and what types must meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from language_cases import findings, ints, label

import warpjit
from warpjit import T

FEW = torch.empty(64, dtype=torch.int32)


class Found(NamedTuple):
    """What a helper returns, by name."""

    index: int
    value: int


def search(x, v, unroll):
    for i in range(8):
        if x[i] == v:
            return i
    return -1


def search_expanded(x, v, unroll):
    for i in unroll(4):
        if x[i] == v:
            if v > 2:
                return i * 100 + v
        if i == 3:
            return 77
    return -1


def search_nested(x, v, unroll):
    n = x[9]
    for i in range(n):
        for j in range(4):
            if x[4 * i + j] > v:
                return 10 * i + j
        if i == 2:
            return -2
    v += 1
    if v > 3:
        return 100 + v
    return v


def search_mixed(x, v, unroll):
    for i in range(2):
        for j in unroll(4):
            if x[4 * i + j] == v:
                return 10 * i + j
        v += 100
        if v > 200:
            return v
    return -1


def search_twice_expanded(x, v, unroll):
    total = 0
    for i in unroll(3):
        for j in unroll(3):
            if x[3 * i + j] == v:
                return total
            if j == 1 and i == 0:
                continue
            total += 10 * i + j
        total += 1000
    return total + 1


def cycle(x, v, unroll):
    while True:
        v = v * 3 % 17
        if v < 5:
            return v


def pairs(x, v, unroll):
    first, rest = pair(x, v)
    named = found(x, v)
    return first * 1000 + rest[0] + rest[1] * 10 + named.index * 100000 + named.value


def pair(x, v):
    if v < 4:
        return v, (1, 2)
    for i in range(8):
        if x[i] == v:
            return i, (x[i], 5)
    return -1, (0, 2)


def found(x, v):
    for i in range(8):
        if x[i] > v:
            return Found(i, x[i])
    return Found(7, v)


def nothing(x, v, unroll):
    total = [0]
    procedure(x, v)
    return len(total)


def procedure(x, v):
    for i in range(4):
        if x[i] > v:
            return
        if x[i] == 1:
            return None


HELPERS: list[Callable[..., Any]] = [
    search, search_expanded, search_nested, search_mixed, search_twice_expanded, cycle, pairs, nothing,
]  # fmt: skip


def test_return_where_python_returns(device, run):
    @warpjit.jit
    def kernel(x, out, *, helpers):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        for row, helper in enumerate(helpers):
            out[row, lane] = helper(x, lane, T.unroll)

    x = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], dtype=torch.int32)
    out = ints(device, len(HELPERS), 32)
    run(kernel, x.to(device), out, helpers=tuple(HELPERS))
    values = x.tolist()
    for helper, got in zip(HELPERS, out.tolist(), strict=True):
        assert got == [helper(values, lane, range) for lane in range(32)], helper.__name__


def test_a_return_in_a_helper_ends_the_helper_only(device, run):
    """Lanes that returned early meet the others at the barrier after the call."""

    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        t = T.cuda.thread_idx()
        s = T.alloc_shared((64,), "int32")
        s[t] = search(x, t % 10, T.unroll)
        T.cuda.cta_sync()
        out[t] = s[63 - t]

    x = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6], dtype=torch.int32)
    out = ints(device, 64)
    run(kernel, x.to(device), out)
    assert out.tolist() == [search(x.tolist(), (63 - t) % 10, range) for t in range(64)]


def test_what_returns_must_have_in_common():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()

        def types(v):
            for i in range(n):  #: types
                if v == i:
                    return i  #: whole
                if v > i:
                    return 0.5  #: real
            return 0

        def lengths(v):
            if v > 3:  #: lengths
                return v, 1  #: two
            return v, 1, 2  #: three

        def tensors(v):
            for i in range(n):  #: tensors
                if v == i:
                    return x  #: tensor
            return out

        def widths(v):
            if v > 3:  #: widths
                return T.int64(v), 1  #: wide
            return v, 1  #: narrow

        types(lane)
        lengths(lane)
        tensors(lane)
        widths(lane)

    got = [(label(f.loc), f.message, [label(n.loc) for n in f.notes]) for f in findings(kernel, 3, FEW, FEW)]
    assert got[0] == (
        "real",
        "return value would change its type from int32 to float32: convert one of them",
        ["whole", "real"],
    )
    assert ("lengths", "return value would change from a tuple of 2 to a tuple of 3", ["two", "three"]) in got
    assert (
        "widths",
        "return value[0] would change its type from int64 to int32: convert one of them",
        ["wide", "narrow"],
    ) in got
    assert any(name == "tensor" and "a tensor cannot be: only numbers can" in message for name, message, _ in got)


def test_what_makes_threads_miss_a_barrier_is_named():
    def guarded(v):
        if v > 3:  #: helper
            return
        T.cuda.cta_sync()  #: inside

    @warpjit.jit
    def kernel(n: T.int32, *, which):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        t = T.cuda.thread_idx()
        if which == "helper":
            guarded(t)
        if which == "return":
            for k in range(n):
                if t > k:
                    return  #: early
            T.cuda.cta_sync()  #: barrier
        if which == "break":
            for k in range(n):
                T.cuda.cta_sync()  #: first
                if t > k:
                    break  #: leaves
        if which == "loop":
            for _ in range(t):  #: lengths
                T.cuda.warp_sync()  #: warp
        if which == "branch":
            if n > 3:
                if t == 1:  #: part
                    T.cuda.cta_sync()  #: under

    got = {}
    for which in ("helper", "return", "break", "loop", "branch"):
        (finding,) = findings(kernel, 3, which=which)
        (note,) = finding.notes
        got[which] = (label(finding.loc), label(note.loc), note.message)
        assert "not all of its threads get there" in finding.message
    assert got == {
        "helper": ("inside", "helper", "its threads part here"),
        "return": ("barrier", "early", "some of its threads return here"),
        "break": ("first", "leaves", "some of its threads leave the loop here"),
        "loop": ("warp", "lengths", "its threads run this loop a different number of times"),
        "branch": ("under", "part", "its threads part here"),
    }
