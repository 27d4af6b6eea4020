"""What an mbarrier object holds, as a value: pure functions from state to state.

The manual keeps the object opaque and says what it contains (sections "Contents of the mbarrier object", "Phase
Completion of the mbarrier object", "Tx-count operation"): the current phase, the pending arrivals and the tx-count of
that phase, and the arrivals expected in the next. Here these are fields of a uint64, so that the simulator can keep
an object in 8 bytes of shared memory. Operations take and return uint64 arrays and broadcast.

    bits  0-19  pending arrivals          bit 61  initialised
    bits 20-39  expected arrivals         bit 62  parity of the current phase
    bits 40-60  tx-count, biased          bit 63  error: the low bits are the index of a sentence in `ERRORS`

An error is final: every operation on it returns it. Waiting for memory, and who waits, is not decided here.
"""

from __future__ import annotations

import numpy as np

from warpjit.isa.row import Array
from warpjit.record import record

MAX_COUNT = (1 << 20) - 1
"""The largest arrival count and the largest magnitude of the tx-count (section "Size and alignment of mbarrier")."""

_EXPECTED, _TX, _TX_BIAS = 20, 40, 1 << 20
_INITIALISED, _PHASE, _ERROR = 1 << 61, 1 << 62, 1 << 63

ERRORS = (
    "is used before mbarrier.init (or after mbarrier.inval)",
    f"is initialised with an arrival count outside of 1 to {MAX_COUNT}",
    "gets more arrivals in a phase than it expects",
    f"has a tx-count outside of -{MAX_COUNT} to {MAX_COUNT}",
    f"gets an arrival count outside of 1 to {MAX_COUNT}",
)
"""What may go wrong, as the end of a sentence that begins with the barrier."""

_UNINITIALISED, _BAD_INIT, _TOO_MANY, _TX_RANGE, _BAD_COUNT = range(len(ERRORS))


@record
class Fields:
    """The fields of states, as int64 arrays (bool: `initialised`, `failed`)."""

    pending: Array
    expected: Array
    tx: Array
    phase: Array
    initialised: Array
    failed: Array


def fields(state: Array) -> Fields:
    """The state taken apart."""
    state = np.asarray(state, np.uint64)

    def cut(shift: int, mask: int) -> Array:
        return np.asarray((state >> np.uint64(shift)) & np.uint64(mask)).astype(np.int64)

    tx = cut(_TX, (1 << 21) - 1) - _TX_BIAS
    return Fields(
        cut(0, MAX_COUNT), cut(_EXPECTED, MAX_COUNT), tx, cut(62, 1), cut(61, 1).astype(bool), cut(63, 1).astype(bool)
    )


def init(count: Array) -> Array:
    """A fresh object in phase 0 that expects `count` arrivals in every phase."""
    count = np.asarray(count).astype(np.int64)
    zero = np.zeros_like(count)
    state = _joined(count, count, zero, zero)
    return np.where((count >= 1) & (count <= MAX_COUNT), state, _error(_BAD_INIT))


def inval(state: Array) -> Array:
    """The object is none any more."""
    return _kept(np.zeros_like(np.asarray(state, np.uint64)), state)


def arrive(state: Array, count: Array | int = 1) -> Array:
    """`count` arrivals; the phase completes when none is pending and the tx-count is 0."""
    held = fields(state)
    count = np.asarray(count).astype(np.int64)
    pending = held.pending - count
    done = _settled(np.maximum(pending, 0), held.expected, held.tx, held.phase)
    done = np.where(pending < 0, _error(_TOO_MANY), done)
    return _kept(np.where((count < 1) | (count > MAX_COUNT), _error(_BAD_COUNT), done), state)


def expect_arrival(state: Array) -> Array:
    """The current phase waits for one more arrival; the next phases do not."""
    held = fields(state)
    more = _joined(held.pending + 1, held.expected, held.tx, held.phase)
    return _kept(np.where(held.pending < MAX_COUNT, more, _error(_BAD_COUNT)), state)


def kept(state: Array) -> Array:
    """The same state, an error if there is no object."""
    return _kept(np.asarray(state, np.uint64), state)


def expect_tx(state: Array, tx_count: Array | int) -> Array:
    """The tx-count of the current phase grows."""
    return _moved(state, np.asarray(tx_count).astype(np.int64))


def complete_tx(state: Array, tx_count: Array | int) -> Array:
    """Bytes have come: the tx-count falls, and may complete the phase."""
    return _moved(state, -np.asarray(tx_count).astype(np.int64))


def arrive_expect_tx(state: Array, tx_count: Array | int) -> Array:
    """`expect_tx`, then one arrival."""
    return arrive(expect_tx(state, tx_count), 1)


def parity_done(state: Array, parity: Array | int) -> Array:
    """Whether the phase of that parity has completed: the current phase has the other one. False for an error."""
    held = fields(state)
    other = held.phase != (np.asarray(parity).astype(np.int64) & 1)
    return np.asarray(other & held.initialised & ~held.failed)


def error_of(state: int) -> str | None:
    """What is wrong with one object, None if nothing is."""
    held = fields(np.asarray(state, np.uint64))
    if held.failed:
        return ERRORS[int(state) & 0xFF]
    return None if held.initialised else ERRORS[_UNINITIALISED]


def _moved(state: Array, by: Array) -> Array:
    held = fields(state)
    tx = held.tx + by
    legal = np.abs(tx) <= MAX_COUNT
    done = _settled(held.pending, held.expected, np.where(legal, tx, 0), held.phase)
    return _kept(np.where(legal, done, _error(_TX_RANGE)), state)


def _settled(pending: Array, expected: Array, tx: Array, phase: Array) -> Array:
    """The state, after completing the phase where that is due."""
    complete = (pending == 0) & (tx == 0)
    return _joined(np.where(complete, expected, pending), expected, tx, phase ^ complete)


def _joined(pending: Array, expected: Array, tx: Array, phase: Array) -> Array:
    word = pending | expected << _EXPECTED | (tx + _TX_BIAS) << _TX | phase << 62 | _INITIALISED
    return np.asarray(word).astype(np.uint64)


def _error(index: int) -> np.uint64:
    return np.uint64(_ERROR | index)


def _kept(new: Array, old: Array) -> Array:
    """`new`, unless the old state was an error already or no object at all."""
    held = fields(old)
    known = np.where(held.initialised, new, _error(_UNINITIALISED))
    return np.asarray(np.where(held.failed, np.asarray(old, np.uint64), known))
