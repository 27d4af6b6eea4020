"""The kernel behind `matmul` and `matmul_int8`: C = A @ B.T of 16-bit floats, or of int8, for every shape and epilogue.

A ring of swizzled stages that cp.async fills, fragments that are loaded one step ahead of the products, the result
through shared memory to wide stores. Pairs of int8 take the places of 16-bit floats all the way to the matrix
instruction. Which tiles a shape gets, and how arguments become the kernel's, is the business of those who call.

Techniques (common knowledge of the field): multistage cp.async and register double buffering as in the sm_80 main loop
of NVIDIA's CUTLASS; CTAs in groups of rows, so that those which run together share slices in the L2 cache.
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

STMATRIX = T.ptx["stmatrix.sync.aligned.m8n8.x4.shared.b16"]


@dataclass(frozen=True)
class Tile:
    """What a CTA computes: `m` x `n` results, `k` deep at a time, by warps of `warp_m` x `warp_n`.

    k       in elements of 16 bits; of int8 twice as many
    stages  slices of A and B in shared memory, of which all but one are under way
    group   CTAs that are next to each other in time cover so many tiles along m
    """

    m: int
    n: int
    k: int
    warp_m: int
    warp_n: int
    stages: int
    group: int = 8

    def __post_init__(self) -> None:
        sizes = (self.m, self.n, self.k, self.warp_m, self.warp_n, self.stages, self.group)
        if not all(type(each) is int and each > 0 for each in sizes):
            raise ArgumentError(f"{self}: expected positive ints")
        whole = self.m % self.warp_m == self.n % self.warp_n == self.warp_m % 16 == self.warp_n % 16 == self.k % 32 == 0
        if not whole or self.stages < 2 or self.warps > 32:
            raise ArgumentError(
                f"{self}: expected m and n that the warps' parts divide, of multiples of 16, at most 32 warps, k a "
                "multiple of 32, and 2 stages or more"
            )

    @property
    def warps(self) -> int:
        return self.m // self.warp_m * (self.n // self.warp_n)

    @property
    def shared_bytes(self) -> int:
        """Of the stages, or of float32 results where these take more."""
        return max(self.stages * (self.m + self.n) * self.k * 2, self.m * self.n * 4)


@dataclass(frozen=True)
class Case:
    """What a product is compiled for besides data types.

    multiples  of m, n and k; those that are multiples of the tile's need no masks
    turned     of A and B: whether the index that is contiguous in memory is not k (16-bit elements only)
    widths     bytes of an access to A, B and the result that alignment allows: 16, 4, or those of one element
    batched    whether there is a leading index of batches
    operands   of each operand of the epilogue: whether it is a matrix for each batch
    size       bytes of an element of A and B: 2, or 1 for int8
    """

    tile: Tile
    multiples: tuple[int, int, int]
    turned: tuple[bool, bool] = (False, False)
    widths: tuple[int, int, int] = (16, 16, 16)
    batched: bool = False
    operands: tuple[bool, ...] = ()
    size: int = 2

    @property
    def depth(self) -> int:
        """The tile's k, in elements."""
        return self.tile.k * 2 // self.size

    @property
    def masked(self) -> tuple[bool, bool, bool]:
        """Whether the last tile along m, n and k may be cut."""
        m, n, k = self.multiples
        return bool(m % self.tile.m), bool(n % self.tile.n), bool(k % self.depth)


@functools.cache
def gemm(case: Case) -> Kernel:
    """C = A @ B.T for A of (m, k) and B of (n, k), each of them stored in this order or turned."""
    tile, deep, (a_turned, b_turned), (a_width, b_width, c_width) = case.tile, case.depth, case.turned, case.widths
    m_masked, n_masked, k_masked = case.masked
    batches = (T.dynamic("batch"),) if case.batched else ()
    M, N, K = (T.dynamic(name, multiple_of=size) for name, size in zip("mnk", case.multiples, strict=True))

    # Not strict: a product that some compiler spills a register of is slower, not wrong; tests hold large tiles to it.
    @warpjit
    def gemm(
        A: T.Tensor((*batches, *((K, M) if a_turned else (M, K)))),
        B: T.Tensor((*batches, *((K, N) if b_turned else (N, K)))),
        C: T.Tensor((*batches, M, N)),
        operands,
        *,
        epilogue,
    ):
        rows, columns = T.cdiv(M, tile.m), T.cdiv(N, tile.n)
        T.device_entry(launch=T.cuda.LaunchConfig(grid=(rows * columns, *batches), block=32 * tile.warps))

        # Which tile: CTAs walk down `group` rows of tiles before they go on to the next column.
        index = T.cuda.block_idx()
        first = index // (tile.group * columns) * tile.group
        height = T.min(rows - first, tile.group)
        inside = index % (tile.group * columns)
        m0, n0 = (first + inside % height) * tile.m, inside // height * tile.n
        warp = T.cuda.warp_id()
        wm, wn = warp % (tile.m // tile.warp_m) * tile.warp_m, warp // (tile.m // tile.warp_m) * tile.warp_n

        batch = (T.cuda.block_idx("y"),) if case.batched else ()
        left, right, result = A.sub[batch], B.sub[batch], C.sub[batch]

        # Stages and results share one arena.
        arena = T.alloc_shared((tile.shared_bytes,), "uint8", align=1024)
        a_shape = (tile.stages, *((deep, tile.m) if a_turned else (tile.m, deep)))
        b_shape = (tile.stages, *((deep, tile.n) if b_turned else (tile.n, deep)))
        split, end = tile.stages * tile.m * tile.k * 2, tile.stages * (tile.m + tile.n) * tile.k * 2
        a = arena[0:split].view(A.dtype).view(*a_shape, layout=rows_of(A.dtype, a_shape))
        b = arena[split:end].view(B.dtype).view(*b_shape, layout=rows_of(B.dtype, b_shape))

        def fetch(depth, stage):
            """Begin to copy a slice of A and of B; past the last one only the group is closed."""
            if depth < T.cdiv(K, deep):
                k = depth * deep
                rest = K - k if k_masked else None
                copy_in(a.sub[stage], left, a_turned, m0, M - m0 if m_masked else None, k, rest, a_width)
                copy_in(b.sub[stage], right, b_turned, n0, N - n0 if n_masked else None, k, rest, b_width)
            T.ptx["cp.async.commit_group"]()

        mma = T.ptx[instruction(A.dtype)]
        mi, ni, steps = tile.warp_m // 16, tile.warp_n // 8, tile.k // 16
        total = T.cuda.fragments(mma, "D", M=mi, N=ni, fill=0)
        af = T.cuda.fragments(mma, "A", M=mi), T.cuda.fragments(mma, "A", M=mi)
        bf = T.cuda.fragments(mma, "B", N=ni), T.cuda.fragments(mma, "B", N=ni)

        def load(buffer, stage, step):
            copy_fragment(af[buffer], a.view("uint16").sub[stage], a_turned, wm, tile.warp_m, 16 * step)
            copy_fragment(bf[buffer], b.view("uint16").sub[stage], b_turned, wn, tile.warp_n, 16 * step)

        for depth in T.unroll(tile.stages - 1):
            fetch(depth, depth)
        T.ptx["cp.async.wait_group"](tile.stages - 2)
        T.cuda.cta_sync()
        load(0, 0, 0)
        full, free = 0, tile.stages - 1
        for depth in range(T.cdiv(K, deep)):
            for step in T.unroll(steps):
                if step == steps - 1:
                    T.ptx["cp.async.wait_group"](tile.stages - 2)
                    T.cuda.cta_sync()
                    full = full + 1 if full + 1 < tile.stages else 0
                load((step + 1) % 2, full, (step + 1) % steps)
                if step == 0:
                    fetch(depth + tile.stages - 1, free)
                    free = free + 1 if free + 1 < tile.stages else 0
                T.cuda.tile.apply(mma, total, af[step % 2], bf[step % 2], total)

        sums = total.cast("float32") if epilogue is not None and A.dtype == T.int8 else total
        if epilogue is not None:
            extra = ()
            for operand, each_batch in zip(operands, case.operands, strict=True):
                extra = (*extra, operand.sub[batch] if each_batch else operand)
            for register, row, column in sums.each():
                i, j = m0 + wm + row, n0 + wn + column
                if (not m_masked or i < M) and (not n_masked or j < N):
                    sums.regs[register] = epilogue(sums.regs[register], i, j, *extra)

        # Each warp turns its results into rows in shared memory, and stores these.
        T.ptx["cp.async.wait_all"]()
        T.cuda.cta_sync()
        results = sums.cast(C.dtype)
        box_shape = (tile.warps, tile.warp_m, tile.warp_n)
        box = arena[0 : tile.m * tile.n * C.dtype.bits // 8].view(C.dtype)
        box = box.view(*box_shape, layout=rows_of(C.dtype, box_shape)).sub[warp]
        if C.dtype.bits == 16 and T.cuda.has(STMATRIX):
            T.cuda.tile.apply(STMATRIX, box, results)
        else:
            words, targets = results.view("uint32"), box.view("uint32")
            for register, row, column in words.each():
                targets[row, column] = words.regs[register]
        T.cuda.warp_sync()
        i, j = m0 + wm, n0 + wn
        exists = (M - i if m_masked else None, N - j if n_masked else None)
        T.copy(result[i : i + tile.warp_m, j : j + tile.warp_n], box, scope="warp", width=c_width, valid=exists)

    return gemm


def instruction(dtype):
    """The matrix instruction for elements of a type."""
    if dtype == T.int8:
        return "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
    kind = "bf16" if dtype == T.bfloat16 else "f16"
    return f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32"


def rows_of(dtype, shape):
    """The layout of rows in shared memory that ldmatrix, stmatrix and wide accesses meet without bank conflicts."""
    return T.cuda.layout.mma_shared_layout(dtype.dtype, math.gcd(shape[-1] * dtype.bits // 8, 128), shape)


def copy_in(stage, source, turned, row, rows_left, k, k_left, width):
    """A slice of a matrix into a stage; what lies outside of the matrix becomes 0."""
    i, j = (k, row) if turned else (row, k)
    window = source[i : i + stage.shape[0], j : j + stage.shape[1]]
    exists = (k_left, rows_left) if turned else (rows_left, k_left)
    if width < 4:
        T.copy(stage, window, width=width, valid=exists)
    else:
        cache = "cg" if width == 16 else "ca"
        copy = T.ptx[f"cp.async.{cache}.shared.global.L2::128B"]
        T.cuda.tile.apply(copy, stage, window, scope="cta", size=width, valid=exists)


def copy_fragment(fragment, stage, turned, row, rows, k):
    """`rows` rows, 16 words of 16 bits deep, of a stage into registers."""
    if turned:
        tile = stage[k : k + 16, row : row + rows].permute(1, 0)
        T.cuda.tile.apply(T.ptx["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"], fragment, tile)
    else:
        tile = stage[row : row + rows, k : k + 16]
        T.cuda.tile.apply(T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"], fragment, tile)
