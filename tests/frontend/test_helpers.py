"""Helpers: what is inlined, what Python calls, how arguments bind, and Python's builtins."""

# ruff: noqa: C409, F821 (kernels that are wrong on purpose)

from __future__ import annotations

import math

import pytest
import torch
from language_cases import findings, ints, kinds, label, reported, rows

import warpjit
from warpjit import T

FEW = torch.empty(64, dtype=torch.int32)
CALLS: list[int] = []


def host_only(n):
    """Python calls it: no argument is a kernel value and its names do not reach T."""
    CALLS.append(n)
    return sum(sorted(k * k for k in range(n)))


def scaled(value, factor=2, *more, offset: int = 0, **named):
    result = value * factor + offset
    for item in more:
        result += item
    return result + named.get("extra", 0) if not named else result + named["extra"]


def clipped(value, low, high):
    if value < low:
        return low
    if value > high:
        return high
    return value


def sign(value):
    if value > 0:
        kind = 1
    elif value < 0:
        return -1
    else:
        return 0
    return kind


def power(value, exponent):
    if exponent == 0:
        return 1
    half = power(value, exponent // 2)
    return half * half * value if exponent % 2 else half * half


def lanes():
    return T.cuda.lane_id(), 32


def endless(value):
    return endless(value + 1)  #: endless


class Shape:
    @staticmethod
    def area(rows, columns):
        return rows * columns


def test_helpers_of_a_module_are_inlined(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane, count = lanes()
        v = x[lane]
        out[0, lane] = scaled(v)
        out[1, lane] = scaled(v, 3, offset=1)
        out[2, lane] = scaled(v, 1, v, 10, extra=100)
        out[3, lane] = clipped(v, -5, 5)
        out[4, lane] = sign(v)
        out[5, lane] = power(v, 5)
        out[6, lane] = Shape.area(v, rows_of_nothing(count))
        out[7, lane] = scaled(*(v, 4), **{"offset": 9})

    x = torch.arange(32, dtype=torch.int32, device=device) - 16
    out = ints(device, 8, 32)
    run(kernel, x, out)
    for i, got in enumerate(out.T.tolist()):
        v = i - 16
        assert got == [2 * v, 3 * v + 1, 2 * v + 110, max(-5, min(5, v)), (v > 0) - (v < 0), v**5, 32 * v, 4 * v + 9]


def rows_of_nothing(count):
    return count


def test_a_function_of_static_values_is_just_called():
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        out[0] = host_only(5) + math.gcd(12, 18) + len(sorted((3, 1, 2))) + int("7") + round(2.5)

    CALLS.clear()
    assert rows(kernel, FEW) == ["store.global.s32"]
    assert "= 48;" in kernel.source(FEW) and CALLS == [5]


def test_nested_functions_and_lambdas(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        bias = 10

        def biased(value, times=bias + 1, *, twice=False):
            """What it sees of the kernel's names is what they are when it runs."""
            result = value * times + bias
            if twice:
                result *= 2
            return result

        def store(row, value):
            out[row, lane] = value

        def outer(value):
            def inner(extra):
                return value + extra + bias

            return inner(1) + inner(2)

        bias = 100
        store(0, biased(x[lane]))
        store(1, biased(x[lane], 1, twice=True))
        square = lambda v: v * v  # noqa: E731
        store(2, square(x[lane]) + (lambda: bias)())
        store(3, outer(x[lane]))
        store(4, apply(lambda a, b=5: a - b, x[lane]))
        store(5, apply(lambda row: x[lane] + row, 7))

    x = torch.arange(32, dtype=torch.int32, device=device)
    out = ints(device, 6, 32)
    run(kernel, x, out)
    for v, got in enumerate(out.T.tolist()):
        assert got == [11 * v + 100, (v + 100) * 2, v * v + 100, 2 * v + 203, v - 5, v + 7]


def apply(function, value):
    return function(value)


DOUBLED = lambda value: value * 2  # noqa: E731
TABLE = (lambda value: value + 1, lambda value: value - 1)  # two on one line: told apart by what they do


def test_lambdas_of_a_module(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        out[i] = DOUBLED(TABLE[0](x[i])) + TABLE[1](x[i])

    x = torch.arange(32, dtype=torch.int32, device=device)
    out = ints(device)
    run(kernel, x, out)
    assert out.tolist() == [2 * (v + 1) + v - 1 for v in range(32)]


def test_early_returns_run_what_python_would(device, run):
    @warpjit.jit
    def kernel(x, calls, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()

        def found(value, *, static):
            if static == "early":
                return 5
            calls[lane] += 1
            if value < 4:
                return value * 10
            if value < 8:
                calls[lane] += 10
                if value == 5:
                    return -5
                value += 100
            else:
                calls[lane] += 100
            calls[lane] += 1000
            return value

        calls[lane] = 0
        out[0, lane] = found(x[lane], static="early")
        out[1, lane] = found(x[lane], static="late")

    def expected(v):
        if v < 4:
            return [5, v * 10, 1]
        if v == 5:
            return [5, -5, 11]
        return [5, v + 100, 1011] if v < 8 else [5, v, 1101]

    x = torch.arange(32, dtype=torch.int32, device=device)
    calls, out = ints(device), ints(device, 2, 32)
    run(kernel, x, calls, out)
    assert torch.stack([*out, calls]).T.tolist() == [expected(v) for v in range(32)]


def test_a_helper_returns_anything_where_its_path_is_static(device, run):
    @warpjit.jit
    def kernel(x, y, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()

        def pick(which):
            for name, tensor in (("x", x), ("y", y)):
                if name == which:
                    return tensor, name
            return None

        def nothing():
            pass

        tensor, name = pick("y")
        out[lane] = tensor[lane] + len(name) if pick("z") is None and nothing() is None else no_such_name

    x, y = torch.zeros(32, dtype=torch.int32, device=device), torch.arange(32, dtype=torch.int32, device=device)
    out = ints(device)
    run(kernel, x, y, out)
    assert out.tolist() == [v + 1 for v in range(32)]


def test_what_helpers_may_not_do():
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()

        def one(a):
            return a

        def half(v):
            if v > 3:  #: kinds
                return out
            return v

        out[0] = one()  #: missing
        out[0] = one(1, 2)  #: many
        out[0] = one(lane, b=1)  #: name
        out[0] = clipped(lane)  #: outer
        out[0] = half(lane)
        out[0] = endless(lane)
        out[0] = math.sqrt(lane)  #: math
        out[0] = str(lane)  #: text
        out[0] = T.sqrt(1, 2, 3)  #: intrinsic

    got = reported(kernel, 3, FEW)
    assert [item for item in got if item[0] not in ("intrinsic", "kinds", "endless")] == [
        ("missing", "one: missing a required argument: 'a'"),
        ("many", "one: too many positional arguments"),
        ("name", "one: got an unexpected keyword argument 'b'"),
        ("outer", "clipped: missing a required argument: 'low'"),
        ("math", "sqrt is no function of the language: expected static arguments but got device values"),
        ("text", "str is no function of the language: expected static arguments but got device values"),
    ]
    assert (
        "endless",
        "endless calls itself too deeply: a helper is inlined, so its recursion must end while tracing",
    ) in got
    assert [message for name, message in got if name == "intrinsic"] == ["T.sqrt(a): too many positional arguments"]
    assert len(got) == 9


def test_an_error_in_a_helper_shows_the_chain():
    def inner(v):
        return v + no_such_name  #: inner

    def outer(v):
        w = inner(v)  #: outer
        return w

    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        out[0] = outer(T.cuda.lane_id())  #: kernel

    (finding,) = findings(kernel, FEW)
    frames = finding.loc.frames
    assert finding.message == "the name no_such_name is not defined"
    assert [label(type(finding.loc)((frame,))) for frame in frames] == ["kernel", "outer", "inner"]
    assert [frame.function.rpartition(".")[2] for frame in frames] == ["kernel", "outer", "inner"]
    text = finding.render()
    assert text.index("out[0] = outer(") < text.index("w = inner(v)") < text.index("return v + no_such_name")
    assert text.splitlines()[-1].strip() == "^" * len("no_such_name")


# ---- builtins -------------------------------------------------------------------------------------------------


def test_builtins_on_device_values(device, run):
    @warpjit.jit
    def kernel(x, f, out, reals):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        v, r = x[i], f[i]
        out[0, i] = min(v, 3) + max(v, 3, i) + abs(v)
        out[1, i] = int(r)
        out[2, i] = bool(v)
        out[3, i] = sum((v, 1, i)) + sum([v, v], 100)
        out[4, i] = len(x) + len((v, v)) + isinstance(3, int) + isinstance("a", (int, float))
        out[5, i] = max((v, i, 2)) - min([v, i, 7])
        total = 0
        for k, (a, b) in enumerate(zip((v, i, 1), (1, v, 2), strict=False)):
            total += k * a + b
        for a in reversed((v, 2 * v)):
            total = total * 2 + a
        out[6, i] = total + tuple([v, 3])[1]
        reals[0, i] = float(v) / 2
        reals[1, i] = abs(r)
        reals[2, i] = min(r, 0.5)
        reals[3, i] = max(r, v)
        reals[4, i] = sum((r, 0.5))

    x = torch.arange(32, dtype=torch.int32, device=device) - 9
    f = (torch.arange(32, device=device) - 16) * 0.75
    out, reals = ints(device, 7, 32), torch.zeros((5, 32), device=device)
    run(kernel, x, f, out, reals)
    for i, (got, real) in enumerate(zip(out.T.tolist(), reals.T.tolist(), strict=True)):
        v, r = i - 9, (i - 16) * 0.75
        total = sum(k * a + b for k, (a, b) in enumerate(((v, 1), (i, v), (1, 2))))
        total = (total * 2 + 2 * v) * 2 + v
        assert got == [
            min(v, 3) + max(v, 3, i) + abs(v), int(r), bool(v), 3 * v + 101 + i, 32 + 2 + 1,
            max(v, i, 2) - min(v, i, 7), total + 3,
        ]  # fmt: skip
        assert real == [v / 2, abs(r), min(r, 0.5), max(r, v), r + 0.5]


def test_builtins_that_make_no_sense_of_a_device_value():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        out[0] = len(n)  #: len
        out[0] = sum(n)  #: sum
        out[0] = abs(x)  #: abs
        out[0] = max(n)  #: max
        out[0] = int(x)  #: int
        out[0] = tuple(n)  #: tuple
        out[0] = min(x, 1)  #: min
        out[0] = int("7", n)  #: base

    got = dict(reported(kernel, 3, FEW, FEW))
    assert list(got) == ["len", "sum", "abs", "max", "int", "tuple", "min", "base"]
    assert got["abs"] == "expected a number but got the tensor x"
    assert not any("Traceback" in message or "object is not" in message for message in got.values()), got


# ---- conversions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ("int8", "uint8", "int16", "int64", "uint32", "float16", "bfloat16", "float64", "bool")
)
def test_conversions(name, device, run):
    @warpjit.jit
    def kernel(x, f, out, *, to):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        out[0, i] = to(x[i])
        out[1, i] = T.cast(f[i], to)
        out[2, i] = to(1)
        out[3, i] = x[i]  # a store converts as well

    kind = getattr(torch, name)
    x = ((torch.arange(32) - 10) * 77).to(torch.int32)
    f = (torch.arange(32) * 0.75).to(torch.float32)
    out = torch.zeros((4, 32), dtype=kind, device=device)
    run(kernel, x.to(device), f.to(device), out, to=getattr(T, name))
    expected = [x.to(torch.int64).to(kind), f.to(kind), torch.ones(32).to(kind), x.to(torch.int64).to(kind)]
    assert out.cpu().to(torch.float64).tolist() == [row.to(torch.float64).tolist() for row in expected]
    assert kinds(kernel, x, f, out.cpu(), to=getattr(T, name)) == []
