"""cp.async shared out among the threads of a warp, a warpgroup or a CTA: sizes, shapes, blocks, edges, wide offsets.

All of shared memory is poisoned first and looked at afterwards, so that nothing but the tile may have been written.
Copies by single threads and the raw form are in `test_async_copy`; copies through registers in `test_wide_access`.
"""

from __future__ import annotations

import pytest
import torch
from both import assert_same_bits

from warpjit import T, warpjit

CG, CA = "cp.async.cg.shared.global", "cp.async.ca.shared.global"
POISON = 0x7B
WORD = 0x7B7B7B7B
M, N = T.dynamic("M"), T.dynamic("N", multiple_of=8)


def poison_all(arena):
    """Every byte of shared memory, by all threads of the CTA, in words."""
    words = arena.view("uint32")
    thread = 32 * T.cuda.warp_id() + T.cuda.lane_id()
    threads = T.cuda.block_dim("x") * T.cuda.block_dim("y") * T.cuda.block_dim("z")
    for i in range(T.cdiv(words.shape[0], threads)):
        if threads * i + thread < words.shape[0]:
            words[threads * i + thread] = WORD
    T.cuda.cta_sync()


def dump_all(Out, arena):
    T.ptx["cp.async.wait_all"]()
    T.cuda.cta_sync()
    words, out = arena.view("uint32"), Out.view("uint32")
    thread = 32 * T.cuda.warp_id() + T.cuda.lane_id()
    threads = T.cuda.block_dim("x") * T.cuda.block_dim("y") * T.cuda.block_dim("z")
    for i in range(T.cdiv(words.shape[0], threads)):
        if threads * i + thread < words.shape[0]:
            out[threads * i + thread] = words[threads * i + thread]


def codes(dtype: torch.dtype, shape: tuple[int, ...], device: str) -> torch.Tensor:
    """Random bytes, none of them the poison."""
    octets = torch.randint(0, POISON, (*shape, dtype.itemsize), dtype=torch.uint8)
    return octets.view(dtype)[..., 0].contiguous().to(device)


def poisoned(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.full((*shape, dtype.itemsize), POISON, dtype=torch.uint8).view(dtype)[..., 0]


# ---- who copies what --------------------------------------------------------------------------------------------


@warpjit
def shared_out(A, Out, *, block, scope, text, size, pitch):
    """Each group of threads copies its own tile of A into its own part of shared memory, whose rows are padded."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=block))
    groups, shape = A.shape[0], A.shape[1:]
    ring = T.alloc_shared((groups, *shape[:-1], pitch), A.dtype)
    poison_all(ring.storage)
    thread = 32 * T.cuda.warp_id() + T.cuda.lane_id()
    group = thread * groups // (T.cuda.block_dim("x") * T.cuda.block_dim("y") * T.cuda.block_dim("z"))
    rows = (slice(None),) * (len(shape) - 1)
    T.cuda.tile.apply(T.ptx[text], ring.sub[(group, *rows, slice(0, shape[-1]))], A.sub[group], scope=scope, size=size)
    dump_all(Out, ring.storage)


BLOCKS = [("warp", 32, 1), ("warp", (16, 6), 3), ("warp", (4, 4, 4), 2), ("warpgroup", 256, 2), ("thread", 32, 32)]
BLOCKS += [("warpgroup", (32, 4), 1), ("cta", 96, 1), ("cta", 48, 1), ("cta", (10, 7), 1), ("cta", (3, 5, 3), 1)]
BLOCKS += [("cta", 1024, 1)]
TILES = [(torch.float16, (40,), CG, 16), (torch.float16, (7, 24), CG, 16), (torch.float32, (2, 5, 12), CA, 8)]
TILES += [(torch.uint8, (3, 20), CA, 4), (torch.float64, (9, 2), CG, None), (torch.int64, (2, 2, 3), CA, 8)]
SHARED = [(block, tile) for i, block in enumerate(BLOCKS) for j, tile in enumerate(TILES) if (i + j) % 2 == 0]


@pytest.mark.parametrize(("shared", "tile"), SHARED)
def test_the_threads_of_a_scope_copy_exactly_their_tile(device, run, shared, tile):
    (scope, block, groups), (dtype, shape, text, size) = shared, tile
    a = codes(dtype, (groups, *shape), device)
    pitch = shape[-1] + 16 // dtype.itemsize
    ring = poisoned((groups, *shape[:-1], pitch), dtype)
    out = torch.zeros(ring.numel() * dtype.itemsize, dtype=torch.uint8, device=device)
    run(shared_out, a, out, block=block, scope=scope, text=text, size=size, pitch=pitch)
    ring[..., : shape[-1]] = a.cpu()
    assert_same_bits(ring.view(torch.uint8).flatten(), out)


# ---- what exists ------------------------------------------------------------------------------------------------


@warpjit
def limited(A, Out, rows: T.int64, columns: T.int64, *, block, text, size, limit):
    """A tile of which `rows` and `columns` exist, in each of the integer types; and in an axis that has no limit."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=block))
    tiles = T.alloc_shared((3, A.shape[0], A.shape[1] + 8), A.dtype)
    poison_all(tiles.storage)
    r, c = (T.int32(rows), T.int32(columns)) if limit == "int32" else (rows, columns)
    valid = ((r, c), (r, None), (None, c))
    for i in T.unroll(3):
        tile = tiles.sub[i, :, 0 : A.shape[1]]
        T.cuda.tile.apply(T.ptx[text], tile, A, scope="cta", size=size, valid=valid[i])
    dump_all(Out, tiles.storage)


LIMITS = [(5, 16), (0, 24), (7, 0), (-1, -3), (100, 1000), (3, 21), (7, 1), (1, 23), (4, -(2**31)), (-(2**31), 9)]
FORMS = [(torch.float16, CG, 16), (torch.float32, CA, 8), (torch.int8, CA, 4), (torch.float64, CA, 8)]


def existing(a: torch.Tensor, rows: int | None, columns: int | None) -> torch.Tensor:
    """Zero where an element does not exist."""
    result = torch.zeros_like(a)
    row, column = (slice(None if end is None else max(end, 0)) for end in (rows, columns))
    result[row, column] = a[row, column]
    return result


@pytest.mark.parametrize("limit", ["int32", "int64"])
@pytest.mark.parametrize(("dtype", "text", "size"), FORMS)
def test_what_does_not_exist_is_zero(device, run, dtype, text, size, limit):
    a = codes(dtype, (7, 24), device)
    for rows, columns in LIMITS + [(2**40, 2**33 + 3)] * (limit == "int64"):
        tiles = poisoned((3, 7, 32), dtype)
        out = torch.zeros(tiles.numel() * dtype.itemsize, dtype=torch.uint8, device=device)
        run(limited, a, out, rows, columns, block=40, text=text, size=size, limit=limit)
        for tile, ends in zip(tiles, ((rows, columns), (rows, None), (None, columns)), strict=True):
            tile[:, :24] = existing(a, *ends).cpu()
        assert_same_bits(tiles.view(torch.uint8).flatten(), out)


@warpjit
def known(A, Out, *, valid):
    """Limits that are known while tracing."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    tile = T.alloc_shared(A.shape, "float16")
    poison_all(tile.storage)
    T.cuda.tile.apply(T.ptx[CG], tile, A, scope="warp", size=16, valid=valid)
    dump_all(Out, tile.storage)


@pytest.mark.parametrize("valid", [(5, 16), (0, 24), (-3, None), (7, 21), (None, -5), (3, 100), (2**40, 2**40), [2, 3]])
def test_limits_that_are_known_while_tracing(device, run, valid):
    a = codes(torch.float16, (7, 24), device)
    out = torch.zeros(a.numel() * 2, dtype=torch.uint8, device=device)
    run(known, a, out, valid=tuple(valid))
    assert_same_bits(existing(a, *valid).cpu().view(torch.uint8).flatten(), out)


@warpjit
def tiled(A: T.Tensor((M, "columns"), "float16"), Tiles, extra: T.int32, *, swizzle, size):
    """Each CTA's window of A, which may begin behind its end; `extra`: more elements that do not exist."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=(Tiles.shape[0], Tiles.shape[1]), block=96))
    i, j = T.cuda.block_idx("x"), T.cuda.block_idx("y")
    layout = T.cuda.layout.mma_shared_layout("float16", swizzle, (2, 16, 32)) if swizzle else "default"
    ring = T.alloc_shared((2, 16, 32), "float16", layout=layout)
    row, column = 16 * i, 32 * j
    valid = (M - row, A.shape[1] - extra - column)
    window = A[row : row + 16, column : column + 32]
    T.cuda.tile.apply(T.ptx[CA], ring.sub[j % 2], window, scope="cta", size=size, valid=valid)
    T.ptx["cp.async.wait_all"]()
    T.cuda.cta_sync()
    T.copy(Tiles.sub[i, j], ring.sub[j % 2])


@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize(("m", "n", "extra"), [(48, 64, 0), (33, 40, 0), (1, 8, 0), (17, 72, 3), (30, 40, 13)])
@pytest.mark.parametrize("swizzle", [None, 64])
def test_windows_beyond_the_tensor(device, run, m, n, extra, swizzle, size):
    whole = torch.full((m + 1, n + 8), float("nan"), dtype=torch.float16, device=device)
    a = whole[:m, :n]
    a.copy_(torch.randn(m, n))
    across = -(-m // 16) + 1, -(-n // 32) + 1
    tiles = torch.full((*across, 16, 32), float("nan"), dtype=torch.float16, device=device)
    run(tiled, a, tiles, extra, swizzle=swizzle, size=size)
    expected = torch.zeros((across[0] * 16, across[1] * 32), dtype=torch.float16)
    expected[:m, : n - extra] = a[:, : n - extra].cpu()
    assert_same_bits(expected.view(across[0], 16, across[1], 32).transpose(1, 2), tiles)


# ---- far away, and not at all -----------------------------------------------------------------------------------


@warpjit
def far(A: T.Tensor((M, 64), "float16"), Out, row: T.int64, *, narrow):
    """The last rows of a tensor of more than 2**31 bytes."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    tile = T.alloc_shared((16, 64), "float16")
    first = T.int32(row) if narrow else row
    T.cuda.tile.apply(T.ptx[CG], tile, A[first : first + 16], size=16, scope="cta", valid=(M - first, None))
    T.ptx["cp.async.wait_all"]()
    T.cuda.cta_sync()
    T.copy(Out, tile)


@pytest.mark.parametrize("narrow", [False, True])
def test_offsets_of_64_bits(device, run, narrow):
    rows = 2**31 // 128 + 20
    a = torch.empty(rows, 64, dtype=torch.float16, device=device)  # only its last rows are ever touched
    a[-10:] = torch.randn(10, 64)
    out = torch.full((16, 64), float("nan"), dtype=torch.float16, device=device)
    run(far, a, out, rows - 10, narrow=narrow)
    assert_same_bits(torch.cat([a[-10:].cpu(), torch.zeros(6, 64).half()]), out)
    assert "long long" in far.source(a, out, rows - 10, narrow=narrow)


@warpjit
def under_predicates(A, Out, count: T.int32, rows: T.int32):
    """Chunks that a thread does not copy keep what was there; rows that do not exist become zero."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=48))
    tiles = T.alloc_shared((4, *A.shape), "float16")
    poison_all(tiles.storage)
    thread = T.cuda.thread_idx()
    T.cuda.tile.apply(T.ptx[CG], tiles.sub[0], A, scope="cta", size=16, pred=thread < count)
    T.cuda.tile.apply(T.ptx[CG], tiles.sub[1], A, scope="cta", size=16, pred=thread < count, valid=(rows, None))
    T.cuda.tile.apply(T.ptx[CG], tiles.sub[2], A, scope="cta", size=16, pred=count > 100)
    T.cuda.tile.apply(T.ptx[CG], tiles.sub[3], A, scope="cta", size=16, src_size=2 * rows)
    dump_all(Out, tiles.storage)


@pytest.mark.parametrize(("count", "rows"), [(20, 3), (0, 7), (48, 0), (101, 8)])
def test_predicates_and_limits_together(device, run, count, rows):
    a = codes(torch.float16, (10, 64), device)
    tiles = poisoned((4, 80, 8), torch.float16)
    out = torch.zeros(tiles.numel() * 2, dtype=torch.uint8, device=device)
    run(under_predicates, a, out, count, rows)
    mine = torch.arange(80) % 48 < count
    chunks = a.cpu().view(80, 8)
    tiles[0, mine] = chunks[mine]
    tiles[1, mine] = existing(a, rows, None).cpu().view(80, 8)[mine]
    if count > 100:
        tiles[2] = chunks
    tiles[3], tiles[3, :, :rows] = 0, chunks[:, :rows]
    assert_same_bits(tiles.view(torch.uint8).flatten(), out)
