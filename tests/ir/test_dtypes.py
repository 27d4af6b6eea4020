"""The table of data types, and promotion against torch's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from warpjit.errors import TraceError
from warpjit.ir.dtypes import DTYPES, DType, dtype, dtype_of, promote

COMPUTING = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
)
STORAGE_ONLY = ("float8_e4m3fn", "float8_e5m2", "int4", "uint4", "mbarrier")
PAIRS = {"float16x2": "float16", "bfloat16x2": "bfloat16"}


def test_every_type_computes_or_is_stored_or_is_a_pair() -> None:
    assert set(DTYPES) == {*COMPUTING, *STORAGE_ONLY, *PAIRS}
    assert {name: each.element.name for name, each in DTYPES.items() if each.is_pair} == PAIRS
    assert {name for name, each in DTYPES.items() if each.passed} == set(COMPUTING)


@pytest.mark.parametrize("name", DTYPES)
def test_a_name_finds_its_type(name: str) -> None:
    found = dtype(name)
    assert found.name == repr(found) == name
    assert dtype(found) is found
    assert found.numpy.itemsize == found.bytes
    assert found.unsigned_word.bits == found.bits
    assert found.ptx_word == f"b{found.bits}"


@pytest.mark.parametrize("name", [each for each in DTYPES if each != "mbarrier" and each not in PAIRS])
def test_numpy_arrays_know_their_type(name: str) -> None:
    assert dtype_of(np.zeros(3, dtype(name).numpy)) == dtype(name)


def test_numpy_types_without_a_counterpart_are_refused() -> None:
    with pytest.raises(TraceError, match="no data type of the language is stored as numpy complex64"):
        dtype_of(np.zeros(3, np.complex64))


@pytest.mark.parametrize("wrong", ["float", "f16", "", None, 3, float])
def test_unknown_names_list_the_legal_ones(wrong: object) -> None:
    with pytest.raises(TraceError, match=r"expected the name of a data type but got .*float16, bfloat16, float32"):
        dtype(wrong)  # type: ignore[arg-type]


def test_ptx_suffixes_are_the_manuals() -> None:
    suffixes = {name: each.ptx for name, each in DTYPES.items()}
    assert suffixes["float16"] == "f16"
    assert suffixes["bfloat16"] == "bf16"
    assert suffixes["float64"] == "f64"
    assert suffixes["float8_e4m3fn"] == "e4m3"
    assert suffixes["int8"] == "s8"
    assert suffixes["uint4"] == "u4"
    assert suffixes["bool"] == "pred"
    assert dtype("bool").ptx_word == "b8"
    assert suffixes["mbarrier"] == "b64"


@pytest.mark.parametrize("name", [name for name, each in DTYPES.items() if each.is_int and each.bits >= 8])
def test_integer_ranges_are_numpys(name: str) -> None:
    found, limits = dtype(name), np.iinfo(name)
    assert (found.min, found.max) == (limits.min, limits.max)
    assert found.signed == (limits.min < 0)


def test_ranges_of_the_others() -> None:
    assert (dtype("int4").min, dtype("int4").max) == (-8, 7)
    assert (dtype("bool").min, dtype("bool").max) == (0, 1)
    for name in ("float32", "mbarrier"):
        with pytest.raises(TraceError, match="expected an integer type"):
            _ = dtype(name).max


def test_kinds_do_not_overlap() -> None:
    for each in DTYPES.values():
        assert [each.is_float, each.is_int, each.is_bool, each.is_pair, each.kind == "barrier"].count(True) == 1


def torchs(a: str, b: str) -> str | None:
    """torch's promotion, None where it has none."""
    try:
        return str(torch.promote_types(getattr(torch, a), getattr(torch, b))).removeprefix("torch.")
    except (RuntimeError, AttributeError):
        return None


def ours(a: str, b: str) -> DType | None:
    try:
        return promote(dtype(a), dtype(b))
    except TraceError:
        return None


@pytest.mark.parametrize(("a", "b"), list(itertools.product(COMPUTING, COMPUTING)))
def test_promotion_is_torchs_and_only_adds_to_it(a: str, b: str) -> None:
    found, wanted = ours(a, b), torchs(a, b)
    assert found == ours(b, a)
    if wanted is not None:
        assert found is not None and found.name == wanted
    elif found is not None:
        kinds = {dtype(a).kind, dtype(b).kind}
        assert kinds == {"uint"} or kinds == {"uint", "bool"}
        assert found.bits == max(each.bits for each in (dtype(a), dtype(b)) if each.kind == "uint")
    else:
        assert {dtype(a).kind, dtype(b).kind} == {"int", "uint"}


def test_promotion_that_torch_lacks_says_which_cast_would_do() -> None:
    with pytest.raises(
        TraceError, match=r"int32 and uint32 have no common type.*T\.int64\(\.\.\.\).*T\.uint32\(\.\.\.\)"
    ):
        promote(dtype("int32"), dtype("uint32"))


@pytest.mark.parametrize("name", STORAGE_ONLY)
def test_storage_only_types_meet_nothing_but_themselves(name: str) -> None:
    assert promote(dtype(name), dtype(name)) == dtype(name)
    for other in COMPUTING:
        with pytest.raises(TraceError, match=f"{name} has no arithmetic with {other}: convert it first"):
            promote(dtype(other), dtype(name))
