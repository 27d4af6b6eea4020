"""Conversions in each direction against fractions, one number at a time."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_floats import COMPUTING_FLOATS, FIELDS, Array, bits_of, exact, is_nan, random_bits, typed

from warpjit.ir.conversion import convert
from warpjit.ir.dtypes import dtype

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
DIRECTIONS = ("nearest", "zero", "down", "up")


def directed(value: Fraction, name: str, rounding: str, negative: bool) -> int:
    """The bits of a finite number rounded to a float type; `negative` is the sign of a zero."""
    fields, magnitude = FIELDS[name], abs(value)
    low, high = 0, fields.largest
    while low < high:  # the largest pattern whose value does not exceed the magnitude
        middle = (low + high + 1) // 2
        low, high = (middle, high) if exact(middle, name) <= magnitude else (low, middle - 1)
    rest = magnitude - exact(low, name)
    sign = fields.sign if value < 0 or (value == 0 and negative) else 0
    away = {"zero": False, "down": value < 0, "up": value > 0}[rounding]
    return (low + (1 if rest and away else 0)) | sign


def sample(name: str, count: int, seed: int) -> Array:
    return typed(random_bits(np.random.default_rng(seed), name, count), name)


@pytest.mark.parametrize("source", (*COMPUTING_FLOATS, *INTEGERS))
def test_numbers_to_floats(source: str) -> None:
    values = sample(source, 64, 11)
    for target in COMPUTING_FLOATS:
        for rounding in DIRECTIONS[1:]:
            found = bits_of(convert(values, dtype(target), rounding)) if source != target else bits_of(values)
            for bits, value, got in zip(bits_of(values), values.tolist(), found, strict=True):
                if dtype(source).is_float and (is_nan(bits, source) or math.isinf(float(value))):
                    assert got == bits_of(convert(typed(np.array([bits]), source), dtype(target)))[0]
                    continue
                number = exact(bits, source) if dtype(source).is_float else Fraction(value)
                negative = dtype(source).is_float and bool(bits & FIELDS[source].sign)
                assert got == directed(Fraction(number), target, rounding, negative), (value, target, rounding)


WHOLE = {"nearest": round, "zero": math.trunc, "down": math.floor, "up": math.ceil}


@pytest.mark.parametrize("source", COMPUTING_FLOATS)
def test_floats_to_integers(source: str) -> None:
    values = sample(source, 64, 12)
    for name in INTEGERS:
        target = dtype(name)
        for rounding, whole in WHOLE.items():
            found = convert(values, target, rounding).tolist()
            for bits, value, got in zip(bits_of(values), values.tolist(), found, strict=True):
                if is_nan(bits, source):
                    odd = target.bits == 64 or source == "float64"
                    assert got == ((target.min or 1 << target.bits - 1) if odd else 0)
                elif math.isinf(float(value)):
                    assert got == (target.max if float(value) > 0 else target.min)
                else:
                    assert got == min(max(whole(exact(bits, source)), target.min), target.max), (value, rounding)
