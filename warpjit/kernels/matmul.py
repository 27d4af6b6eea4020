"""Matrix products of float16 and bfloat16: `matmul(a, b, out=None, *, epilogue=None, operands=())`.

One program for every shape, order and epilogue: a ring of swizzled stages that cp.async fills, fragments that are
loaded one step ahead of the products, the result through shared memory to wide stores. Which tiles a shape gets, and
how arguments become the kernel's, is at the end.

Techniques (each the field's common knowledge; figures in bench/): multistage cp.async and register double buffering as
in NVIDIA's CUTLASS (sm_80 multistage mainloop), CTAs in groups of rows for reuse in the L2 cache.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warpjit.decorator import warpjit
from warpjit.errors import ArgumentError
from warpjit.frontend import language as T
from warpjit.kernel import Kernel, cpu_target

RESERVED = 1024  # bytes of shared memory that the system takes of each CTA (CUDA C++ Programming Guide)
STMATRIX = T.ptx["stmatrix.sync.aligned.m8n8.x4.shared.b16"]


@dataclass(frozen=True)
class Tile:
    """What a CTA computes: `m` x `n` results, `k` deep at a time, by warps of `warp_m` x `warp_n`.

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
    turned     of A and B: whether the index that is contiguous in memory is not k
    widths     bytes of an access to A, B and the result that alignment allows: 16, 4, or those of one element
    batched    whether there is a leading index of batches
    operands   of each operand of the epilogue: whether it is a matrix for each batch
    """

    tile: Tile
    multiples: tuple[int, int, int]
    turned: tuple[bool, bool] = (False, False)
    widths: tuple[int, int, int] = (16, 16, 16)
    batched: bool = False
    operands: tuple[bool, ...] = ()

    @property
    def masked(self) -> tuple[bool, bool, bool]:
        """Whether the last tile along m, n and k may be cut."""
        m, n, k = self.multiples
        return bool(m % self.tile.m), bool(n % self.tile.n), bool(k % self.tile.k)


@functools.cache
def gemm(case: Case) -> Kernel:
    """C = A @ B.T for A of (m, k) and B of (n, k), each of them stored in this order or turned."""
    tile, (a_turned, b_turned), (a_width, b_width, c_width) = case.tile, case.turned, case.widths
    m_masked, n_masked, k_masked = case.masked
    batches = (T.dynamic("batch"),) if case.batched else ()
    M, N, K = (T.dynamic(name, multiple_of=size) for name, size in zip("mnk", case.multiples, strict=True))

    @warpjit(strict=True)
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
        height = min(rows - first, tile.group)
        inside = index % (tile.group * columns)
        m0, n0 = (first + inside % height) * tile.m, inside // height * tile.n
        warp = T.cuda.warp_id()
        wm, wn = warp % (tile.m // tile.warp_m) * tile.warp_m, warp // (tile.m // tile.warp_m) * tile.warp_n

        batch = (T.cuda.block_idx("y"),) if case.batched else ()
        left, right, result = A.sub[batch], B.sub[batch], C.sub[batch]

        # Stages and results share one arena.
        arena = T.alloc_shared((tile.shared_bytes,), "uint8", align=1024)
        a_shape = (tile.stages, *((tile.k, tile.m) if a_turned else (tile.m, tile.k)))
        b_shape = (tile.stages, *((tile.k, tile.n) if b_turned else (tile.n, tile.k)))
        split, end = tile.stages * tile.m * tile.k * 2, tile.stages * (tile.m + tile.n) * tile.k * 2
        a = arena[0:split].view(A.dtype).view(*a_shape, layout=rows_of(A.dtype, a_shape))
        b = arena[split:end].view(B.dtype).view(*b_shape, layout=rows_of(B.dtype, b_shape))

        def fetch(depth, stage):
            """Begin to copy a slice of A and of B; past the last one only the group is closed."""
            if depth < T.cdiv(K, tile.k):
                k = depth * tile.k
                rest = K - k if k_masked else None
                copy_in(a.sub[stage], left, a_turned, m0, M - m0 if m_masked else None, k, rest, a_width)
                copy_in(b.sub[stage], right, b_turned, n0, N - n0 if n_masked else None, k, rest, b_width)
            T.ptx["cp.async.commit_group"]()

        kind = "bf16" if A.dtype == T.bfloat16 else "f16"
        mma = T.ptx[f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32"]
        mi, ni, steps = tile.warp_m // 16, tile.warp_n // 8, tile.k // 16
        total = T.cuda.fragments(mma, "D", M=mi, N=ni, fill=0.0)
        af = T.cuda.fragments(mma, "A", M=mi), T.cuda.fragments(mma, "A", M=mi)
        bf = T.cuda.fragments(mma, "B", N=ni), T.cuda.fragments(mma, "B", N=ni)

        def load(buffer, stage, step):
            copy_fragment(af[buffer], a.sub[stage], a_turned, wm, tile.warp_m, 16 * step)
            copy_fragment(bf[buffer], b.sub[stage], b_turned, wn, tile.warp_n, 16 * step)

        for depth in T.unroll(tile.stages - 1):
            fetch(depth, depth)
        T.ptx["cp.async.wait_group"](tile.stages - 2)
        T.cuda.cta_sync()
        load(0, 0, 0)
        full, free = 0, tile.stages - 1
        for depth in range(T.cdiv(K, tile.k)):
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

        if epilogue is not None:
            extra = ()
            for operand, each_batch in zip(operands, case.operands, strict=True):
                extra = (*extra, operand.sub[batch] if each_batch else operand)
            for register, row, column in total.each():
                i, j = m0 + wm + row, n0 + wn + column
                if (not m_masked or i < M) and (not n_masked or j < N):
                    total.regs[register] = epilogue(total.regs[register], i, j, *extra)

        # Each warp turns its results into rows in shared memory, and stores these.
        T.ptx["cp.async.wait_all"]()
        T.cuda.cta_sync()
        results = total.cast(C.dtype)
        box_shape = (tile.warps, tile.warp_m, tile.warp_n)
        box = arena[0 : tile.m * tile.n * C.dtype.bits // 8].view(C.dtype)
        box = box.view(*box_shape, layout=rows_of(C.dtype, box_shape)).sub[warp]
        if C.dtype != T.float32 and T.cuda.has(STMATRIX):
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


def rows_of(dtype, shape):
    """The layout of rows in shared memory that ldmatrix, stmatrix and wide accesses meet without bank conflicts."""
    return T.cuda.layout.mma_shared_layout(dtype.dtype, min(shape[-1] * dtype.bits // 8, 128), shape)


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
    """`rows` rows, 16 deep, of a stage into registers."""
    if turned:
        tile = stage[k : k + 16, row : row + rows].permute(1, 0)
        T.cuda.tile.apply(T.ptx["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"], fragment, tile)
    else:
        tile = stage[row : row + rows, k : k + 16]
        T.cuda.tile.apply(T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"], fragment, tile)


# ---- called like torch's ------------------------------------------------------------------------------------------

TILES = (
    (Tile(128, 256, 64, 64, 64, 4), 1.0),
    (Tile(128, 128, 64, 64, 64, 3), 0.9),
    (Tile(128, 64, 64, 64, 32, 4), 0.75),
    (Tile(64, 64, 64, 32, 32, 4), 0.6),
    (Tile(16, 128, 64, 16, 32, 4), 0.3),
)
"""The tiles that a shape may get, and how fast each is on a full device beside the first."""
MULTIPROCESSORS = 132
"""Of the device that tiles are chosen for where there is none."""
ELEMENTS = ("torch.float16", "torch.bfloat16")
RESULTS = (*ELEMENTS, "torch.float32")


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    epilogue: Callable[..., Any] | None = None,
    operands: tuple[Any, ...] = (),
    tile: Tile | None = None,
) -> Any:
    """a @ b, summed in float32 and rounded once; on CPU tensors simulated.

    a         (m, k), or (batch, m, k): float16 or bfloat16. Rows or columns are contiguous (others are copied)
    b         (k, n), or (batch, k, n), of the same type; a matrix serves every batch of the other side
    out       (m, n), or (batch, m, n): float16, bfloat16 or float32, rows contiguous; None: a new tensor of a's type.
              It must not overlap a or b
    epilogue  a function (value, row, column, *operands) in the language, inlined: what it returns is stored in place
              of the float32 sum. It may be called for existing elements only
    operands  its further arguments: tensors (one with a leading batch is passed as the matrix of the batch), numbers
    tile      the tiles to use; None: a choice by the shape

    Any sizes; sizes and rows that are multiples of 16 bytes are fastest. No gradient is recorded.
    Raises ArgumentError: other types or shapes, tensors on several devices, operands without an epilogue.
    """
    import torch  # noqa: PLC0415  heavy

    if operands and epilogue is None:
        raise ArgumentError("matmul: operands are arguments of an epilogue, but there is none")
    batch, m, n, k = _sizes(a, b)
    if out is None:
        out = torch.empty((*batch, m, n), dtype=a.dtype, device=a.device)
    elif str(out.dtype) not in RESULTS or tuple(out.shape) != (*batch, m, n) or (n > 1 and out.stride(-1) != 1):
        raise ArgumentError(
            f"out: expected a tensor of shape {(*batch, m, n)} with contiguous rows, of float16, bfloat16 or float32, "
            f"but got shape {tuple(out.shape)}, strides {tuple(out.stride())} of {out.dtype}"
        )
    left, a_turned = _stored(a, batch)
    right, b_turned = _stored(b.mT, batch)
    size = (m, n, k)
    chosen = tile or default_tile(m, n, k, batch[0] if batch else 1, *_device(a.device.type, a.device.index or 0))
    case = Case(
        chosen,
        tuple(_multiple(each, own) for each, own in zip(size, (chosen.m, chosen.n, chosen.k), strict=True)),
        (a_turned, b_turned),
        (_width(left), _width(right), _width(out)),
        bool(batch),
        tuple(bool(batch) and getattr(each, "ndim", 0) == 3 for each in operands),
    )
    gemm(case)(left, right, out, tuple(operands), epilogue=epilogue)
    return out


def _sizes(a: Any, b: Any) -> tuple[tuple[int, ...], int, int, int]:
    """(batch or none), m, n, k. ArgumentError: no product."""
    for name, each in (("a", a), ("b", b)):
        if getattr(each, "ndim", None) not in (2, 3) or str(each.dtype) not in ELEMENTS:
            got = f"{each.ndim} axes of {each.dtype}" if hasattr(each, "ndim") else repr(each)
            raise ArgumentError(f"{name}: expected a tensor of 2 or 3 axes of float16 or bfloat16 but got {got}")
    batches = [each.shape[0] for each in (a, b) if each.ndim == 3]
    if a.dtype != b.dtype or a.shape[-1] != b.shape[-2] or len(set(batches)) > 1:
        raise ArgumentError(
            f"b: expected {a.dtype} of shape (…, {a.shape[-1]}, n) and a's batch but got {b.dtype} of shape "
            f"{tuple(b.shape)}, for a of shape {tuple(a.shape)}"
        )
    return tuple(batches[:1]), a.shape[-2], b.shape[-1], a.shape[-1]


def _stored(x: Any, batch: tuple[int, ...]) -> tuple[Any, bool]:
    """The matrix in the order in which it lies in memory, and whether that is not its own."""
    if batch and x.ndim == 2:
        x = x.expand(*batch, *x.shape)
    if x.stride(-1) == 1 or x.shape[-1] == 1:
        return x, False
    if x.stride(-2) == 1 or x.shape[-2] == 1:
        return x.mT, True
    return x.contiguous(), False


def _width(x: Any) -> int:
    """Bytes of the widest access along the rows that the kernel can prove to be aligned."""
    size = x.element_size()
    steps = [x.shape[-1], *(stride for extent, stride in zip(x.shape[:-1], x.stride()[:-1], strict=True) if extent > 1)]
    if x.data_ptr() % 16 == 0:
        if all(step * size % 16 == 0 for step in steps):
            return 16
        if x.is_contiguous() and x.shape[-1] * size % 4 == 0:
            return 4
    return size


def _multiple(size: int, tile: int) -> int:
    return next(each for each in (tile, 8, 2, 1) if size % each == 0)


@functools.cache
def _device(kind: str, index: int) -> tuple[int, int]:
    """(multiprocessors, shared bytes of a CTA) of what the kernel will run on."""
    if kind != "cuda":
        return MULTIPROCESSORS, cpu_target().max_shared
    import torch  # noqa: PLC0415  heavy

    found = torch.cuda.get_device_properties(index)
    return found.multi_processor_count, found.shared_memory_per_block_optin


@functools.lru_cache(maxsize=4096)
def default_tile(m: int, n: int, k: int, batch: int, multiprocessors: int, shared: int) -> Tile:
    """The tile with which the device is busy for the shortest time, where a CTA takes as long as its part of a wave."""
    best, least = TILES[-1][0], math.inf
    for tile, rate in TILES:
        if tile.shared_bytes > shared:
            continue
        together = multiprocessors * max((shared + RESERVED) // (tile.shared_bytes + RESERVED), 1)
        ctas = -(-m // tile.m) * -(-n // tile.n) * batch
        time = -(-ctas // together) * together * tile.m * tile.n / rate
        if time < least:
            best, least = tile, time
    return best
