"""The type in which operands meet."""

from __future__ import annotations

import pytest
import torch
from language_cases import reported

import warpjit
from warpjit import T

WIDTHS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


# ---- promotion ------------------------------------------------------------------------------------------------

TYPES = ("bool", *WIDTHS, "float16", "bfloat16", "float32", "float64")


@warpjit.jit
def type_of_sum(a, b, *, expected):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    assert_type((a[0] + b[0]).dtype, expected)


def assert_type(found, expected):
    if repr(found) != expected:
        raise AssertionError(f"{found} is not {expected}")


@pytest.mark.parametrize("left", TYPES)
def test_operands_meet_in_torchs_type(left):
    for right in TYPES:
        unsigned = [name for name in (left, right) if name in ("uint16", "uint32", "uint64")]
        signed = [name for name in (left, right) if name.startswith("int")]
        tensors = [T.Tensor((1,), left), T.Tensor((1,), right)]
        if unsigned and signed:
            with pytest.raises(warpjit.TraceError, match=f"{left} and {right} have no common type: cast one of them"):
                type_of_sum.source(*tensors, expected="")
            continue
        if left == right == "bool":
            expected = "int32"
        elif unsigned and right.startswith("uint") and left.startswith("uint"):
            expected = max(left, right, key=lambda name: int(name[4:]))
        elif "bool" in (left, right) or unsigned:
            expected = left if right == "bool" or left.startswith(("f", "bf")) else right
        else:
            expected = str(torch.promote_types(getattr(torch, left), getattr(torch, right))).removeprefix("torch.")
        type_of_sum.source(*tensors, expected=f"T.{expected}")


def test_the_error_of_mixed_signs_names_casts():
    @warpjit.jit
    def kernel(a, b, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        out[0] = a[0] + b[0]  #: here
        out[0] = a[0] < b[0]  #: less
        out[0] = T.int64(a[0]) + b[0]

    specs = T.Tensor((1,), "uint32"), T.Tensor((1,), "int32"), T.Tensor((1,), "int64")
    sentence = (
        "uint32 and int32 have no common type: cast one of them, for example the uint32 operand with T.int64(...) or "
        "the int32 operand with T.uint32(...)"
    )
    assert reported(kernel, *specs) == [("here", sentence), ("less", sentence)]


def test_literals_take_the_other_sides_type_and_must_fit():
    @warpjit.jit
    def kernel(a, b, h, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        assert_type((a[0] + 1).dtype, "T.uint8")
        assert_type((b[0] + 1).dtype, "T.int64")
        assert_type((h[0] + 1).dtype, "T.float16")
        assert_type((h[0] * 0.1).dtype, "T.float16")
        assert_type((a[0] + 1.5).dtype, "T.float32")
        assert_type((b[0] / 2).dtype, "T.float32")
        out[0] = a[0] + 256  #: large
        out[0] = a[0] - -1  #: negative
        out[0] = h[0] + 1e6  #: half
        out[0] = a[0] < 300  #: compared

    specs = T.Tensor((1,), "uint8"), T.Tensor((1,), "int64"), T.Tensor((1,), "float16"), T.Tensor((1,), "float32")
    assert reported(kernel, *specs) == [
        ("large", "the literal 256 does not fit uint8 (0 to 255)"),
        ("negative", "the literal -1 does not fit uint8 (0 to 255)"),
        ("half", "the literal 1000000.0 is too large for float16"),
        ("compared", "the literal 300 does not fit uint8 (0 to 255)"),
    ]


def test_bools_in_arithmetic_are_ints(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        i = T.cuda.lane_id()
        low, odd = i < 16, i % 2 == 1
        out[0, i] = low + odd
        out[1, i] = low * 3 - odd
        out[2, i] = low & odd
        out[3, i] = low ^ odd
        out[4, i] = (low | odd) == True  # noqa: E712
        out[5, i] = -low
        out[6, i] = ~odd
        out[7, i] = low << 2
        out[8, i] = x[i] * low
        out[9, i] = not low
        out[10, i] = low < odd

    out = torch.zeros((11, 32), dtype=torch.int32, device=device)
    run(kernel, torch.arange(32, device=device, dtype=torch.int32), out)
    expected = []
    for i in range(32):
        low, odd = i < 16, i % 2 == 1
        expected.append([low + odd, low * 3 - odd, low & odd, low ^ odd, low | odd, -low, ~int(odd), low << 2, i * low,
                         not low, low < odd])  # fmt: skip
    assert out.T.tolist() == [[int(v) for v in row] for row in expected]
