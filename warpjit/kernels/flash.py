"""The kernel behind `attention`: softmax(q @ k.T · scale) @ v without the matrix of scores in memory.

A CTA has some rows of queries and walks along the keys: scores by mma.sync from keys that cp.async brings to a ring of
swizzled stages, the softmax of what has been seen so far in base 2, and the weights, as they lie in registers, as the
next product's operand. Which tiles a call gets, and how arguments become the kernel's, is `attention`'s.

Techniques (common knowledge of the field): Dao, "FlashAttention-2" (2023); Milakov and Gimelshein, "Online normalizer
calculation for softmax" (2018).
"""

# A tensor's annotation is a call, and what a helper takes is known when it is traced.
# mypy: disable-error-code="valid-type, no-untyped-def, no-untyped-call, assignment"

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from warpjit.decorator import warpjit
from warpjit.errors import ArgumentError
from warpjit.frontend import language as T
from warpjit.kernel import Kernel
from warpjit.kernels.gemm import copy_fragment, rows_of

COPY = T.ptx["cp.async.cg.shared.global.L2::128B"]
EXP2 = T.ptx["ex2.approx.ftz.f32"]
"""Weights below 2**-126 are 0: no float16 or bfloat16 product would show them."""
LN2 = math.log(2.0)
SLACK = 8.0
"""Weights may grow to 2**8 before all sums are scaled anew: as exact, and hardly ever needed."""


@dataclass(frozen=True)
class Tile:
    """What a CTA does: `rows` queries, `keys` of them at a time, by `warps` warps that share the rows.

    stages  pairs of blocks of keys and values in shared memory, of which all but one are under way
    held    how many steps of 16 along the head dimension of the queries stay in registers; others are loaded each time
    ctas    that are to run on a multiprocessor together: what they may have of its registers
    """

    rows: int
    keys: int
    warps: int
    stages: int = 2
    held: int = 0
    ctas: int = 1

    def __post_init__(self) -> None:
        sizes = (self.rows, self.keys, self.warps, self.stages, self.ctas)
        if not all(type(each) is int and each > 0 for each in sizes) or type(self.held) is not int or self.held < 0:
            raise ArgumentError(f"{self}: expected positive ints, and held of 0 or more")
        if self.rows % (16 * self.warps) or self.keys % 16 or self.stages < 2 or self.warps > 32:
            raise ArgumentError(
                f"{self}: expected rows that are a multiple of 16 for each warp, keys of a multiple of 16, 2 stages or "
                "more, at most 32 warps"
            )

    def shared_bytes(self, dim: int) -> int:
        """Of queries (later results), keys and values, 16 bits each."""
        return (self.rows + 2 * self.stages * self.keys) * dim * 2


@dataclass(frozen=True)
class Case:
    """What attention is compiled for besides data types.

    dim     the head dimension
    whole   whether the keys are a multiple of the tile's, so that no block is cut
    width   bytes of an access to the result that alignment allows: 16, or one element's
    """

    tile: Tile
    dim: int
    causal: bool
    whole: bool = False
    width: int = 16


@functools.cache
def flash(case: Case) -> Kernel:
    """Out = softmax(Q @ K.T · scale) @ V for each batch and head, and the logarithms of the sums that divide."""
    tile, dim, causal = case.tile, case.dim, case.causal
    BATCH, HEADS, GROUPS, M = (T.dynamic(name) for name in ("batch", "heads", "groups", "m"))
    N = T.dynamic("n", multiple_of=tile.keys if case.whole else 1)
    part = tile.rows // tile.warps
    mi, ni, di = part // 16, tile.keys // 8, dim // 8
    # Steps that are 64 elements apart, a swizzled row, have the same addresses but for a constant: one after the other.
    steps = tuple(sorted(range(dim // 16), key=lambda step: (step % 4, step)))

    # Sums and scores are 192 of 255 registers: some cases keep an address in local memory, outside of the products.
    @warpjit(strict=False)
    def flash(
        Q: T.Tensor((BATCH, HEADS, M, dim)),
        K: T.Tensor((BATCH, GROUPS, N, dim)),
        V: T.Tensor((BATCH, GROUPS, N, dim)),
        Out: T.Tensor((BATCH, HEADS, M, dim)),
        Lse: T.Tensor((BATCH, HEADS, M), "float32"),  # or None
        scale: T.float32,  # of scores, to base 2
    ):
        blocks, heads_a_group = T.cdiv(M, tile.rows), HEADS // T.max(GROUPS, 1)
        T.device_entry(
            launch=T.cuda.LaunchConfig(grid=blocks * HEADS * BATCH, block=32 * tile.warps),
            attributes=T.cuda.KernelAttributes(min_blocks_per_sm=tile.ctas),
        )
        index = T.cuda.block_idx()
        block, head, batch = index % blocks, index // blocks % HEADS, index // blocks // HEADS
        q0 = (blocks - 1 - block if causal else block) * tile.rows  # causal: those that see most first
        first = T.cuda.warp_id() * part
        group = head // heads_a_group
        queries, result = Q.sub[batch, head], Out.sub[batch, head]
        keys, values = K.sub[batch, group], V.sub[batch, group]

        q_shape, kv_shape = (tile.rows, dim), (tile.stages, tile.keys, dim)
        q = T.alloc_shared(q_shape, Q.dtype, layout=rows_of(Q.dtype, q_shape), align=1024)
        k = T.alloc_shared(kv_shape, Q.dtype, layout=rows_of(Q.dtype, kv_shape), align=1024)
        v = T.alloc_shared(kv_shape, Q.dtype, layout=rows_of(Q.dtype, kv_shape), align=1024)

        # Row i sees the keys before i + reach: all, or those up to the one that is as far from the end as i is.
        reach = N - M + 1 if causal else N
        full, total = N // tile.keys, T.cdiv(N, tile.keys)
        if causal:
            full = T.min(full, T.max(q0 + reach, 0) // tile.keys)
            total = T.min(total, T.cdiv(T.max(T.min(q0 + tile.rows, M) - 1 + reach, 0), tile.keys))

        def fetch(j, stage):
            """Begin to copy a block of keys and values; past the last one only the group is closed."""
            if j < total:
                j0 = j * tile.keys
                copy_rows(k.sub[stage], keys, j0, None if case.whole else N - j0)
                copy_rows(v.sub[stage], values, j0, None if case.whole else N - j0)
            T.ptx["cp.async.commit_group"]()

        kind = "bf16" if Q.dtype == T.bfloat16 else "f16"
        mma = T.ptx[f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32"]
        sums = T.cuda.fragments(mma, "D", M=mi, N=di, fill=0.0)
        held = T.cuda.fragments(mma, "A", M=mi, K=max(tile.held, 1))
        # Of each row that this lane has a part of: what is subtracted from scores, and its part of the sum of weights.
        shift, weight = T.alloc_local((2 * mi,), "float32"), T.alloc_local((2 * mi,), "float32")
        shift.fill(-math.inf)
        weight.fill(0.0)

        def load_query(step, fragment):
            copy_fragment(fragment, q, False, first, part, 16 * step)

        def attend(j, stage, masked):
            """Take a block of keys into the sums."""
            scores = T.cuda.fragments(mma, "D", M=mi, N=ni, fill=0.0)
            for step in steps:
                if step < tile.held:
                    rows = held.sub[:, step : step + 1]
                else:
                    rows = T.cuda.fragments(mma, "A", M=mi)
                    load_query(step, rows)
                columns = T.cuda.fragments(mma, "B", N=ni)
                copy_fragment(columns, k.sub[stage], False, 0, tile.keys, 16 * step)
                T.cuda.tile.apply(mma, scores, rows, columns, scores)
            if masked:
                for register, row, column in scores.each():
                    if j * tile.keys + column >= (q0 + first + row + reach if causal else reach):
                        scores.regs[register] = -math.inf
            settle(scores, sums, shift, weight, scale)
            for step in T.unroll(tile.keys // 16):
                columns = T.cuda.fragments(mma, "B", N=di)
                copy_fragment(columns, v.sub[stage], True, 0, dim, 16 * step)
                some = scores.sub[:, 2 * step : 2 * step + 2]
                weigh(some, shift, weight, scale)
                T.cuda.tile.apply(mma, sums, some.cast(Q.dtype).as_operand(mma, "A"), columns, sums)

        copy_rows(q, queries, q0, M - q0)
        for j in T.unroll(tile.stages - 1):
            fetch(j, j)

        def arrive():
            """Wait for the oldest block under way; all warps have left the one before."""
            T.ptx["cp.async.wait_group"](tile.stages - 2)
            T.cuda.cta_sync()

        if tile.held:
            arrive()
            for step in T.unroll(tile.held):
                load_query(step, held.sub[:, step : step + 1])
        stage = 0
        for j in range(full):
            arrive()
            fetch(j + tile.stages - 1, stage - 1 if stage > 0 else tile.stages - 1)
            attend(j, stage, False)
            stage = stage + 1 if stage + 1 < tile.stages else 0
        if causal or not case.whole:
            for j in range(full, total):
                arrive()
                fetch(j + tile.stages - 1, stage - 1 if stage > 0 else tile.stages - 1)
                if not causal or j * tile.keys < q0 + first + part - 1 + reach:  # else the warp sees nothing of it
                    attend(j, stage, True)
                stage = stage + 1 if stage + 1 < tile.stages else 0
        T.ptx["cp.async.wait_all"]()

        # Each warp's rows of queries become its rows of results.
        for i in T.unroll(2 * mi):
            logarithm = divide(row_of(sums, i).regs, shift[i], weight[i])
            if Lse is not None:
                for _, row, column in row_of(sums, i)[:, 0:1].each():
                    at = q0 + first + 8 * i + row
                    if column == 0 and at < M:
                        Lse[batch, head, at] = logarithm
        T.cuda.cta_sync()
        i = q0 + first
        store_rows(result[i : i + part, 0:dim], sums, q[first : first + part, 0:dim], case.width, M - i)

    return flash


def copy_rows(target, source, start, left):
    """Begin to copy rows to shared memory; of those that exist `left` are left, others become 0."""
    window = source[start : start + target.shape[0], 0 : target.shape[1]]
    T.cuda.tile.apply(COPY, target, window, scope="cta", size=16, valid=(left, None))


def store_rows(target, sums, box, width, left):
    """A warp's results by way of a box in shared memory to wide stores; of its rows `left` exist."""
    words, places = sums.cast(box.dtype).view("uint32"), box.view("uint32")
    for register, row, column in words.each():
        places[row, column] = words.regs[register]
    T.cuda.warp_sync()
    T.copy(target, box, scope="warp", width=width, valid=(left, None))


def row_of(fragment, i):
    """The i-th eight rows of a warp's fragment, of which a lane has a part of one."""
    return fragment.sub[i // 2 : i // 2 + 1, :, i % 2 * 8 : i % 2 * 8 + 8]


def settle(scores, sums, shift, weight, scale):
    """Make each row's shift its largest score so far, or less by at most `SLACK`.

    Sums and weights are scaled anew only where a row of the warp has grown beyond.
    """
    tops = T.alloc_local(shift.shape, "float32")
    grown = False
    for i in T.unroll(shift.shape[0]):
        mine = row_of(scores, i).regs
        top = mine[0]
        for register in T.unroll(1, mine.shape[0]):
            top = T.max(top, mine[register])
        tops[i] = T.cuda.warp_max(top, width=4) * scale
        grown = grown or tops[i] > shift[i] + SLACK
    if T.cuda.any(grown):
        for i in T.unroll(shift.shape[0]):
            top = T.max(shift[i], tops[i])
            shrink = EXP2(shift[i] - finite(top))
            shift[i] = top
            weight[i] = weight[i] * shrink
            kept = row_of(sums, i).regs
            for register in T.unroll(kept.shape[0]):
                kept[register] = kept[register] * shrink


def weigh(scores, shift, weight, scale):
    """Scores become weights, 2 ** (score · scale - shift), and are added to `weight`."""
    for i in T.unroll(shift.shape[0]):
        mine, less = row_of(scores, i).regs, finite(shift[i])
        for register in T.unroll(mine.shape[0]):
            mine[register] = EXP2(mine[register] * scale - less)
            weight[i] = weight[i] + mine[register]


def finite(shift):
    """Where no key has been seen, all scores are -inf: their weights are 0, whatever is subtracted."""
    return 0.0 if shift == -math.inf else shift


def divide(sums, shift, weight):
    """A row's sums become results; gives the natural logarithm of what divided them, by the scores as they were."""
    whole = T.cuda.warp_sum(weight, width=4)
    share = 0.0 if whole == 0.0 else T.approx.rcp(whole)
    for register in T.unroll(sums.shape[0]):
        sums[register] = sums[register] * share
    return -math.inf if whole == 0.0 else (shift + T.approx.log2(whole)) * LN2
