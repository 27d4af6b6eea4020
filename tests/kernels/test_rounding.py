"""`T.cast` with `rounding` and `saturate`: each direction between all types, and what is too large."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from both import run_both, unbuilt
from refusals import refused

from warpjit import T, warpjit
from warpjit.ir import conversion, dtypes
from warpjit.isa.scalar_rounded import is_exact

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("float16", "bfloat16", "float32", "float64")
NARROW = ("float8_e4m3fn", "float8_e5m2")
BUILT = "float32"
"""The source of the kernels that are built for every target."""
DIRECTIONS = ("nearest", "zero", "down", "up")


@warpjit
def cast(A, outs, *, ways):
    """Each output: A cast to its type in its way."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=A.shape[0] // 32, block=32))
    i = 32 * T.cuda.block_idx() + T.cuda.lane_id()
    x = A[i]
    for out, (rounding, saturate) in zip(outs, ways, strict=True):
        out[i] = T.cast(x, out.dtype, rounding=rounding, saturate=saturate)


def samples(name: str) -> torch.Tensor:
    """256 numbers of a type: small ones with fractions, borders of other types and what is beside them, and NaN."""
    kind = dtypes.dtype(name)
    borders = [
        sign * (2.0**k + step) for k in (7, 8, 11, 15, 16, 31, 32, 63) for sign in (1, -1) for step in (-1, 0, 1)
    ]
    tops = [65504, 65519, 65520, 3.38e38, 3.4e38, 3.5e38, 464, 465, 61439, 61440, 448, 1e300]
    small = [sign * (k / 8 + 2.0**-12 * (k % 3)) for k in range(60) for sign in (1, -1)]
    tiny = [0.0, -0.0, 1e-8, -1e-8, 1e-41, -1e-41, 1e-310, np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        floats = np.array([*borders, *tops, *(-x for x in tops), *small, *tiny])
        floats = np.resize(floats, 256)
        if kind.is_float:
            array = floats.astype(kind.numpy)
        else:
            exact = [min(max(int(x), kind.min), kind.max) for x in np.nan_to_num(floats).tolist()]
            array = np.array(exact, dtype=object).astype(kind.numpy)
    return torch.from_numpy(array.view(np.uint8).copy()).view(getattr(torch, name))


def as_array(tensor: torch.Tensor, name: str) -> np.ndarray:
    return tensor.cpu().contiguous().view(torch.uint8).numpy().view(dtypes.dtype(name).numpy)


def ways_of(source: str, target: str) -> tuple[str, ...]:
    to, of = dtypes.dtype(target), dtypes.dtype(source)
    if to.is_int:
        return DIRECTIONS if of.is_float else ()
    return DIRECTIONS[:2] if target == "bfloat16" and not is_exact(to, of) else DIRECTIONS


@pytest.mark.parametrize("source", (*FLOATS, *INTEGERS))
def test_each_direction(device, run, source):
    a = samples(source)
    cases = [(target, way) for target in (*FLOATS, *INTEGERS) for way in ways_of(source, target)]
    outs = tuple(torch.zeros(256, dtype=getattr(torch, target), device=device) for target, _ in cases)
    run_both(run if source == BUILT else unbuilt, cast, a.to(device), outs, ways=tuple((way, None) for _, way in cases))
    for (target, way), out in zip(cases, outs, strict=True):
        to = dtypes.dtype(target)
        exact = to.is_float and is_exact(to, dtypes.dtype(source))
        expected = conversion.convert(as_array(a, source), to, "" if exact else way)
        assert as_array(out, target).tobytes() == expected.tobytes(), (target, way)


def saturated(array: np.ndarray, target: str, rounding: str) -> np.ndarray:
    """Clamped by exact numbers, then rounded."""
    kind = dtypes.dtype(target)
    if kind.is_int:
        return np.array([min(max(int(x), kind.min), kind.max) for x in array.tolist()], kind.numpy)
    near = conversion.convert(array, kind, rounding)
    largest = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}
    limit = np.asarray(largest.get(target, 1.7976931348623157e308)).astype(kind.numpy)
    wide = near.astype(np.float64)
    return np.where(wide > limit.astype(float), limit, np.where(wide < -limit.astype(float), -limit, near))


@pytest.mark.parametrize("source", (*FLOATS, *INTEGERS))
def test_what_is_too_large_becomes_the_largest(device, run, source):
    a, is_float = samples(source), dtypes.dtype(source).is_float
    targets = (*FLOATS, *(() if is_float else INTEGERS))
    roundings = tuple(None if target in INTEGERS else "zero" if target == "bfloat16" else "up" for target in targets)
    outs = tuple(torch.zeros(256, dtype=getattr(torch, target), device=device) for target in targets)
    run_both(
        run if source == BUILT else unbuilt,
        cast,
        a.to(device),
        outs,
        ways=tuple((rounding, True) for rounding in roundings),
    )
    for target, rounding, out in zip(targets, roundings, outs, strict=True):
        exact = target in FLOATS and is_exact(dtypes.dtype(target), dtypes.dtype(source))
        expected = saturated(as_array(a, source), target, "" if exact or rounding is None else rounding)
        nan = np.isnan(expected.astype(np.float64))
        got = as_array(out, target)
        assert np.array_equal(np.isnan(got.astype(np.float64)), nan)
        assert got[~nan].tobytes() == expected[~nan].tobytes(), target


def out_type(target: str) -> np.dtype:
    return dtypes.dtype(target).numpy


@pytest.mark.parametrize("source", (*FLOATS, "int16", "uint64", "int64"))
def test_8_bit_floats_without_saturation(device, run, source):
    """ml_dtypes rounds so: to infinity, and where there is none to NaN."""
    a = samples(source)
    outs = tuple(torch.zeros(256, dtype=getattr(torch, target), device=device) for target in NARROW)
    run_both(run if source == BUILT else unbuilt, cast, a.to(device), outs, ways=((None, False), ("nearest", False)))
    with np.errstate(all="ignore"):
        numbers = as_array(a, source).astype(np.float32)
    for target, out in zip(NARROW, outs, strict=True):
        got, wanted = (each.astype(np.float32) for each in (as_array(out, target), numbers.astype(out_type(target))))
        assert np.array_equal(got, wanted, equal_nan=True), target
    saturating = tuple(torch.zeros_like(out) for out in outs)
    run_both(
        run if source == BUILT else unbuilt, cast, a.to(device), saturating, ways=((None, True), ("nearest", None))
    )
    for target, out in zip(NARROW, saturating, strict=True):
        expected = conversion.convert(as_array(a, source), dtypes.dtype(target))
        assert as_array(out, target).tobytes() == expected.tobytes()


@warpjit
def known(Out):
    """Numbers that are known while tracing, and 8-bit floats."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[0] = T.cast(2.5, "int32", rounding="nearest")
    Out[1] = T.cast(-2.5, "int32", rounding="down")
    Out[2] = T.cast(300, "uint8", saturate=True)
    Out[3] = T.cast(-1, "uint64", saturate=True)
    Out[4] = T.cast(2**24 + 1, "float32", rounding="up") - 2**24
    Out[5] = T.cast(T.float8_e5m2(2.5), "int32", rounding="up")
    Out[6] = T.cast(1e9, "float16", saturate=True)
    Out[7] = T.cast(T.cuda.lane_id() > 40, "int32", saturate=True)


def test_known_numbers(device, run):
    out = torch.full((8,), -1, dtype=torch.int64, device=device)
    run(known, out)
    assert out.tolist() == [2, -3, 255, 0, 2, 3, 65504, 0]


def asked(expression):
    def body(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[0] = expression(Out[0])

    return [message for message, _ in refused(body)]


WRONG = [
    (
        lambda x: T.cast(x, "int8", rounding="away"),
        'T.cast: expected rounding to be "nearest", "zero", "down" or "up" but got str \'away\'',
    ),
    (lambda x: T.cast(x, "int8", saturate=1), "T.cast: expected saturate to be True, False or None but got int 1"),
    (
        lambda x: T.cast(x, "int8", saturate=False),
        "T.cast: float32 to int8 always saturates: expected no saturate=False",
    ),
    (
        lambda x: T.cast(x, "bfloat16", rounding="up"),
        'T.cast: float32 to bfloat16 rounds "nearest" or "zero" but got rounding="up"',
    ),
    (
        lambda x: T.cast(x, "float8_e5m2", rounding="zero"),
        'T.cast: float32 to float8_e5m2 rounds "nearest" but got rounding="zero"',
    ),
    (
        lambda x: T.cast(x, "bool", rounding="zero"),
        "T.cast: expected no rounding= and no saturate= for float32 to bool",
    ),
    (
        lambda x: T.cast(T.int32(x), "int8", rounding="zero"),
        "T.cast: int32 to int8 does not round: expected no rounding=",
    ),
    (lambda x: T.cast("x", "int8", rounding="zero"), "T.cast: expected a number but got str 'x'"),
    (
        lambda x: T.cast(T.float16x2(x), "float32", saturate=True),
        "T.cast: expected no rounding= and no saturate= for float16x2 to float32",
    ),
]


@pytest.mark.parametrize(("expression", "sentence"), WRONG, ids=range(len(WRONG)))
def test_what_does_not_exist_is_refused(expression, sentence):
    assert asked(expression) == [sentence]
