"""What enters a kernel's key: classes of strides, alignment, width, runtime sizes, constants with their types."""

from __future__ import annotations

import enum
import math
import struct
import warnings
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from call_kernels import rows
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from warpjit import ArgumentError, T, kernel, stages, warpjit
from warpjit.frontend.admit import admit
from warpjit.frontend.kinds import (
    NARROW_BYTES,
    ConstantKind,
    Specialization,
    Stride,
    TensorKind,
    TupleKind,
    stride_holds,
)


@warpjit
def any_tensor(X):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))


def kind_of(tensor: Any, kernel: Any = any_tensor) -> TensorKind:
    (_, kind), *_ = kernel.specialization((tensor,), {}).kinds
    assert isinstance(kind, TensorKind)
    return kind


def meta(shape, strides, dtype=torch.float16):
    return torch.empty_strided(shape, strides, dtype=dtype, device="meta")


@pytest.mark.parametrize(
    ("shape", "strides", "classes"),
    [
        ((4, 8), (8, 1), "packed one"),
        ((4, 8), (16, 1), "free16 one"),
        ((4, 8), (12, 1), "free one"),
        ((4, 8), (1, 4), "one free"),
        ((4, 8), (1, 8), "one free16"),
        ((4, 8), (0, 1), "zero one"),
        ((4, 8), (0, 0), "zero zero"),
        ((1, 8), (777, 1), "any one"),
        ((4, 1), (1, 777), "one any"),
        ((4, 1), (3, 1), "free any"),
        ((2, 3, 4), (12, 4, 1), "packed packed one"),
        ((2, 3, 4), (24, 8, 1), "free16 free16 one"),
        ((2, 1, 4), (4, 99, 1), "packed any one"),
        ((0, 4), (4, 1), "any one"),
        ((4, 0), (1, 1), "packed any"),
        ((), (), ""),
    ],
)
def test_the_class_of_each_stride(shape, strides, classes):
    assert " ".join(stride.value for stride in kind_of(meta(shape, strides)).strides) == classes


@pytest.mark.parametrize(
    ("dtype", "stride"), [(torch.int8, 16), (torch.float16, 8), (torch.float32, 4), (torch.int64, 2)]
)
def test_sixteen_bytes_are_counted_in_elements(dtype, stride):
    assert kind_of(meta((2, 1 + stride), (stride * 3, 1), dtype)).strides[0] is Stride.FREE16
    assert kind_of(meta((2, 1 + stride), (stride * 3 + 1, 1), dtype)).strides[0] is Stride.FREE


@given(st.data())
def test_every_class_that_is_given_is_true(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=4)))
    strides = tuple(data.draw(st.integers(0, 24)) for _ in shape)
    kind = kind_of(meta(shape, strides))
    for axis, known in enumerate(kind.strides):
        assert stride_holds(known, shape, strides, axis, 16)
    assert admit(Specialization((("X", kind),)), [torch.empty_strided(shape, strides, dtype=torch.float16)])


@pytest.mark.parametrize(("offset", "align"), [(0, 16), (8, 16), (4, 2), (1, 2)])
def test_one_bit_of_the_base_address(offset, align):
    base = torch.empty(64, dtype=torch.float16)
    assert base.data_ptr() % 16 == 0
    assert kind_of(base[offset:]).align == align


def test_a_promise_of_alignment_is_part_of_the_kind():
    @warpjit
    def promised(X: T.Tensor((4,), "float32", align=64)):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

    base = torch.empty(64)
    start = -base.data_ptr() // 4 % 16
    assert kind_of(base[start : start + 4], promised).align == 64
    with pytest.raises(ArgumentError, match=r"^X: expected an address that is a multiple of 64 bytes but got"):
        promised(base[start + 4 : start + 8])


@pytest.mark.parametrize(
    ("shape", "strides", "narrow"),
    [
        ((NARROW_BYTES // 2 - 1,), (1,), True),
        ((NARROW_BYTES // 2,), (1,), False),
        ((2,), (NARROW_BYTES // 2 - 1,), False),
        ((2,), (NARROW_BYTES // 2 - 2,), True),
        ((1 << 20, 1 << 20), (0, 0), True),
        ((0, 1 << 20, 1 << 20), (1 << 40, 1 << 20, 1), False),
        ((1, 4), (1 << 40, 1), True),
    ],
)
def test_one_bit_for_offsets_of_32_bits(shape, strides, narrow):
    assert kind_of(meta(shape, strides)).narrow is narrow


def test_fake_tensors_describe_what_they_stand_for():
    with FakeTensorMode():
        fake = torch.empty((3, 8), dtype=torch.int32, device="cuda")
    real = torch.empty((3, 8), dtype=torch.int32)
    assert kind_of(fake) == kind_of(real)
    assert rows.source(fake, fake, target="sm_90a") == rows.source(real, real, target="sm_90a")
    with pytest.raises(ArgumentError, match=r"^X: expected a (dense )?tensor in memory"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        rows(fake, fake)


# ---- runtime sizes --------------------------------------------------------------------------------------------


def test_one_program_for_all_sizes(monkeypatch):
    count = [0]
    real = stages.trace
    monkeypatch.setattr(stages, "trace", lambda *args: (count.__setitem__(0, count[0] + 1), real(*args))[1])
    K = T.dynamic("K")

    @warpjit
    def both(X: T.Tensor((T.dynamic("R"), K), "int32"), Out: T.Tensor((T.dynamic("R"), K), "int32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=X.shape[0], block=32))
        row, lane = T.cuda.block_idx("x"), T.cuda.lane_id()
        if lane < K:
            Out[row, lane] = X[row, lane] + K

    for shape in [(3, 5), (1, 5), (7, 1), (1, 1), (0, 4), (2, 0), (9, 32)]:
        x, out = torch.randint(-9, 9, shape, dtype=torch.int32), torch.zeros(shape, dtype=torch.int32)
        both(x, out)
        assert torch.equal(out, x + shape[1]), shape
    assert count == [1]


def test_a_runtime_size_of_one_with_any_stride(device, run):
    base = torch.arange(64, dtype=torch.int32, device=device)
    x, out = base.as_strided((1, 8), (999, 1)), torch.zeros((1, 8), dtype=torch.int32, device=device)
    run(rows, x, out)
    assert torch.equal(out, x + 1)
    assert kind_of(x, rows_of_x) == kind_of(base.view(8, 8), rows_of_x)


@warpjit
def rows_of_x(X: T.Tensor((T.dynamic("M"), 8), "int32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))


def test_wide_tensors_have_wide_strides():
    @warpjit
    def wide(X: T.Tensor((T.dynamic("A"), T.dynamic("B"), T.dynamic("C")), "int8")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        X[T.cuda.lane_id(), 1, 2] = 0

    large = torch.empty((4, 1 << 16, 1 << 16), dtype=torch.int8, device="meta")
    small = torch.empty((4, 8, 8), dtype=torch.int8, device="meta")
    strides = {}
    for name, tensor in (("large", large), ("small", small)):
        plan = wide.program(wide.specialization((tensor,), {}), kernel.parsed("sm_90a")).plan
        sizes, steps = [tuple(tensor.shape)], [tensor.stride()]
        values = plan.compile()([0], sizes, steps)[3:]
        strides[name] = {(p.dtype.name, v) for p, v in zip(plan.parameters, values, strict=True) if not p.pointer}
    assert ("int64", 1 << 32) in strides["large"]
    assert ("int32", 64) in strides["small"] and {dtype for dtype, _ in strides["small"]} == {"int32"}


def test_a_multiple_is_a_promise():
    @warpjit
    def promised(X: T.Tensor((T.dynamic("M", multiple_of=8),), "int32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

    promised(torch.empty(16, dtype=torch.int32))
    with pytest.raises(ArgumentError) as caught:
        promised(torch.empty(12, dtype=torch.int32))
    assert str(caught.value) == "X.shape[0]: expected M to be a multiple of 8 but got 12"


def test_a_runtime_size_fits_32_bits():
    with pytest.raises(ArgumentError) as caught:
        kind_of(torch.empty((1 << 31, 8), dtype=torch.int32, device="meta"), rows_of_x)
    assert str(caught.value) == "X.shape[0]: expected M to be below 2**31 but got 2147483648"


def test_string_sizes_are_static_and_agree():
    @warpjit
    def named(X: T.Tensor(("n", "n"), "int32"), Y: T.Tensor(("n",), "int32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Y[0] = X.shape[1]

    x, y = torch.zeros((3, 3), dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
    named(x, y)
    assert y[0] == 3
    assert named.specialization((x, y), {}) != named.specialization((x[:2, :2].contiguous(), y[:2]), {})
    with pytest.raises(ArgumentError) as caught:
        named(x[:2], y)
    assert str(caught.value) == "X.shape[1]: expected size n = 2, as in X.shape[0], but got 3"


# ---- constants ------------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Number(enum.IntEnum):
    ONE = 1


@dataclass(frozen=True)
class Tile:
    n: Any


NAN = float("nan")
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
DIFFERENT = [
    *(
        0,
        1,
        True,
        False,
        1.0,
        0.0,
        -0.0,
        NAN,
        OTHER_NAN,
        "1",
        None,
        (),
        (1,),
        (True,),
        (1.0,),
        (0.0,),
        (-0.0,),
        ((1,),),
    ),
    *(Tile(1), Tile(True), Tile(1.0), Tile((0.0,)), Tile((-0.0,)), Colour.RED, Colour.BLUE, Number.ONE),
    *(frozenset((1,)), frozenset((True,)), frozenset((1.0,)), "float16", T.float16, torch.float16, len, min, int),
]


@warpjit
def with_constant(X, *, c):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))


def constant(value: Any) -> ConstantKind:
    kind = with_constant.specialization((torch.empty(1),), {"c": value}).kinds[1][1]
    assert isinstance(kind, ConstantKind)
    return kind


def test_constants_that_mean_different_things_have_different_keys():
    kinds = [constant(value) for value in DIFFERENT]
    assert len(set(kinds)) == len(DIFFERENT)
    assert all(constant(value) == kind for value, kind in zip(DIFFERENT, kinds, strict=True))
    assert constant(math.nan) == constant(NAN)


def test_a_kernel_is_traced_for_each_constant():
    @warpjit
    def typed(Out, *, c):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = len(repr(c))

    out = torch.zeros(32, dtype=torch.int32)
    for value in (1, True, 1.0, 0.0, -0.0, NAN, (1, True), (1.0, 1), Tile(1), Tile(True)):
        typed(out, c=value)
        assert out[0] == len(repr(value))


def test_scalars_never_depend_on_their_value():
    @warpjit
    def scalar(X, s):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

    x = torch.empty(1)
    kinds = {value: scalar.specialization((x, value), {}) for value in (0, -5, 2**31 - 1)}
    assert len(set(kinds.values())) == 1
    floats = {scalar.specialization((x, value), {}) for value in (0.0, NAN, 1e30)}
    assert len(floats) == 1 and floats.isdisjoint(kinds.values())
    assert scalar.specialization((x, True), {}) not in floats | set(kinds.values())


def test_tuples_are_specialised_by_length_and_items():
    x, y = torch.empty(4), torch.empty(4, dtype=torch.int32)
    seen = {any_tensor.specialization((item,), {}) for item in ((), (x,), (x, x), (x, y), (x, None), (x, 1), ((x,),))}
    assert len(seen) == 7
    assert all(isinstance(each.kinds[0][1], TupleKind) for each in seen)
