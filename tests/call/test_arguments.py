"""What may be given to a kernel, and how everything else is refused: one sentence that names it, nothing changed."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from call_kernels import CudaTensor, double, fill, rows

from warpjit import ArgumentError, T, TraceError, warpjit

N = T.dynamic("N", multiple_of=4)


@warpjit
def strict(
    A: T.Tensor((4, 8), "float16", layout="default", align=16),
    B: T.Tensor(("n", 8), "float16"),
    C: T.Tensor(("n",), "float32"),
    D: T.Tensor((N,), "int32") = None,
    *,
    factor=1,
):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    if T.cuda.lane_id() < 4:
        A[T.cuda.lane_id(), 0] = T.float16(factor)


def good() -> dict[str, Any]:
    return {
        "A": torch.zeros((4, 8), dtype=torch.float16),
        "B": torch.zeros((3, 8), dtype=torch.float16),
        "C": torch.zeros(3),
        "D": torch.zeros(8, dtype=torch.int32),
    }


def test_what_fits_is_taken_by_position_and_by_name():
    given = good()
    strict(*given.values(), factor=2)
    assert (given["A"][:, 0] == 2).all()
    strict(given["A"], C=given["C"], B=given["B"])
    assert (given["A"][:, 0] == 1).all()


wide = torch.zeros((4, 16), dtype=torch.float16)
BAD = {
    "dtype": ({"A": torch.zeros((4, 8))}, "A: expected a tensor of float16 but got float32"),
    "rank": ({"A": torch.zeros(32).half()}, "A: expected 2 axes, shape (4, 8), but got shape (32,)"),
    "shape": ({"A": torch.zeros((8, 4)).half()}, "A: expected shape (4, 8) but got (8, 4)"),
    "packed": (
        {"A": wide[:, :8]},
        'A: layout="default" needs packed rows: expected strides (8, 1) of shape (4, 8) but got (16, 1)',
    ),
    "named size": ({"C": torch.zeros(4)}, "C.shape[0]: expected size n = 3, as in B.shape[0], but got 4"),
    "named rank": ({"B": torch.zeros(3).half()}, "B: expected 2 axes, shape (n, 8), but got shape (3,)"),
    "promise": (
        {"D": torch.zeros(6, dtype=torch.int32)},
        "D.shape[0]: expected N to be a multiple of 4 but got 6",
    ),
    "complex": (
        {"A": torch.zeros((4, 8), dtype=torch.complex64)},
        "A: torch.complex64 is not a data type of the language",
    ),
    "meta": (
        {"A": torch.zeros((4, 8), dtype=torch.float16, device="meta")},
        "expected all tensors on one device, but A is on meta, B is on cpu",
    ),
    "mixed": (
        {"B": CudaTensor(3, 8, dtype=torch.float16)},
        "expected all tensors on one device, but A is on cpu, B is on cuda:0",
    ),
    "list": ({"A": [1.0, 2.0]}, "A: expected a tensor but got [1.0, 2.0]; pass a tuple"),
    "number": ({"A": 3}, "A: expected a tensor but got 3"),
    "array": (
        {"A": np.zeros((4, 8), np.float16)},
        "A: expected a tensor but got a numpy array; torch.from_numpy makes a tensor of it",
    ),
    "sparse": ({"A": torch.zeros((4, 8)).half().to_sparse()}, "A: expected a dense tensor in memory, but …"),
    "negated": (
        {"C": torch.zeros(3, dtype=torch.complex64).conj().imag},
        "C: the tensor is a view that negates its memory: call .resolve_neg() on it",
    ),
    "spec": ({"A": T.Tensor((4, 8), "float16")}, "A: expected an argument but got the description …"),
    "type": ({"C": T.float32}, "C: expected an argument but got the description T.float32: …"),
    "constant list": (
        {"factor": [1]},
        "factor: expected a compile-time constant (hashable, and nothing in it can change) but got [1]; pass a tuple",
    ),
    "constant tensor": (
        {"factor": torch.zeros(3)},
        "factor: expected a compile-time constant (hashable, and nothing in it can change) but got a tensor",
    ),
    "unknown name": ({"E": 1}, "strict(A, B, C, D, *, factor): expected names of its parameters but got 'E'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case):
    changed, sentence = BAD[case]
    given = {**good(), **changed}
    with pytest.raises(ArgumentError) as caught:
        strict(**given)
    head, more, _ = sentence.partition("…")
    assert str(caught.value).startswith(head) if more else str(caught.value) == sentence
    assert not any(untouched(given))


def untouched(given: dict[str, Any]) -> list[bool]:
    """Whether each tensor that can be looked at holds anything."""
    dense = [x for x in given.values() if isinstance(x, torch.Tensor) and x.device.type == "cpu" and not x.is_sparse]
    return [bool(tensor.any()) for tensor in dense]


def test_missing_and_surplus_arguments():
    given = list(good().values())
    cases = [
        (given[:1], {}, "strict(A, B, C, D, *, factor): expected arguments for B, C"),
        (
            [*given, 1],
            {},
            "strict(A, B, C, D, *, factor): expected at most 4 positional arguments but got 5 (what stands after * is "
            "given by name)",
        ),
        (given, {"B": given[1]}, "strict(A, B, C, D, *, factor): expected B once but got it by position and by name"),
        ([], {}, "strict(A, B, C, D, *, factor): expected arguments for A, B, C"),
    ]
    for args, named, sentence in cases:
        with pytest.raises(ArgumentError) as caught:
            strict(*args, **named)
        assert str(caught.value) == sentence


def test_an_address_that_breaks_its_promise():
    given = good()
    given["A"] = torch.zeros(64, dtype=torch.float16)[4:36].view(4, 8)
    with pytest.raises(
        ArgumentError, match=r"^A: expected an address that is a multiple of 16 bytes but got one 8 bytes beyond$"
    ):
        strict(**given)


def test_only_meta_tensors_cannot_run():
    x = torch.empty((2, 8), dtype=torch.int32, device="meta")
    with pytest.raises(ArgumentError) as caught:
        rows(x, x)
    assert str(caught.value) == "X: expected a CUDA tensor, or a CPU tensor to simulate, but it is on meta"


def test_runtime_sizes_of_one_name_agree():
    x, out = torch.zeros((3, 8), dtype=torch.int32), torch.zeros((4, 8), dtype=torch.int32)
    with pytest.raises(ArgumentError) as caught:
        rows(x, out)
    assert str(caught.value) == "Out.shape[0]: expected size M = 3, as in X.shape[0], but got 4"


# ---- numbers --------------------------------------------------------------------------------------------------


@warpjit
def shown(Out, value):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = value


def stored(run, device, value, dtype):
    out = torch.zeros(32, dtype=dtype, device=device)
    run(shown, out, value)
    assert (out == out[0]).all()
    return out[0].item()


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (7, torch.int32),
        (-(2**31), torch.int32),
        (True, torch.bool),
        (0.1, torch.float32),
        (np.int64(2**40), torch.int64),
        (np.int8(-7), torch.int8),
        (np.uint8(200), torch.uint8),
        (np.float16(0.1), torch.float16),
        (np.float64(0.1), torch.float64),
        (np.float32(0.1), torch.float32),
        (np.bool_(True), torch.bool),
    ],
)
def test_numbers_arrive_in_their_own_type(device, run, value, dtype):
    assert (
        stored(run, device, value, dtype)
        == torch.tensor(value.item() if isinstance(value, np.generic) else value, dtype=dtype).item()
    )
    (_, kind) = shown.specialization((torch.zeros(32, dtype=dtype), value), {}).kinds[1]
    assert f"torch.{kind.dtype}" == str(dtype)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("value", [0.1, 1 + 2**-8 + 2**-40, 1 + 2**-11 + 2**-40, -0.0, float("inf"), 1e-7, 3])
def test_16_bit_numbers_are_rounded_once(device, run, name, value):
    @warpjit
    def typed(Out, x: getattr(T, name)):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = x

    out = torch.zeros(32, dtype=getattr(torch, name), device=device)
    run(typed, out, value)
    expected = nearest(value, out.dtype)
    assert torch.equal(out.cpu().view(torch.int16), expected.view(torch.int16).expand(32))


def nearest(value: float, dtype: torch.dtype) -> torch.Tensor:
    """The nearest number of a 16-bit type, the even one of two. (torch rounds twice, through float32.)"""
    guess = torch.tensor(value, dtype=dtype)
    if not math.isfinite(value):
        return guess
    near = [guess, *((guess.view(torch.int16) + step).view(dtype) for step in (1, -1))]
    near = [x for x in near if x.isfinite() and math.copysign(1, x.item()) == math.copysign(1, value)]
    return min(near, key=lambda x: (abs(Fraction(x.item()) - Fraction(value)), x.view(torch.int16).item() & 1))


def test_the_smallest_and_largest_wide_integers(device, run):
    @warpjit
    def wide(Out, a: T.int64, b: T.uint64):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = a + T.int64(b)

    out = torch.zeros(32, dtype=torch.int64, device=device)
    run(wide, out, -(2**63), 2**64 - 1)
    assert (out == 2**63 - 1).all()


BAD_NUMBERS = [
    (shown, 2**31, "value: 2147483648 does not fit int32 (-2147483648 to 2147483647): annotate value as T.int64"),
    (shown, 1e39, "value: 1e+39 is too large for float32"),
    (shown, np.complex64(1), "value: complex64 is not a data type of the language"),
    (
        shown,
        "seven",
        "value: expected a tensor, a number, a tuple of these or None but got 'seven'; compile-time constants stand "
        "after *, or are annotated T.constexpr",
    ),
    (shown, [1, 2], "value: expected a tensor, a number, a tuple of these or None but got [1, 2]; pass a tuple"),
    (fill, "1.0", "value: expected a number (float32) but got '1.0'"),
    (fill, torch.tensor(1.0), "value: expected a number (float32) but got a tensor: pass .item() of it"),
    (fill, None, "value: expected a number (float32) but got None"),
    (fill, 10**309, "value: an int of 1027 bits is too large for float32"),
    (
        shown,
        -(10**400),
        "value: an int of 1329 bits does not fit int32 (-2147483648 to 2147483647): annotate value as T.int64",
    ),
    (fill, 3.4028235677973366e38, "value: 3.4028235677973366e+38 is too large for float32"),
]


@pytest.mark.parametrize(("kernel", "value", "sentence"), BAD_NUMBERS)
def test_bad_numbers(kernel, value, sentence):
    out = torch.zeros(32)
    with pytest.raises(ArgumentError) as caught:
        kernel(out, value)
    assert str(caught.value) == sentence
    assert not out.any()


def test_typed_integers_and_bools_are_checked():
    @warpjit
    def typed(Out, a: T.uint8 = 0, b: T.bool = False, c: T.int64 = 0):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = T.int32(a) + T.int32(b) + T.int32(c)

    out = torch.zeros(32, dtype=torch.int32)
    typed(out, True, np.bool_(True), np.int8(3))
    assert (out == 5).all()
    for named, sentence in [
        ({"a": 256}, "a: 256 does not fit uint8 (0 to 255)"),
        ({"a": -1}, "a: -1 does not fit uint8 (0 to 255)"),
        ({"a": 1.0}, "a: expected an integer (uint8) but got 1.0"),
        ({"b": 1}, "b: expected a bool but got 1"),
        ({"c": 2**63}, "c: 9223372036854775808 does not fit int64 (-9223372036854775808 to 9223372036854775807)"),
    ]:
        with pytest.raises(ArgumentError) as caught:
            typed(out, **named)
        assert str(caught.value) == sentence


# ---- tuples, None, constants ----------------------------------------------------------------------------------


@warpjit
def total(Out, parts, bias):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    value = T.float32(0)
    for tensor, (scale,) in T.unroll(parts):
        value += tensor[lane] * scale
    if bias is not None:
        value += bias[lane]
    Out[lane] = value


def test_tuples_and_optional_tensors(device, run):
    a, b, bias, out = (torch.randn(32, device=device) for _ in range(4))
    run(total, out, ((a, (2.0,)), (b, (0.5,))), bias)
    torch.testing.assert_close(out, 2 * a + 0.5 * b + bias)
    run(total, out, ((a, (3.0,)),), None)
    torch.testing.assert_close(out, 3 * a)
    run(total, out, (), bias)
    torch.testing.assert_close(out, bias)


def test_a_part_of_a_tuple_is_named():
    out = torch.zeros(32)
    with pytest.raises(ArgumentError) as caught:
        total(out, ((out, (2.0,)), (out, ("half",))), None)
    assert str(caught.value).startswith(
        "parts[1][1][0]: expected a tensor, a number, a tuple of these or None but got 'half'"
    )
    with pytest.raises(ArgumentError) as caught:
        total(out, ((CudaTensor(32), (2.0,)),), None)
    assert str(caught.value) == "expected all tensors on one device, but Out is on cpu, parts[0][0] is on cuda:0"


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Shape:
    n: Any


def test_constants_of_every_kind():
    seen: list[Any] = []

    def note(*values):
        seen.append(values)
        return 1

    @warpjit
    def constant(Out, a: T.constexpr, *, b=2):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = note(a, b)

    out = torch.zeros(32, dtype=torch.int32)
    for value in (3, None, "text", (1, "x"), Colour.RED, Shape(4), torch.float16, T.float16, np.int64(5), len):
        constant(out, value, b=value)
        assert seen[-1] == (value, value)
        assert type(seen[-1][0]) is (int if isinstance(value, np.int64) else type(value))
    constant(out, 3)
    assert seen[-1] == (3, 2)


def test_wrong_annotations_and_parameters_are_refused_at_decoration():
    with pytest.raises(TraceError, match=r"the annotation of x, <class 'int'>, is not T\.Tensor"):

        @warpjit
        def annotated(x: int):
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

    with pytest.raises(TraceError, match=r"a kernel cannot have \*rest: pass a tuple"):

        @warpjit
        def variadic(*rest):
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))


def test_unaligned_but_dense_tensors_run(device, run):
    base = torch.arange(40, dtype=torch.float32, device=device)
    out = torch.empty(33, device=device)[1:]
    run(double, base[3:35], out)
    assert torch.equal(out, base[3:35] * 2)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_tensor_has_no_shape():
    nested = torch.nested.nested_tensor([torch.zeros(32), torch.zeros(32)])
    with pytest.raises(ArgumentError, match="X: expected a dense tensor in memory, but"):
        double(nested, torch.zeros(32))
