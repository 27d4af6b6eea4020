"""Facts about integers: what is computed of a sum holds for every value that its parts may have."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from warpjit.ir import facts as fact
from warpjit.ir.facts import Facts, Uniformity


@st.composite
def known(draw) -> tuple[Facts, int]:
    """Facts, perhaps without a bound, and a value of which they hold."""
    multiple = draw(st.sampled_from((0, 1, 2, 3, 8)))
    value = multiple * draw(st.integers(-20, 20))
    lo = draw(st.none() | st.integers(-200, value))
    hi = draw(st.none() | st.integers(value, 200))
    return Facts(lo, hi, multiple, draw(st.sampled_from(Uniformity))), value


def holds(facts: Facts, value: int) -> bool:
    above = facts.lo is None or facts.lo <= value
    below = facts.hi is None or value <= facts.hi
    return above and below and (value % facts.multiple == 0 if facts.multiple else value == 0)


SUMS = st.lists(st.tuples(known(), st.integers(-6, 6)), max_size=4)


@given(st.integers(-50, 50), SUMS)
def test_a_weighted_sum_holds_and_is_as_uniform_as_its_parts(constant, terms):
    total = fact.weighted_sum(constant, [(facts, factor) for (facts, _), factor in terms])
    assert holds(total, constant + sum(value * factor for (_, value), factor in terms))
    assert total.uniformity == max((facts.uniformity for (facts, _), _ in terms), default=Uniformity.STATIC)


@given(st.integers(-50, 50), SUMS)
def test_a_weighted_sum_of_bounded_parts_is_what_adding_and_multiplying_give(constant, terms):
    parts = [(facts, factor) for (facts, _), factor in terms if facts.lo is not None and facts.hi is not None]
    products = [fact.mul(facts, fact.of_constant(factor)) for facts, factor in parts]
    assert fact.weighted_sum(constant, parts) == reduce(fact.add, products, fact.of_constant(constant))
