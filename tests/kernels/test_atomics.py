"""Atomic operations on tensors: what is left in memory, what is returned, races, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refusals import ONE_WARP, refused

from warpjit import SimulationError, T, warpjit

BLOCK, CTAS = 96, 3
COUNT = BLOCK * CTAS


def integers(dtype, seed, count=COUNT):
    info = torch.iinfo(dtype)
    generator = np.random.default_rng(seed)
    return torch.from_numpy(generator.integers(info.min, info.max, count, dtype=str(dtype).split(".")[1]))


@warpjit
def each_its_own(A, B, C, Old, New):
    """Every thread updates elements of its own: what is returned is defined on the device as well."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=CTAS, block=BLOCK))
    i = T.cuda.block_idx() * BLOCK + T.cuda.thread_idx()
    t = T.cuda.thread_idx()
    shared = T.alloc_shared((8, BLOCK), A.dtype)
    for row in T.unroll(8):
        New[row, i] = A[i]
        shared[row, t] = A[i]
    for row, function in enumerate((T.atomic_add, T.atomic_min, T.atomic_max, T.atomic_and, T.atomic_or, T.atomic_xor)):
        Old[0, row, i] = function(New, (row, i), B[i])
        Old[1, row, i] = function(shared, (row, t), B[i], scope="cta")
    Old[0, 6, i] = T.atomic_exchange(New, (6, i), B[i], scope="cta")
    Old[1, 6, i] = T.atomic_exchange(shared, (6, t), B[i])
    Old[0, 7, i] = T.atomic_cas(New, (7, i), C[i], B[i], scope="sys")
    Old[1, 7, i] = T.atomic_cas(shared, (7, t), C[i], B[i])
    for row in T.unroll(8):
        New[row + 8, i] = shared[row, t]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint32, torch.uint64], ids=str)
def test_integers(device, both, dtype):
    a, b, c = (integers(dtype, seed) for seed in (1, 2, 3))
    c = torch.from_numpy(np.where(np.arange(COUNT) % 3 == 0, a.numpy(), c.numpy()))
    old = torch.zeros((2, 8, COUNT), dtype=dtype, device=device)
    new = torch.zeros((16, COUNT), dtype=dtype, device=device)
    both(each_its_own, a.to(device), b.to(device), c.to(device), old, new)
    x, y, z = a.numpy(), b.numpy(), c.numpy()
    assert (old.cpu().numpy() == x).all()
    with np.errstate(over="ignore"):
        want = [x + y, np.minimum(x, y), np.maximum(x, y), x & y, x | y, x ^ y, y, np.where(x == z, y, x)]
    assert (new.cpu().numpy() == np.stack(want * 2)).all()


@warpjit
def added(A, B, Old, New):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=CTAS, block=BLOCK))
    i = T.cuda.block_idx() * BLOCK + T.cuda.thread_idx()
    shared = T.alloc_shared((BLOCK,), A.dtype)
    shared[T.cuda.thread_idx()] = A[i]
    New[0, i] = A[i]
    Old[0, i] = T.atomic_add(New, (0, i), B[i])
    Old[1, i] = T.atomic_add(shared, T.cuda.thread_idx(), B[i])
    T.red_add(New, (0, i), B[i])
    New[1, i] = shared[T.cuda.thread_idx()]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_sums_of_floats(device, both, dtype):
    generator = torch.Generator().manual_seed(4)
    a, b = (torch.randn(COUNT, generator=generator, dtype=torch.float64).to(dtype) for _ in range(2))
    old = torch.zeros((2, COUNT), dtype=dtype, device=device)
    new = torch.zeros((2, COUNT), dtype=dtype, device=device)
    both(added, a.to(device), b.to(device), old, new)
    assert torch.equal(old.cpu(), torch.stack([a, a]))
    assert torch.equal(new.cpu(), torch.stack([a + b + b, a + b]))


@warpjit
def contended(Keys, Counts, Least, Tickets):
    """A histogram by way of shared memory, extremes, and tickets: each thread gets another number."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=CTAS, block=BLOCK))
    t = T.cuda.thread_idx()
    i = T.cuda.block_idx() * BLOCK + t
    bins = T.alloc_shared((8,), "int32")
    if t < 8:
        bins[t] = 0
    T.cuda.cta_sync()
    T.red_add(bins, Keys[i] % 8, 1)
    T.cuda.cta_sync()
    if t < 8:
        T.red_add(Counts, t, bins[t])
    T.red_min(Least, 0, Keys[i])
    T.red_max(Least, 1, Keys[i])
    T.red_xor(Least, 2, Keys[i])
    T.red_or(Least, 3, 1 << (Keys[i] % 31))
    T.red_and(Least, 4, Keys[i] | 64)
    ticket = T.atomic_add(Least, 5, 1)
    T.red_add(Tickets, ticket, 1)


def test_many_threads_update_one_element(device, both):
    keys = torch.from_numpy(np.random.default_rng(5).integers(0, 1000, COUNT, dtype=np.int32))
    counts = torch.zeros(8, dtype=torch.int32, device=device)
    least = torch.tensor([10**6, 0, 0, 0, -1, 0], dtype=torch.int32, device=device)
    tickets = torch.zeros(COUNT, dtype=torch.int32, device=device)
    both(contended, keys.to(device), counts, least, tickets)
    values = keys.numpy()
    assert counts.tolist() == np.bincount(values % 8, minlength=8).tolist()
    want = [values.min(), values.max(), np.bitwise_xor.reduce(values), np.bitwise_or.reduce(1 << values % 31)]
    assert least.tolist() == [*want, np.bitwise_and.reduce(values | 64), COUNT]
    assert (tickets == 1).all()


@warpjit
def counted(Total, Sums):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=64, block=256))
    T.red_add(Total, 0, 1)
    T.red_add(Sums, T.cuda.thread_idx() % 5, T.cuda.block_idx())


def test_many_ctas_update_one_element(device, both):
    total = torch.zeros(1, dtype=torch.int64, device=device)
    sums = torch.zeros(5, dtype=torch.float32, device=device)
    both(counted, total, sums)
    assert total.item() == 64 * 256
    assert sums.tolist() == [sum(range(64)) * (52 if i == 0 else 51) for i in range(5)]


@warpjit
def spread(Pairs, Out, Flags, Old):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    words = Pairs.view("uint32")
    T.ptx["red.global.add.noftz.f16x2"](words.ptr(lane % 4), words[lane % 4 + 4], pred=lane < 4)
    T.ptx["red.relaxed.gpu.global.dec.u32"](Flags.ptr(lane), 7)
    Old[lane] = T.ptx["atom.global.inc.u32"](Out.ptr(lane), 10)


def test_the_instructions_by_their_names(device, both):
    pairs = torch.arange(16, device=device).to(torch.float16)
    out = torch.arange(32, dtype=torch.int32, device=device)
    flags = torch.arange(32, dtype=torch.int32, device=device)
    old = torch.zeros(32, dtype=torch.int32, device=device)
    both(spread, pairs, out, flags, old)
    assert old.tolist() == list(range(32)) and out.tolist() == [*range(1, 11), *[0] * 22]
    assert pairs[:8].tolist() == [float(i + i + 8) for i in range(8)]
    assert flags.tolist() == [7, *range(7), *[7] * 24]


@warpjit
def exchanged(Values, Old):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    Old[lane] = T.atomic_exchange(Values, lane, 2.5)
    Old[lane] = Old[lane] + T.atomic_cas(Values, lane, 2.5, lane)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_floats_are_exchanged_by_their_bits(device, both, dtype):
    values = torch.full((32,), -1.0, dtype=dtype, device=device)
    old = torch.zeros(32, dtype=dtype, device=device)
    both(exchanged, values, old)
    assert values.tolist() == list(range(32)) and (old == 1.5).all()


@warpjit
def halves_compared(Values, Old):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    Old[lane] = T.atomic_cas(Values, lane, 1, 5)


@pytest.mark.parametrize("dtype", [torch.int16, torch.float16, torch.bfloat16], ids=str)
def test_16_bits_are_compared_and_swapped(device, both, dtype):
    values = (torch.arange(32, device=device) % 3).to(dtype)
    old = torch.zeros(32, dtype=dtype, device=device)
    both(halves_compared, values, old)
    assert old.tolist() == [i % 3 for i in range(32)] and values.tolist() == [(0, 5, 2)[i % 3] for i in range(32)]


# ---- races ---------------------------------------------------------------------------------------------


@warpjit
def read_too_soon(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    count = T.alloc_shared((1,), "int32")
    if T.cuda.thread_idx() == 0:
        count[0] = 0
    T.cuda.cta_sync()
    T.red_add(count, 0, 1)
    Out[T.cuda.thread_idx()] = count[0]


@warpjit
def begun_too_late(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    count = T.alloc_shared((1,), "int32")
    if T.cuda.thread_idx() == 0:
        count[0] = 0
    T.red_add(count, 0, 1)


@warpjit
def never_begun(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    T.red_add(T.alloc_shared((1,), "int32"), 0, 1)


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (read_too_soon, r"race: the read of count\[0\] and a write of the same bytes by warp"),
        (begun_too_late, r"race: the update of count\[0\] and a write of the same bytes by warp 0"),
        (never_begun, r"use of an unwritten value"),
    ],
    ids=["read", "begun", "unwritten"],
)
def test_races_with_loads_and_stores_are_found(kernel, sentence):
    with pytest.raises(SimulationError, match=sentence):
        kernel(torch.zeros(64, dtype=torch.int32))


# ---- refusals ------------------------------------------------------------------------------------------


def asked(expression):
    """A kernel that evaluates one expression of `lane`, `local` (int32) and Out (float32)."""

    def body(Out):
        T.device_entry(launch=ONE_WARP)
        expression(T.cuda.lane_id(), T.alloc_local((1,), "int32"), Out)

    return body


FOUR = "int32, uint32, int64 or uint64"
WRONG = [
    (
        lambda lane, local, Out: T.atomic_add(local, 0, 1),
        "T.atomic_add: expected a tensor in global or shared memory but got local, which is in registers",
    ),
    (
        lambda lane, local, Out: T.atomic_min(Out, 0, 1.0),
        f"T.atomic_min: expected a tensor of {FOUR}, but Out holds float32",
    ),
    (lambda lane, local, Out: T.red_or(Out, 0, 1), f"T.red_or: expected a tensor of {FOUR}, but Out holds float32"),
    (
        lambda lane, local, Out: T.red_add(Out, 0, 1.0, scope="block"),
        'T.red_add: expected scope to be "cta", "gpu" or "sys" but got str \'block\'',
    ),
    (
        lambda lane, local, Out: T.red_add(Out, (0, 0), 1.0),
        "Out: expected 1 index, one for each axis of shape (64,), but got 2",
    ),
    (lambda lane, local, Out: T.red_add(Out, 0, Out), "T.red_add: expected a number but got the tensor Out"),
    (
        lambda lane, local, Out: T.atomic_exchange(4, 0, 1),
        "T.atomic_exchange: expected a tensor in global or shared memory but got int 4",
    ),
]


@pytest.mark.parametrize(("expression", "sentence"), WRONG, ids=[sentence.split(":")[0] for _, sentence in WRONG])
def test_wrong_arguments(expression, sentence):
    assert [message for message, _ in refused(asked(expression))] == [sentence]


def bfloat(Out):
    T.device_entry(launch=ONE_WARP)
    T.red_add(Out.view("bfloat16"), 0, 1)


def test_bfloat16_needs_sm_90():
    assert [message for message, _ in refused(bfloat, target="sm_89")] == [
        "red.global.add.noftz.bf16 needs sm_90 or later, but the target is sm_89"
    ]


@warpjit
def several(Sums, Halves, Brains):
    """All lanes of two CTAs add to the same few neighbours."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=32))
    lane = T.cuda.lane_id()
    mine, few = T.alloc_local((8,), "float32"), T.alloc_local((2,), "float32")
    for k in range(8):
        mine[k] = T.float32(k + lane % 2)
    few[0], few[1] = 1.0, -1.0
    T.red_add(Sums, (lane % 4, 0), mine)
    T.red_add(Sums, (0, 10), few, scope="cta")
    for A, pair in ((Halves, "float16x2"), (Brains, "bfloat16x2")):
        pairs = T.alloc_local((4,), pair)
        for k in range(4):
            pairs[k] = T.cast(k, pair)
        T.red_add(A.view(pair), (4 * (lane % 2),), pairs)


def test_several_neighbours_in_one_instruction(device, run):
    sums = torch.zeros((4, 12), device=device)
    halves, brains = (torch.zeros(16, dtype=kind, device=device) for kind in (torch.float16, torch.bfloat16))
    run(several, sums, halves, brains)
    row = torch.arange(8.0)
    expected = torch.zeros(4, 12)
    for k in range(4):
        expected[k, :8] = 16 * (row + k % 2)
    expected[0, 10:] = torch.tensor([64.0, -64.0])
    assert torch.equal(sums.cpu(), expected)
    pairs = 32.0 * torch.arange(4.0).repeat_interleave(2).repeat(2)
    assert torch.equal(halves.cpu().float(), pairs) and torch.equal(brains.cpu().float(), pairs)
    text = several.source(sums.cpu(), halves.cpu(), brains.cpu(), target="sm_90a")
    counts = [text.count(f"red{form}") for form in (".global.add.v4.f32", ".relaxed.cta.global.add.v2.f32")]
    counts += [text.count(f".add.noftz.v4.{form}") for form in ("f16x2", "bf16x2")]
    assert counts == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            lambda Out: T.red_add(T.alloc_shared((8,)), 0, T.alloc_local((2,))),
            "T.red_add: value: expected a number, since only float32 and pairs in global memory take several at once, "
            "but got local for shared, shared memory of float32",
        ),
        (
            lambda Out: T.red_add(Out, 0, T.alloc_local((3,))),
            "T.red_add: value: expected a local tensor of float32 with one axis of an even number of elements but got "
            "local of float32, shape (3,)",
        ),
        (
            lambda Out: T.red_add(Out, T.cuda.lane_id(), T.alloc_local((2,), "int32")),
            "T.red_add: value: expected a local tensor of float32 with one axis of an even number of elements but got "
            "local of int32, shape (2,)",
        ),
    ],
)
def test_what_takes_one_number_only(body, sentence):
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        body(Out)

    assert [message for message, _ in refused(kernel)] == [sentence]
