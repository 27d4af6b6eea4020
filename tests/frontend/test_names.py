"""Names: what a kernel takes from outside, its parameters, constants and what stands before the entry."""

# ruff: noqa: F823, F841 (kernels that are wrong on purpose)

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pytest
import torch
from language_cases import ints, reported, rows

import warpjit
from warpjit import ArgumentError, T
from warpjit.layout import S, TileLayout

FEW = torch.empty(64, dtype=torch.int32)
GRID = T.cuda.LaunchConfig(grid=1, block=32)


class Mode(enum.Enum):
    ADD = 1
    SUBTRACT = 2


@dataclass(frozen=True)
class Shape:
    rows: int
    factor: float = 1.0
    names: tuple[str, ...] = ("a",)


@dataclass
class Thawed:
    rows: int = 1


SCALE = 3
MODE = Mode.ADD
SHAPE = Shape(4, 0.5)
LAYOUT = TileLayout(S[4, 8])
PAIR = (1, 2.5, "x")
KIND = "float32"
SWITCH = True
settings = ModuleType("settings")
settings.LEVEL = 7


@warpjit.jit
def captures(out):
    T.device_entry(launch=GRID)
    lane = T.cuda.lane_id()
    out[0, lane] = SCALE * lane if SWITCH else 0
    out[1, lane] = lane + 1 if MODE is Mode.ADD else lane - 1
    out[2, lane] = SHAPE.rows * SHAPE.factor + len(SHAPE.names)
    out[3, lane] = LAYOUT.size() + PAIR[0] + PAIR[1]
    out[4, lane] = settings.LEVEL + math_of(settings)
    local = T.alloc_local((1,), KIND)
    local[0] = 2.5
    out[5, lane] = local[0]


def math_of(module):
    return module.LEVEL * 2


def test_globals_enums_dataclasses_layouts_and_modules_attributes(device, run):
    out = torch.zeros((6, 32), device=device)
    run(captures, out)
    assert out.T.tolist() == [[3 * i, i + 1, 3.0, 35.5, 21, 2.5] for i in range(32)]


def test_a_changed_name_is_traced_again(device, monkeypatch):
    out = torch.zeros((6, 32), device=device)
    captures(out)
    for name, value in (("SCALE", 5), ("MODE", Mode.SUBTRACT), ("SHAPE", Shape(10)), ("PAIR", (0, 0))):
        monkeypatch.setattr(f"{__name__}.{name}", value)
    monkeypatch.setattr(settings, "LEVEL", 1)
    captures(out)
    assert out.T.tolist() == [[5 * i, i - 1, 11.0, 32, 3, 2.5] for i in range(32)]


def test_closures_are_taken_when_the_kernel_is_traced(device, run):
    def make(factor, later):
        @warpjit.jit
        def kernel(x, out):
            T.device_entry(launch=GRID)
            i = T.cuda.lane_id()
            out[i] = x[i] * factor + offset

        if later:
            offset = 10
        return kernel

    x = torch.arange(32, dtype=torch.int32, device=device)
    for factor in (2, 3):
        out = ints(device)
        run(make(factor, True), x, out)
        assert out.tolist() == [factor * v + 10 for v in range(32)]
    assert [message for _, message in reported(make(2, False), FEW, FEW)] == [
        "offset has no value yet in the enclosing function"
    ]


TABLE = [1, 2]
NAMES = {"a": 1}
WEIGHTS = torch.ones(4)
ARRAY = np.ones(4)
MEMBERS = {1, 2}
NESTED = (1, [2])
THAWED = Thawed()


def test_what_may_change_unnoticed_is_refused():
    inner = bytearray(b"12")

    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=GRID)
        out[0] = TABLE[0]  #: list
        out[0] = NAMES["a"]  #: dict
        out[0] = WEIGHTS[0]  #: tensor
        out[0] = ARRAY[0]  #: array
        out[0] = len(MEMBERS)  #: set
        out[0] = NESTED[0]  #: nested
        out[0] = inner[0]  #: bytes
        out[0] = THAWED.rows  #: thawed

    changes = "it may change unnoticed. Use a tuple, or pass it as a constant"
    assert reported(kernel, FEW) == [
        ("list", f"TABLE is a captured list: {changes}"),
        ("dict", f"NAMES is a captured dict: {changes}"),
        ("tensor", "WEIGHTS is a captured tensor: pass it as an argument of the kernel"),
        ("array", "ARRAY is a captured tensor: pass it as an argument of the kernel"),
        ("set", f"MEMBERS is a captured set: {changes}"),
        ("nested", f"NESTED is a captured list: {changes}"),
        ("bytes", f"inner is a captured bytearray: {changes}"),
        ("thawed", "THAWED is a captured Thawed: only frozen dataclasses can be captured"),
    ]


def test_a_local_name_hides_a_global_everywhere():
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=GRID)
        out[0] = SCALE  #: early
        SCALE = 4

    assert reported(kernel, FEW) == [("early", "SCALE is read before it is assigned")]


# ---- parameters ---------------------------------------------------------------------------------------------------


def test_constants_of_equal_value_but_other_types_do_not_share_a_kernel(device, run):
    @warpjit.jit
    def kernel(out, *, value):
        T.device_entry(launch=GRID)
        out[0] = (type(value) is int) + 2 * (type(value) is bool) + 4 * (type(value) is float)
        out[1] = 1 if isinstance(value, tuple) and type(value[0]) is float else 0
        out[2] = str(value).startswith("-")

    for value, expected in ((1, 1), (True, 2), (1.0, 4), ((1,), 0), ((1.0,), 0), (0.0, 4), (-0.0, 4)):
        out = ints(device, 3)
        run(kernel, out, value=value)
        assert out.tolist() == [expected, value == (1.0,) and type(value[0]) is float, str(value).startswith("-")]


def test_constants_must_be_hashable_and_are_given_by_name():
    @warpjit.jit
    def kernel(out, mode: T.constexpr, *, size=4):
        T.device_entry(launch=GRID)
        out[0] = size + len(mode)

    assert "= 7;" in kernel.source(FEW, "abc") and "= 12;" in kernel.source(FEW, (1, 2), size=10)
    for value in ([1], {"a": 1}, torch.ones(1), np.ones(1)):
        with pytest.raises(ArgumentError, match="expected a compile-time constant"):
            kernel(FEW, "abc", size=value)
    with pytest.raises(ArgumentError):
        kernel(FEW, "abc", 5)


def test_string_and_int_sizes(device, run):
    @warpjit.jit
    def kernel(a: T.Tensor(("N", 2), "int32"), b: T.Tensor(("N",)), out: T.Tensor((1,), "int32")):
        T.device_entry(launch=GRID)
        r = T.alloc_local((b.shape[0],), "int32")
        for i in range(a.shape[0]):
            r[i] = a[i, 0] * b[i]
        total = 0
        for i in range(len(a)):
            total += r[i] + a.shape[1]
        out[0] = total

    for size in (3, 5):
        a = torch.arange(2 * size, dtype=torch.int32, device=device).reshape(size, 2)
        b = torch.arange(size, dtype=torch.int32, device=device)
        out = ints(device, 1)
        run(kernel, a, b, out)
        assert out.item() == sum(2 * k * k + 2 for k in range(size))
    with pytest.raises(ArgumentError, match=r"b.shape\[0\]: expected size N = 5, as in a.shape\[0\], but got 4"):
        kernel(a, b[:4], out)
    with pytest.raises(ArgumentError, match=r"a: expected shape \(N, 2\) but got \(2, 5\)"):
        kernel(a.T, b, out)
    with pytest.raises(ArgumentError, match="out: expected a tensor of int32 but got float32"):
        kernel(a, b, out.float())


M = T.dynamic("M")
N = T.dynamic("N", multiple_of=4)


@warpjit.jit
def dynamic_sizes(x: T.Tensor((M, N), "int32"), y: T.Tensor((N,), "int32"), out: T.Tensor((M,), "int32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(M, 32), block=32))
    row = T.cuda.block_idx() * 32 + T.cuda.lane_id()
    if row < M:
        total = 0
        for k in range(x.shape[1]):
            total += x[row, k] * y[k]
        out[row] = total + N % 4 + (N == y.shape[0])


def test_runtime_sizes_share_one_kernel(device, run):
    for m, n in ((1, 4), (33, 8), (64, 12), (70, 0)):
        x = torch.arange(m * n, dtype=torch.int32, device=device).reshape(m, n) % 7
        y = torch.arange(n, dtype=torch.int32, device=device)
        out = ints(device, m)
        run(dynamic_sizes, x, y, out)
        assert out.tolist() == ((x.cpu().long() @ y.cpu().long()) + 1).tolist()
    first, second = (
        dynamic_sizes.source(torch.empty(m, 8, dtype=torch.int32), torch.empty(8, dtype=torch.int32),
                             torch.empty(m, dtype=torch.int32))
        for m in (40, 77)
    )  # fmt: skip
    assert first == second and "mod" not in rows(dynamic_sizes, x, y, out)


def test_promises_of_runtime_sizes_are_checked():
    x, y, out = (torch.empty(size, dtype=torch.int32) for size in ((3, 6), (6,), (3,)))
    with pytest.raises(ArgumentError, match=r"x.shape\[1\]: expected N to be a multiple of 4 but got 6"):
        dynamic_sizes(x, y, out)
    with pytest.raises(ArgumentError, match=r"expected size N = 8, as in x.shape\[1\], but got 4"):
        dynamic_sizes(torch.empty(3, 8, dtype=torch.int32), torch.empty(4, dtype=torch.int32), out)


def test_a_captured_size_of_no_parameter():
    other = T.dynamic("K")

    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=GRID)
        out[0] = other + 1  #: size

    assert reported(kernel, FEW) == [("size", "T.dynamic('K'): expected the size of a parameter, but none has it")]


def test_unannotated_scalars_tuples_and_none(device, run):
    @warpjit.jit
    def kernel(tensors, scale, shift, flag, bias, out):
        T.device_entry(launch=GRID)
        i = T.cuda.lane_id()
        total = 0.0
        for t in tensors:
            total += t[i] * scale
        if flag:
            total = total + shift
        if bias is not None:
            total += bias[0]
        assert_types(scale, shift, flag)
        out[i] = total + len(tensors)

    def assert_types(*values):
        for value, name in zip(values, ("T.float32", "T.int32", "T.bool"), strict=True):
            if repr(value.dtype) != name:
                raise AssertionError(name)

    x = torch.arange(32, dtype=torch.float32, device=device)
    bias = torch.tensor([0.5], device=device)
    for tensors, flag, extra in (((x,), True, None), ((x, x, x), False, bias), ((), True, bias)):
        out = torch.zeros(32, device=device)
        run(kernel, tensors, 1.5, 3, flag, extra, out)
        more = 3 * flag + (0.5 if extra is not None else 0) + len(tensors)
        assert out.tolist() == [1.5 * v * len(tensors) + more for v in range(32)]
    with pytest.raises(ArgumentError, match=r"shift: 4294967296 does not fit int32 .*: annotate shift as T.int64"):
        kernel((x,), 1.5, 2**32, True, None, x)


def test_scalars_of_every_type(device, run):
    @warpjit.jit
    def kernel(
        a: T.int8, b: T.uint16, c: T.int64, d: T.float16, e: T.float64, f: T.bool, g: T.uint64, h: T.bfloat16, out
    ):
        T.device_entry(launch=GRID)
        out[0], out[1], out[2], out[3] = a, b, c, d
        out[4], out[5], out[6], out[7] = e, f, T.float64(g), h

    out = torch.zeros(8, dtype=torch.float64, device=device)
    run(kernel, -128, 65535, -(2**40), 0.1, 0.1, True, 2**63, 1.7, out)
    half, brain = (torch.tensor(v, dtype=t).item() for v, t in ((0.1, torch.float16), (1.7, torch.bfloat16)))
    assert out.tolist() == [-128, 65535, -(2.0**40), half, 0.1, 1, 2.0**63, brain]
    with pytest.raises(ArgumentError, match="a: 128 does not fit int8"):
        kernel(128, 0, 0, 0, 0, False, 0, 0, out)
    with pytest.raises(ArgumentError, match=r"c: expected an integer \(int64\) but got 1.5"):
        kernel(1, 0, 1.5, 0, 0, False, 0, 0, out)


# ---- before the entry ---------------------------------------------------------------------------------------------


@warpjit.jit
def host_expressions(n: T.int32, m: T.int32, x, out, *, tile):
    blocks = T.cdiv(n, tile)
    rest = n % tile
    both = blocks * 2 + m - 1
    less = min(n, m, 100)
    more = max(n // 3, m)
    chosen = n if n > m else m + 1
    flags = (n < m) + 0 if False else n * (2 if tile > 2 else 3)
    inside = 1 if 0 <= n and not m > 50 else 0
    either = 1 if n == 3 or m != 7 or n >= 9 else 0
    minus = -m // 4
    size = x.shape[0] * tile
    T.device_entry(launch=T.cuda.LaunchConfig(grid=(blocks, 2), block=32))
    i = T.cuda.lane_id()
    if T.cuda.block_idx() == blocks - 1 and T.cuda.block_idx("y") == 1:
        if i == 0:
            out[0], out[1], out[2], out[3] = blocks, rest, both, less
            out[4], out[5], out[6], out[7] = more, chosen, flags, inside
            out[8], out[9], out[10], out[11] = either, minus, size, T.cuda.grid_dim()
            out[12] = T.cuda.grid_dim("y") + T.cuda.block_dim()


@pytest.mark.parametrize(("n", "m"), ((10, 7), (3, 60), (9, 7), (1, -5), (40, 40)))
def test_host_expressions(n, m, device, run):
    tile = 4
    out = ints(device, 13)
    run(host_expressions, n, m, torch.empty(6, device=device), out, tile=tile)
    blocks = -(-n // tile)
    assert out.tolist() == [
        blocks, n % tile, blocks * 2 + m - 1, min(n, m, 100), max(n // 3, m), n if n > m else m + 1, n * 2,
        int(0 <= n and not m > 50), int(n == 3 or m != 7 or n >= 9), -m // 4, 24, blocks, 34,
    ]  # fmt: skip


def test_an_empty_grid_does_nothing(device, run):
    out = ints(device, 13)
    run(host_expressions, 0, 1, torch.empty(6, device=device), out, tile=4)
    assert out.tolist() == [-12345] * 13


def test_what_cannot_stand_before_the_entry():
    @warpjit.jit
    def kernel(n: T.int32, f: T.float32, x, out):
        a = T.cuda.lane_id()  #: lane
        b = T.alloc_shared((4,))  #: shared
        out[0] = 1  #: store
        c = x[0]  #: load
        d = n / 2  #: quotient
        e = f + 1  #: float
        g = n << 2  #: shift
        h = n & 1  #: bits
        T.cuda.cta_sync()  #: barrier
        return  #: back

    entry = "before T.device_entry"
    got = dict(reported(kernel, 1, 1.0, FEW, FEW))
    assert list(got) == ["lane", "shared", "store", "load", "quotient", "float", "shift", "bits", "barrier", "back"]
    assert all(entry in message for message in got.values()), got
    assert got["store"] == "a store stands before T.device_entry: only host expressions can stand there"


def test_numbers_of_numpys_are_pythons(device):
    @dataclass(frozen=True)
    class Held:
        step: np.int64

    rate, count, held, on = np.float32(0.5), np.int64(3), Held(np.int64(4)), np.bool_(True)

    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=GRID)
        lane = T.cuda.lane_id()
        total = lane * rate
        for i in range(count):
            total += i * held.step
        out[lane, 0] = total if on else 0
        out[lane, count - 2] = rate

    out = torch.zeros(32, 2, device=device)
    kernel(out)
    assert torch.equal(out.cpu(), torch.stack((torch.arange(32) * 0.5 + 12, torch.full((32,), 0.5)), dim=1))


def test_entries_that_are_refused():
    @warpjit.jit
    def never(out):
        pass

    @warpjit.jit
    def twice(n: T.int32, out):
        T.device_entry(launch=GRID)
        T.device_entry(launch=GRID)  #: second

    @warpjit.jit
    def wrong(n: T.int32, out, *, launch):
        T.device_entry(launch=launch(n))  #: entry

    assert [message for _, message in reported(never, FEW)] == [
        "never never calls T.device_entry(launch=T.cuda.LaunchConfig(grid=..., block=...))"
    ]
    assert reported(twice, 1, FEW) == [("second", "T.device_entry: expected one call but got a second")]
    sentences = {
        "block: expected at most 1024 threads but got (1024, 2, 1), 2048 of them": lambda n: T.cuda.LaunchConfig(
            grid=1, block=(1024, 2)
        ),
        "block: expected ints that are known while tracing but got a scalar of type int32": lambda n: (
            T.cuda.LaunchConfig(grid=1, block=n)
        ),
        "block: expected positive sizes but got 0": lambda n: T.cuda.LaunchConfig(grid=1, block=0),
        "grid: expected integers but got float 1.5": lambda n: T.cuda.LaunchConfig(grid=1.5, block=32),
        "grid: expected sizes of 0 or more but got -1": lambda n: T.cuda.LaunchConfig(grid=-1, block=32),
        "grid: expected one to three sizes but got 4": lambda n: T.cuda.LaunchConfig(grid=(1, 1, 1, 1), block=32),
        "grid: expected a multiple of the cluster, (2, 1, 1), but got (3, 1, 1)": lambda n: T.cuda.LaunchConfig(
            grid=3, block=32, cluster=2
        ),
        "T.device_entry: launch: expected T.cuda.LaunchConfig(...) but got int 3": lambda n: 3,
    }
    for sentence, launch in sentences.items():
        ((name, message),) = reported(wrong, 1, FEW, launch=launch)
        assert name == "entry" and message.removeprefix("a ").startswith(sentence.removeprefix("a ")), message
