"""The kernel behind `w4a16`: x @ W.T of 16-bit x and weights W of 4 bits, which become 16-bit numbers in the registers
of the matrix instruction.

Weights are operand A, whose rows are 16, and x is B, whose rows are 8: little is wasted where x has few rows. A lane
reads 16 bytes of weights at a time, several reads ahead, straight into its registers; x goes through a ring of stages
in shared memory. A weight enters the products as q - zero, which is exact; the sum over a group is scaled in float32.
Warps share the columns among themselves, and add up what they found at the end, in a fixed order; where W has few rows,
CTAs do so too, through a workspace, and a second kernel adds. So results are the same bits each time.

Which tiles a product gets, and how arguments become the kernel's, is `w4a16`'s; how weights are packed `w4a16_pack`'s.
"""

# A tensor's annotation is a call, and what a helper takes is known when it is traced.
# mypy: disable-error-code="valid-type, no-untyped-def, no-untyped-call, assignment"

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

from warpjit.decorator import warpjit
from warpjit.errors import ArgumentError
from warpjit.frontend import language as T
from warpjit.isa import holds
from warpjit.kernel import Kernel
from warpjit.kernels.gemm import copy_in, rows_of
from warpjit.kernels.w4a16_pack import DEPTH, PANEL, Half

LDMATRIX = T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"]
AND_OR = 0xF0 & 0xCC | 0xAA
"""The table of a & b | c."""


@dataclass(frozen=True)
class Tile:
    """What a CTA computes: `m` rows of x by `n` rows of W.

    blocks   of 16 rows of W, of a warp
    warps_n  warps along the rows of W
    warps_k  warps along the columns, each 128 columns between two barriers
    stages   slices of x, of which all but one are under way, and of weights, of which all are
    splits   CTAs along the columns
    """

    m: int
    blocks: int
    warps_n: int
    warps_k: int
    stages: int = 3
    splits: int = 1

    def __post_init__(self) -> None:
        sizes = (self.m, self.blocks, self.warps_n, self.warps_k, self.stages, self.splits)
        if not all(type(each) is int and each > 0 for each in sizes) or self.stages < 2 or self.warps > 32:
            raise ArgumentError(f"{self}: expected positive ints, 2 stages or more, and at most 32 warps")
        if (self.m > 8 and self.m % self.columns) or self.m % 8 or (PANEL % self.n and self.n % PANEL):
            raise ArgumentError(
                f"{self}: expected m of 8, 16, or a multiple of 32, and n that divides {PANEL} or its multiple"
            )

    @property
    def warps(self) -> int:
        return self.warps_n * self.warps_k

    @property
    def n(self) -> int:
        return 16 * self.blocks * self.warps_n

    @property
    def k(self) -> int:
        return DEPTH * self.warps_k

    @property
    def columns(self) -> int:
        """Rows of x, columns of the products, whose sums over a group are in registers at a time."""
        return min(self.m, 32)

    @property
    def shared_bytes(self) -> int:
        """Of the stages, or of the sums of all warps where these take more."""
        return max(self.stages * self.m * self.k * 2, self.warps_k * self.m * (self.n + 4) * 4)


@dataclass(frozen=True)
class Case:
    """What a product is compiled for: scales for `group` columns, a type, and n a multiple of `n`."""

    tile: Tile
    group: int
    half: Half
    n: int


@functools.cache
def product(case: Case) -> Kernel:
    """Out[split] = x @ W.T over the split's columns."""
    tile, half, blocks, columns = case.tile, case.half, case.tile.blocks, case.tile.columns // 8
    M, N, K = T.dynamic("m"), T.dynamic("n", multiple_of=case.n), T.dynamic("k", multiple_of=8)
    P, D, G = T.dynamic("panels"), T.dynamic("depths"), T.dynamic("groups")
    mma = T.ptx[half.mma]
    pair: Any = T.float16x2 if half.ptx == "f16" else T.bfloat16x2
    # Groups of 128 columns; of the 16 columns of an instruction, how many a group has, and how many ldmatrix loads.
    parts, atoms = max(1, DEPTH // case.group), 2 if tile.m == 8 else 1
    steps = DEPTH // parts // 16
    # Which of 8 rows registers of A and D are in, the lower ones of an instruction's 16 or the upper ones.
    a_rows, d_rows = (tuple(holds(half.mma, name, 0, each)[0].element[0] // 8 for each in range(4)) for name in "AD")

    @warpjit
    def w4a16(
        X: T.Tensor((M, K), half.name),
        Words: T.Tensor((P, D, 4, 2, 32, 4), "int32", layout="default"),
        Factors: T.Tensor((P, G, 8, 8), "int32", layout="default"),
        Out: T.Tensor((tile.splits, M, N)),
    ):
        turns = T.cdiv(T.cdiv(D, tile.warps_k), tile.splits)
        grid = (T.cdiv(N, tile.n), T.cdiv(M, tile.m), tile.splits)
        T.device_entry(launch=T.cuda.LaunchConfig(grid=grid, block=32 * tile.warps))

        n0, m0, split = T.cuda.block_idx("x") * tile.n, T.cuda.block_idx("y") * tile.m, T.cuda.block_idx("z")
        warp, lane = T.cuda.warp_id(), T.cuda.lane_id()
        wn, wk = warp % tile.warps_n * blocks, warp // tile.warps_n
        # Beyond the last panel it is read again, and nothing is stored.
        panel, b0 = T.min((n0 // 16 + wn) // 4, P - 1), (n0 // 16 + wn) % 4
        arena = T.alloc_shared((tile.shared_bytes,), "uint8", align=1024)
        shape = (tile.stages, tile.m, tile.k)
        x = arena[0 : 2 * math.prod(shape)].view(X.dtype).view(*shape, layout=rows_of(X.dtype, shape))
        words = T.alloc_local((tile.stages, blocks, 8), "uint32")
        factors = T.alloc_local((tile.stages, parts, blocks, 2), pair)
        total = T.cuda.fragments(mma, "D", M=blocks, N=tile.m // 8, fill=0.0)
        line = min([row for _, row, _ in total[0:1, 0:1].each()])  # a lane's rows are this one and 8 below

        def fetch_x(turn, stage):
            """Begin to copy a slice of x; past the last one only the group is closed."""
            k = (split * turns + turn) * tile.k
            if turn < turns:
                copy_in(x.sub[stage], X, False, m0, M - m0, k, K - k, 16)
            T.ptx["cp.async.commit_group"]()

        def fetch_weights(turn, stage):
            """Begin to read this warp's weights and factors; zeros past the last."""
            depth = (split * turns + turn) * tile.warps_k + wk
            group, exists = depth * DEPTH // case.group, turn < turns and depth < D
            window = Words[panel : panel + 1, depth : depth + 1, b0 : b0 + blocks, 0:2, lane : lane + 1, 0:4]
            read = T.load(window, width=16, where=exists).view("uint32")
            window = Factors[panel : panel + 1, group : group + parts, line : line + 1, 2 * b0 : 2 * b0 + 2 * blocks]
            both = T.load(window, where=exists).view(pair)
            for each in T.unroll(8 * blocks):
                words.sub[stage].regs[each] = read.regs[each]
            for each in T.unroll(2 * parts * blocks):
                factors.sub[stage].regs[each] = both.regs[each]

        def add_group(stage, part):
            """The products of 128 columns of this warp, or of a group of them, scaled and added to `total`."""
            weights = T.cuda.fragments(mma, "A", M=blocks, K=steps, dtype=pair)
            for m in T.unroll(0, tile.m, tile.columns):
                sums = T.cuda.fragments(mma, "D", M=blocks, N=columns, fill=0.0)
                for step in T.unroll(0, steps, atoms):
                    for block in T.unroll(blocks if m == 0 else 0):
                        for each in T.unroll(step, step + atoms):
                            word = words[stage, block, part * steps + each]
                            spread(weights.sub[block, each], word, factors.sub[stage, part, block], half, pair, a_rows)
                    right = T.cuda.fragments(mma, "B", N=columns, K=atoms)
                    k = wk * DEPTH + 16 * (part * steps + step)
                    T.cuda.tile.apply(LDMATRIX, right, x[stage, m : m + tile.columns, k : k + 16 * atoms])
                    T.cuda.tile.apply(mma, sums, weights[:, step : step + atoms], right, sums)
                for block in T.unroll(blocks):
                    for column in T.unroll(columns):
                        target, more = total.sub[block, m // 8 + column], sums.sub[block, column]
                        for each in T.unroll(4):
                            scale = T.float32(factors[stage, part, block, d_rows[each]][0])
                            target.regs[each] = T.fma(scale, more.regs[each], target.regs[each])

        for stage in T.unroll(tile.stages):
            fetch_weights(stage, stage)
        for stage in T.unroll(tile.stages - 1):
            fetch_x(stage, stage)
        for turn, stage in T.range(turns, unroll=tile.stages):
            T.ptx["cp.async.wait_group"](tile.stages - 2)
            T.cuda.cta_sync()
            fetch_x(turn + tile.stages - 1, (stage + tile.stages - 1) % tile.stages)
            for part in T.unroll(parts):
                add_group(stage, part)
            fetch_weights(turn + tile.stages, stage)

        # The warps' sums meet in shared memory, in rows of the result; four more columns keep banks apart.
        T.ptx["cp.async.wait_all"]()
        T.cuda.cta_sync()
        shape = (tile.warps_k, tile.m, tile.n + 4)
        box = arena[0 : 4 * math.prod(shape)].view("float32").view(*shape)
        for register, row, column in total.each():
            box[wk, column, 16 * wn + row] = total.regs[register]
        T.cuda.cta_sync()
        for chunk in range(T.cuda.thread_idx(), tile.m * tile.n // 4, 32 * tile.warps):
            i, j = chunk // (tile.n // 4), chunk % (tile.n // 4) * 4
            result = T.alloc_local((1, 4), Out.dtype)
            for each in T.unroll(4):
                value = box[0, i, j + each]
                for other in T.unroll(1, tile.warps_k):
                    value = value + box[other, i, j + each]
                result[0, each] = value
            row, column = m0 + i, n0 + j
            if case.n % 4 == 0:
                T.store(Out[split, row : row + 1, column : column + 4], result, where=row < M and column < N)
            else:
                for each in T.unroll(4):
                    if row < M and column + each < N:
                        Out[split, row, column + each] = result[0, each]

    return w4a16


def spread(weights, word, factors, half, pair, rows):
    """The 8 nibbles of a word as numbers q - zero in the registers of one instruction.

    A mask leaves nibbles in the fraction of 2 ** fraction, which then reads as 2 ** fraction + q; float16 has room for
    two, of which the upper reads as 2 ** 10 + 16 * q.
    """
    reach = half.fraction // 4
    for register in T.unroll(4):
        place = register % reach
        bits = T.lop3(word >> 4 * (register - place), 0x000F000F << 4 * place, 0x10001 * half.power, AND_OR)
        raised, zero = T.reinterpret(bits, pair), pair(factors[rows[register]][1])
        if place == 0:
            weights.regs[register] = raised + zero
        else:
            weights.regs[register] = T.fma(raised, 0.0625, zero + 2.0**half.fraction * 0.9375)


@warpjit
def add_splits(Parts: T.Tensor(("splits", T.dynamic("size")), "float32"), Out: T.Tensor((T.dynamic("size"),))):
    """The sums of all CTAs along the columns, in their order."""
    size = Out.shape[0]
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(size, 256), block=256))
    at = 256 * T.cuda.block_idx() + T.cuda.thread_idx()
    if at < size:
        total = Parts[0, at]
        for split in T.unroll(1, Parts.shape[0]):
            total = total + Parts[split, at]
        Out[at] = total
