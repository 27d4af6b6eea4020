"""Configurations and their products."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from warpjit import ArgumentError, Config, space, warpjit
from warpjit.tuner.config import text_of


@dataclass(frozen=True)
class Pair:
    a: int
    b: float


def helper(x: int) -> int:
    return x + 1


def test_values_are_attributes() -> None:
    config = Config(BM=64, name="a", max_registers=168)
    assert (config.BM, config.name, config.max_registers) == (64, "a", 168)
    assert dict(config.constants) == {"BM": 64, "name": "a"}
    assert repr(config) == "Config(BM=64, name='a', max_registers=168)"
    with pytest.raises(AttributeError, match="there is no BN"):
        _ = config.BN


def test_equal_with_their_types() -> None:
    assert Config(a=1, b=2) == Config(b=2, a=1)
    assert len({Config(a=1), Config(a=1.0), Config(a=True), Config(a=1, max_registers=64)}) == 4


def test_the_text_of_constants_is_the_same_in_every_process() -> None:
    assert text_of("p", Pair(1, 2.0)) == "Pair(a=1, b=2.0)"
    assert text_of("p", (1, ("x",))) == "(1, ('x',))"
    assert text_of("p", helper).startswith(f"{__name__}.helper#")
    assert text_of("p", lambda x: x + 1) != text_of("p", lambda x: x + 2)
    with pytest.raises(ArgumentError, match="p: expected a constant that prints as what it is"):
        text_of("p", object())


def test_a_constant_that_can_change_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"BM: expected a compile-time constant .* but got \[1\]"):
        Config(BM=[1])


def test_a_space_is_a_product_in_order() -> None:
    found = warpjit.space(BM=[64, 128], stages=(2, 3), where=lambda c: c.BM * c.stages < 300)
    assert [(each.BM, each.stages) for each in found] == [(64, 2), (64, 3), (128, 2)]
    assert [each.max_registers for each in space(a=[1], max_registers=[None, 128])] == [None, 128]


def test_an_empty_space_and_a_single_value_are_refused() -> None:
    with pytest.raises(ArgumentError, match="expected at least one configuration"):
        space(BM=[64], where=lambda c: False)
    with pytest.raises(ArgumentError, match="BM: expected the values to try, in a list, but got 64"):
        space(BM=64)  # type: ignore[arg-type]
