"""Every check of an instruction's operands: the whole sentence, at the line of the mistake, several in one report."""

# Names in kernels that are refused are never used.
# ruff: noqa: F841, RUF059

from __future__ import annotations

import pytest
import torch
from refusals import MMA, ONE_WARP, operands, refused

from warpjit import T, TraceError, warpjit
from warpjit.layout import R, S, TileLayout, laneid

MMA8 = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
LOAD4 = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
LOAD1 = "ldmatrix.sync.aligned.m8n8.x1.shared.b16"
STORE4 = "stmatrix.sync.aligned.m8n8.x4.shared.b16"
ROWS = TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])


OWN_A = (
    "The instruction's own layout for shape (1, 1, 16, 8) is "
    "TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ laneid, 2, 1 @ laneid)])"
)


def test_wrong_operand_count():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, a, b = operands()
        T.cuda.tile.apply(T.ptx[MMA], d, a, b)

    assert refused(kernel) == [
        (f"{MMA}: expected 4 operands (D, A, B, C) but got 3", "T.cuda.tile.apply(T.ptx[MMA], d, a, b)")
    ]


def test_scalar_where_a_tensor_is_needed():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, a, b = operands()
        T.cuda.tile.apply(T.ptx[MMA], d, a, 1.0, d)

    assert refused(kernel) == [
        (f"{MMA}: operand B: expected a tensor but got float 1.0", "T.cuda.tile.apply(T.ptx[MMA], d, a, 1.0, d)")
    ]


def test_an_int_is_no_c():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, a, b = operands()
        T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0)
        T.cuda.tile.apply(T.ptx[MMA], d, a, b, T.int32(1))

    assert refused(kernel) == [
        (
            f"{MMA}: operand C: expected float32 but got the int 0: write 0.0 or T.float32(0)",
            "T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0)",
        ),
        (
            f"{MMA}: operand C: expected float32 but got a scalar of type int32",
            "T.cuda.tile.apply(T.ptx[MMA], d, a, b, T.int32(1))",
        ),
    ]


def test_wrong_trailing_shape():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, a, b = operands()
        tile = T.alloc_shared((2, 8, 4), "uint32")
        registers = T.alloc_local((4,), "uint32")
        T.cuda.tile.apply(T.ptx[MMA], d, b, a, 0.0)
        T.cuda.tile.apply(T.ptx[MMA8], d, a, b, 0.0)
        T.cuda.tile.apply(T.ptx[LOAD4], registers.view(4, 8, 4, layout=ROWS), tile)

    assert [message for message, _ in refused(kernel)] == [
        f"{MMA}: operand A: expected a view of shape (*batch, M, K, 16, 8), but got (1, 1, 8, 8)",
        f"{MMA8}: operand A: expected a view of shape (*batch, M, K, 16, 4), but got (1, 1, 16, 8)",
        f"{LOAD4}: operand src: expected a tile of shape (*batch, 4, 8, 4), but got (2, 8, 4)",
    ]


def test_repeats_disagree():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        mma = T.ptx[MMA]
        d = T.cuda.fragments(mma, "D", M=2)
        a = T.cuda.fragments(mma, "A", M=1, K=2, fill=0)
        b = T.cuda.fragments(mma, "B", K=3, fill=0)
        T.cuda.tile.apply(mma, d, a, b, 0.0)
        T.cuda.tile.apply(mma, T.cuda.fragments(mma, "D"), a, b, 0.0)
        T.cuda.tile.apply(mma, T.cuda.fragments(mma, "D", batch=(3,)), a, b, 0.0)

    assert [message for message, _ in refused(kernel)] == [
        f"{MMA}: repeat shapes must agree, but operand D has M=2 and operand A has M=1",
        f"{MMA}: repeat shapes must agree, but operand A has K=2 and operand B has K=3",
        f"{MMA}: repeat shapes must agree, but operand D has batch axes (3,) and operand A has ()",
    ]


def test_wrong_lane_gets_a_counterexample():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, _, b = operands()
        layout = TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 1 @ laneid, 2, 8 @ laneid)])
        registers = T.alloc_local((4,), "uint32")
        T.cuda.tile.apply(T.ptx[MMA], d, registers.view(1, 1, 16, 8, layout=layout), b, 0.0)

    assert refused(kernel) == [
        (
            f"{MMA}: operand A: element (0, 0, 0, 1) is in lane 8, register 0 of the view, but the instruction reads "
            f"it in lane 1, register 0. {OWN_A}",
            "T.cuda.tile.apply(T.ptx[MMA], d, registers.view(1, 1, 16, 8, layout=layout), b, 0.0)",
        )
    ]


def test_registers_in_another_order_are_the_instruction_s_in_that_order():
    @warpjit
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, _, b = operands()
        layout = TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 2, 4 @ laneid, 1, 1 @ laneid)])
        ar = T.alloc_local((4,), "uint32")
        T.cuda.tile.apply(T.ptx[MMA], d, ar.view(1, 1, 16, 8, layout=layout), b, 0.0)
        Out[0] = d.storage.view("float32")[0]

    assert '"r"(ar_0), "r"(ar_2), "r"(ar_1), "r"(ar_3)' in kernel.source(torch.empty(64, device="meta"))


def test_a_register_that_differs_between_lanes_gets_a_counterexample():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, _, b = operands()
        layout = TileLayout(S[(1, 1, 2, 2, 4, 2, 4) : (4, 4, 1, 2, 4 @ laneid, 16 @ laneid, 1 @ laneid)])
        registers = T.alloc_local((4,), "uint32")
        T.cuda.tile.apply(T.ptx[MMA], d, registers.view(1, 1, 16, 8, layout=layout), b, 0.0)

    assert [message for message, _ in refused(kernel)] == [
        f"{MMA}: operand A: element (0, 0, 0, 4) is in lane 16, register 0 of the view, but the instruction reads "
        f"it in lane 0, register 2. {OWN_A}"
    ]


def test_halves_in_the_wrong_register_get_a_counterexample():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, _, b = operands()
        registers = T.alloc_local((8,), "float16")
        layout = TileLayout(S[(1, 1, 2, 8, 2, 4, 2) : (8, 8, 1, 4 @ laneid, 4, 1 @ laneid, 2)])
        T.cuda.tile.apply(T.ptx[MMA], d, registers.view(1, 1, 16, 16, layout=layout), b, 0.0)

    own = "TileLayout(S[(1, 1, 2, 8, 2, 4, 2) : (8, 8, 2, 4 @ laneid, 4, 1 @ laneid, 1)])"
    assert refused(kernel) == [
        (
            f"{MMA}: operand A: element (0, 0, 0, 1) is element 2 of its lane's registers, so number 0 within its "
            "register, but the instruction wants it as number 1. Every element is in its lane, so that its registers "
            "can be put together (t.convert): register 0 is part 0 of 0, part 0 of 1; register 1 is part 1 of 0, part "
            f"1 of 1; and 2 more. The instruction's own layout for shape (1, 1, 16, 16) is {own}",
            "T.cuda.tile.apply(T.ptx[MMA], d, registers.view(1, 1, 16, 16, layout=layout), b, 0.0)",
        )
    ]


def test_swapped_operands():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        tile = T.alloc_shared((4, 8, 4), "uint32")
        registers = T.alloc_local((4,), "uint32")
        T.cuda.tile.apply(T.ptx[LOAD4], tile, registers.view(4, 8, 4, layout=ROWS))

    assert refused(kernel) == [
        (
            f"{LOAD4}: operand d: expected a local tensor (registers), but tile is in shared memory",
            "T.cuda.tile.apply(T.ptx[LOAD4], tile, registers.view(4, 8, 4, layout=ROWS))",
        )
    ]


def test_wrong_storage_scope():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        registers = T.alloc_local((4,), "uint32")
        T.cuda.tile.apply(T.ptx[STORE4], Out, registers.view(4, 8, 4, layout=ROWS))

    assert refused(kernel) == [
        (
            f"{STORE4}: operand dst: expected a shared tensor, but Out is global",
            "T.cuda.tile.apply(T.ptx[STORE4], Out, registers.view(4, 8, 4, layout=ROWS))",
        )
    ]


def test_base_alignment_too_small():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        registers = T.alloc_local((4,), "uint32")
        four = T.alloc_shared((4, 8, 4), "uint32", align=4)
        T.cuda.tile.apply(T.ptx[LOAD4], registers.view(4, 8, 4, layout=ROWS), four)
        eight = T.alloc_shared((4, 8, 4), "uint32", align=8)
        T.cuda.tile.apply(T.ptx[LOAD4], registers.view(4, 8, 4, layout=ROWS), eight)

    assert [message for message, _ in refused(kernel)] == [
        f"{LOAD4}: operand src: the address of the tile is known to be a multiple of {align} bytes only, but "
        "must be one "
        "of 16: give the allocation align=16, or start the slice at a multiple of it"
        for align in (4, 8)
    ]


def test_a_row_that_starts_off_16_bytes():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        view = T.alloc_local((4,), "uint32").view(4, 8, 4, layout=ROWS)
        pitch = T.alloc_shared((4, 8, 4), "uint32", layout=TileLayout(S[(4, 8, 4) : (40, 5, 1)]))
        T.cuda.tile.apply(T.ptx[LOAD4], view, pitch)
        wide = T.alloc_shared((32, 8), "uint32")
        T.cuda.tile.apply(T.ptx[LOAD4], view, wide.sub[:, 2:6].rearrange("(m row) word -> m row word", row=8))

    text = f"{LOAD4}: operand src: every row must start at a multiple of 16 bytes, but the row at"
    assert refused(kernel) == [
        (f"{text} (0, 1, 0) starts 20 bytes after the origin", "T.cuda.tile.apply(T.ptx[LOAD4], view, pitch)"),
        (
            f"{text} (0, 0, 0) starts 8 bytes after the origin",
            'T.cuda.tile.apply(T.ptx[LOAD4], view, wide.sub[:, 2:6].rearrange("(m row) word -> m row word", row=8))',
        ),
    ]


def test_words_of_a_row_that_are_not_consecutive():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        view = T.alloc_local((4,), "uint32").view(4, 8, 4, layout=ROWS)
        apart = T.alloc_shared((4, 8, 4), "uint32", layout=TileLayout(S[(4, 8, 4) : (64, 8, 2)]))
        T.cuda.tile.apply(T.ptx[LOAD4], view, apart)

    assert refused(kernel) == [
        (
            f"{LOAD4}: operand src: the 16 bytes of a row must be contiguous, but element (0, 0, 1) is 2 elements "
            "after (0, 0, 0) instead of 1",
            "T.cuda.tile.apply(T.ptx[LOAD4], view, apart)",
        )
    ]


def test_rows_that_are_written_twice():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        view = T.alloc_local((4,), "uint32").view(4, 8, 4, layout=ROWS)
        same = T.alloc_shared((4, 8, 4), "uint32", layout=TileLayout(S[(4, 8, 4) : (0, 4, 1)]))
        T.cuda.tile.apply(T.ptx[STORE4], same, view)

    assert refused(kernel) == [
        (
            f"{STORE4}: operand dst: rows 0 and 8 of issue 0 are both written at byte 0",
            "T.cuda.tile.apply(T.ptx[STORE4], same, view)",
        )
    ]


def test_registers_that_are_written_twice():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        mma = T.ptx[MMA]
        a, b = T.cuda.fragments(mma, "A", M=2, fill=0), T.cuda.fragments(mma, "B", fill=0)
        layout = TileLayout(S[(2, 1, 2, 8, 4, 2) : (2, 4, 2, 4 @ laneid, 1 @ laneid, 1)])
        d = T.alloc_local((6,), "float32").view(2, 1, 16, 8, layout=layout)
        T.cuda.tile.apply(mma, d, a, b, 0.0)

    own = "TileLayout(S[(2, 1, 2, 8, 4, 2) : (4, 4, 2, 4 @ laneid, 1 @ laneid, 1)])"
    assert refused(kernel) == [
        (
            f"{MMA}: operand D: register 2 would be written twice: as register 2 of issue 0 and as register 0 of issue "
            f"1. The instruction's own layout for shape (2, 1, 16, 8) is {own}",
            "T.cuda.tile.apply(mma, d, a, b, 0.0)",
        )
    ]


def test_register_slots_beyond_the_allocation():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        registers = T.alloc_local((4,), "uint32")
        beyond = registers.view(4, 8, 4, layout=TileLayout(S[(4, 8, 4) : (2, 4 @ laneid, 1 @ laneid)]))

    assert refused(kernel) == [
        (
            "view of registers: layout: expected one within its 4 registers but got "
            "TileLayout(S[(4, 8, 4) : (2, 4 @ laneid, 1 @ laneid)]), which spans 7",
            "beyond = registers.view(4, 8, 4, layout=TileLayout(S[(4, 8, 4) : (2, 4 @ laneid, 1 @ laneid)]))",
        )
    ]


def test_replicas():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        tile = T.alloc_shared((1, 8, 4), "uint32")
        registers = T.alloc_local((2,), "uint32")
        copies = TileLayout(S[(1, 8, 4) : (1, 4 @ laneid, 1 @ laneid)] + R[2:1])
        T.cuda.tile.apply(T.ptx[LOAD1], registers.view(1, 8, 4, layout=copies), tile)

    assert refused(kernel) == [
        (
            f"{LOAD1}: operand d: the layout TileLayout(S[(1, 8, 4) : (1, 4 @ laneid, 1 @ laneid)] + R[2 : 1]) has "
            "replicas: each element must have one owner",
            "T.cuda.tile.apply(T.ptx[LOAD1], registers.view(1, 8, 4, layout=copies), tile)",
        )
    ]


def test_view_layout_traps():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        registers = T.alloc_local((4,), "uint32")
        a = registers.view(4, 8, 4, layout=TileLayout(S[(4, 8) : (8, 1)]))
        b = registers.view(4, 8, 4, layout=TileLayout(S[(4, 8, 4) : (1, 8 @ laneid, 1 @ laneid)]))
        c = registers.view(4, 8, 4, layout=TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)] + 100))
        Out[0] = 0.0

    assert [message for message, _ in refused(kernel)] == [
        "view: layout: expected one of the 128 elements of shape (4, 8, 4) but got TileLayout(S[(4, 8) : (8, 1)]), "
        "of 32",
        "TileLayout(S[(4, 8, 4) : (1, 8 @ laneid, 1 @ laneid)]): laneid: expected at most 31 but got 59",
        "view of registers: layout: expected one within its 4 registers but got TileLayout(S[(4, 8, 4) : (1, 4 @ "
        "laneid, 1 @ laneid)] + 100), "
        "which spans 104",
    ]


def test_stmatrix_below_its_architecture():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        tile = T.alloc_shared((4, 8, 4), "uint32")
        registers = T.alloc_local((4,), "uint32")
        T.cuda.tile.apply(T.ptx[STORE4], tile, registers.view(4, 8, 4, layout=ROWS))

    assert refused(kernel, target="sm_80") == [
        (
            f"{STORE4} needs sm_90 or later, but the target is sm_80",
            "T.cuda.tile.apply(T.ptx[STORE4], tile, registers.view(4, 8, 4, layout=ROWS))",
        )
    ]


def test_wrong_tokens_are_answered_by_the_legal_ones():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        a = T.ptx["ldmatrix.sync.aligned.m8n8.x3.shared.b16"]
        b = T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32"]
        c = T.ptx["ldmatrix.m8n8.x4.b16.shared.sync.aligned"]
        d = T.ptx["lmatrix.sync"]

    mma = "mma.sync.aligned.m16n8k16.row.col.f32"
    assert refused(kernel) == [
        (
            "ldmatrix.sync.aligned.m8n8 has no modifier '.x3'; legal here: .x1, .x2, .x4",
            'a = T.ptx["ldmatrix.sync.aligned.m8n8.x3.shared.b16"]',
        ),
        (
            f"{mma}.f16.bf16.f32: there is no such combination: '.bf16' does not go with {mma}.f16; legal here: .f16; "
            f"nearest: {mma}.bf16.bf16.f32, {mma}.f16.f16.f32, {mma.replace('k16', 'k8')}.bf16.bf16.f32, "
            f"{mma.replace('k16', 'k8')}.f16.f16.f32",
            'b = T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32"]',
        ),
        (
            "there is no instruction 'lmatrix'; did you mean ldmatrix or stmatrix or movmatrix?",
            'd = T.ptx["lmatrix.sync"]',
        ),
    ]


def test_all_mistakes_come_in_one_report():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, a, b = operands()
        T.cuda.tile.apply(T.ptx[MMA], d, a, b)
        for i in range(2):
            T.cuda.tile.apply(T.ptx[MMA], d, a, b, i)
            mistaken(d, a)
        T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0)

    def mistaken(d, a):
        return T.cuda.tile.apply(T.ptx[MMA], d, a, a, 0.0)

    with pytest.raises(TraceError) as caught:
        warpjit(kernel).source(torch.empty(64, device="meta"))
    assert str(caught.value).startswith("3 errors\n\n")
    first = kernel.__code__.co_firstlineno
    assert [(each.message, each.loc.line - first) for each in caught.value.findings] == [
        (f"{MMA}: expected 4 operands (D, A, B, C) but got 3", 3),
        (f"{MMA}: operand C: expected float32 but got a scalar of type int32", 5),
        (f"{MMA}: operand B: expected a view of shape (*batch, N, K, 8, 8), but got (1, 1, 16, 8)", 10),
    ]
    inner = caught.value.findings[2].loc.frames[1]
    assert inner.function.endswith("mistaken") and inner.text.strip().startswith("return T.cuda.tile.apply")


def test_a_cluster_where_there_are_none_or_that_is_too_large():
    def pair(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=32, cluster=2))
        Out[T.cuda.lane_id()] = 0.0

    def crowd(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=32, block=32, cluster=32))
        Out[T.cuda.lane_id()] = 0.0

    assert [message for message, _ in refused(pair, target="sm_80")] == [
        "expected a cluster of (1, 1, 1) but got (2, 1, 1): sm_80 has no clusters"
    ]
    assert [message for message, _ in refused(crowd)] == ["cluster (32, 1, 1) has 32 CTAs: expected at most 16"]
