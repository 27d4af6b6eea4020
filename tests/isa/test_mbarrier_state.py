"""The state of an mbarrier against the manual's rules, and against a model in plain Python."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpjit.isa import mbarrier_state as mbarrier
from warpjit.isa.row import Array
from warpjit.isa.table import lookup


def fresh(count: int) -> Array:
    return mbarrier.init(np.array(count))


def done(state: Array, parity: int) -> bool:
    return bool(mbarrier.parity_done(state, parity))


def test_a_fresh_object_is_in_phase_0() -> None:
    held = mbarrier.fields(fresh(3))
    assert (held.pending, held.expected, held.tx, held.phase) == (3, 3, 0, 0)
    # The phase before the first one counts as complete: a producer's first wait with parity 1 passes.
    assert done(fresh(3), 1) and not done(fresh(3), 0)
    assert mbarrier.error_of(int(fresh(3))) is None


def test_the_phase_completes_with_the_last_arrival() -> None:
    state = mbarrier.arrive(mbarrier.arrive(fresh(3)), 1)
    assert not done(state, 0)
    state = mbarrier.arrive(state)
    assert done(state, 0) and not done(state, 1)
    assert int(mbarrier.fields(state).pending) == 3, "the next phase expects as many"
    state = mbarrier.arrive(state, 3)
    assert done(state, 1) and not done(state, 0)


def test_bytes_hold_the_phase_open() -> None:
    state = mbarrier.arrive_expect_tx(fresh(1), 4096)
    assert not done(state, 0)
    state = mbarrier.complete_tx(state, 4000)
    assert not done(state, 0)
    state = mbarrier.complete_tx(state, 96)
    assert done(state, 0)
    assert int(mbarrier.fields(state).tx) == 0


def test_bytes_may_come_before_they_are_expected() -> None:
    state = mbarrier.complete_tx(fresh(1), 64)
    assert int(mbarrier.fields(state).tx) == -64
    state = mbarrier.arrive_expect_tx(state, 64)
    assert done(state, 0)


def test_an_expected_count_without_an_arrival_does_not_complete() -> None:
    state = mbarrier.complete_tx(mbarrier.expect_tx(fresh(1), 16), 16)
    assert not done(state, 0)
    assert done(mbarrier.arrive(state), 0)


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (mbarrier.arrive(np.array(0, np.uint64)), "is used before mbarrier.init"),
        (mbarrier.inval(np.array(0, np.uint64)), "is used before mbarrier.init"),
        (mbarrier.init(np.array(0)), "is initialised with an arrival count outside of 1 to 1048575"),
        (mbarrier.init(np.array(1 << 20)), "is initialised with an arrival count outside of 1 to 1048575"),
        (mbarrier.arrive(mbarrier.init(np.array(2)), 3), "gets more arrivals in a phase than it expects"),
        (mbarrier.arrive(mbarrier.init(np.array(2)), 0), "gets an arrival count outside of 1 to 1048575"),
        (mbarrier.expect_tx(mbarrier.init(np.array(2)), 1 << 20), "has a tx-count outside of -1048575 to 1048575"),
        (mbarrier.complete_tx(mbarrier.init(np.array(2)), 1 << 20), "has a tx-count outside of -1048575 to 1048575"),
    ],
)
def test_errors_are_final_states(state: Array, sentence: str) -> None:
    assert (mbarrier.error_of(int(state)) or "").startswith(sentence)
    assert not done(state, 0) and not done(state, 1)
    for later in (mbarrier.arrive(state), mbarrier.expect_tx(state, 4), mbarrier.complete_tx(state, 4)):
        assert int(later) == int(state)
    assert mbarrier.error_of(int(mbarrier.init(np.array(4)))) is None, "a new init makes a new object"


def test_extremes_fit() -> None:
    state = mbarrier.expect_tx(mbarrier.init(np.array(mbarrier.MAX_COUNT)), mbarrier.MAX_COUNT)
    held = mbarrier.fields(state)
    assert (held.pending, held.expected, held.tx) == (mbarrier.MAX_COUNT,) * 3
    state = mbarrier.complete_tx(mbarrier.init(np.array(1)), mbarrier.MAX_COUNT)
    assert int(mbarrier.fields(state).tx) == -mbarrier.MAX_COUNT


def test_inval_makes_it_no_object() -> None:
    assert mbarrier.error_of(int(mbarrier.inval(fresh(1)))) == mbarrier.ERRORS[0]


@dataclass
class Model:
    """The manual's words, one object."""

    expected: int
    pending: int
    tx: int = 0
    phase: int = 0

    def settle(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.pending, self.phase = self.expected, self.phase ^ 1


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from(["arrive", "expect", "complete"]), st.integers(1, 4))))
def test_random_histories(count: int, history: list[tuple[str, int]]) -> None:
    model, state = Model(count, count), fresh(count)
    for what, amount in history:
        if what == "arrive":
            if amount > model.pending:
                assert mbarrier.error_of(int(mbarrier.arrive(state, amount))) == mbarrier.ERRORS[2]
                continue
            model.pending -= amount
            state = mbarrier.arrive(state, amount)
        elif what == "expect":
            model.tx += amount
            state = mbarrier.expect_tx(state, amount)
        else:
            model.tx -= amount
            state = mbarrier.complete_tx(state, amount)
        model.settle()
        held = mbarrier.fields(state)
        assert (held.pending, held.expected, held.tx, held.phase) == (
            model.pending,
            model.expected,
            model.tx,
            model.phase,
        )
        assert done(state, 1 - model.phase) and not done(state, model.phase)


def test_states_are_arrays() -> None:
    states = mbarrier.init(np.array([1, 2, 0]))
    assert states.dtype == np.uint64
    after = mbarrier.arrive(states, np.array([1, 1, 1]))
    assert mbarrier.parity_done(after, 0).tolist() == [True, False, False]


def test_the_rows_use_it() -> None:
    def run(text: str, *arrays: Array | None) -> Array:
        row = lookup(text)
        assert row.meaning is not None and row.memory
        return np.asarray(row.meaning(*arrays))

    state = run("mbarrier.init.shared::cta.b64", np.array([2]))
    state = run("mbarrier.arrive.shared::cta.b64", state, None)
    state = run("mbarrier.arrive.expect_tx.shared::cta.b64", state, np.array([32]))
    assert not run("mbarrier.try_wait.parity.shared::cta.b64", state, np.array([0]))[0]
    state = run("mbarrier.complete_tx.shared::cta.b64", state, np.array([32]))
    assert run("mbarrier.test_wait.parity.shared::cta.b64", state, np.array([0]))[0]
