"""Every check of an instruction's operands: the whole sentence, at the line of the mistake, several in one report."""

# Names in kernels that are refused are never used.
# ruff: noqa: F841, RUF059, B023

from __future__ import annotations

import torch
from refusals import refused

from warpjit import T, warpjit
from warpjit.layout import R, S, TileLayout, laneid

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
MMA8 = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
LOAD4 = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
LOAD2 = "ldmatrix.sync.aligned.m8n8.x2.shared.b16"
STORE4 = "stmatrix.sync.aligned.m8n8.x4.shared.b16"
ONE_WARP = T.cuda.LaunchConfig(grid=1, block=32)
ROWS = TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])


def operands(fill: int | None = 0):
    """Fragments of one instruction."""
    mma = T.ptx[MMA]
    return T.cuda.fragments(mma, "D"), T.cuda.fragments(mma, "A", fill=fill), T.cuda.fragments(mma, "B", fill=fill)


def test_wrong_operand_count():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, a, b = operands()
        T.cuda.tile.apply(T.ptx[MMA], d, a, b)

    assert refused(kernel) == [
        (f"{MMA} takes 4 operands (D, A, B, C) but got 3", "T.cuda.tile.apply(T.ptx[MMA], d, a, b)")
    ]


def test_scalar_where_a_tensor_is_needed_and_int_for_c():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, a, b = operands()
        T.cuda.tile.apply(T.ptx[MMA], d, a, 1.0, d)
        T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0)
        T.cuda.tile.apply(T.ptx[MMA], d, a, b, T.int32(1))

    assert refused(kernel) == [
        (f"{MMA}: operand B: expected a tensor but got float 1.0", "T.cuda.tile.apply(T.ptx[MMA], d, a, 1.0, d)"),
        (
            f"{MMA}: operand C: expected a float32 but got the int 0: write 0.0 or T.float32(0)",
            "T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0)",
        ),
        (
            f"{MMA}: operand C: expected a float32 but got a scalar of type int32",
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

    assert [message for message, _ in refused(kernel)] == [
        f"{MMA}: repeat shapes must agree, but operand D has M=2 and operand A has M=1",
        f"{MMA}: repeat shapes must agree, but operand A has K=2 and operand B has K=3",
    ]


def test_wrong_lane_gets_a_counterexample():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, _, b = operands()
        layout = TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 1 @ laneid, 2, 8 @ laneid)])
        registers = T.alloc_local((4,), "uint32")
        T.cuda.tile.apply(T.ptx[MMA], d, registers.view(1, 1, 16, 8, layout=layout), b, 0.0)

    ((message, line),) = refused(kernel)
    assert line.startswith("T.cuda.tile.apply(T.ptx[MMA], d, registers")
    assert message.startswith(f"{MMA}: operand A: element (0, 0, 0, 1) is in lane 8, register 0")
    assert "lane 1, register 0" in message
    own = "TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ laneid, 2, 1 @ laneid)])"
    assert message.endswith(f"The instruction's own layout for shape (1, 1, 16, 8) is {own}")


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

    ((message, _),) = refused(kernel)
    assert message.startswith(f"{MMA}: operand A: element (0, 0, 0, 4) is in lane 16, register 0")


def test_wrong_storage():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        tile = T.alloc_shared((4, 8, 4), "uint32")
        registers = T.alloc_local((4,), "uint32")
        T.cuda.tile.apply(T.ptx[LOAD4], tile, registers.view(4, 8, 4, layout=ROWS))
        T.cuda.tile.apply(T.ptx[STORE4], Out, registers.view(4, 8, 4, layout=ROWS))

    assert [message for message, _ in refused(kernel)] == [
        f"{LOAD4}: operand d: expected a local tensor (registers), but tile is in shared memory",
        f"{STORE4}: operand dst: expected a shared tensor, but Out is global",
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


def test_rows_not_aligned_or_not_consecutive():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        registers = T.alloc_local((4,), "uint32")
        view = registers.view(4, 8, 4, layout=ROWS)
        pitch = T.alloc_shared((4, 8, 4), "uint32", layout=TileLayout(S[(4, 8, 4) : (40, 5, 1)]))
        T.cuda.tile.apply(T.ptx[LOAD4], view, pitch)
        wide = T.alloc_shared((32, 8), "uint32")
        T.cuda.tile.apply(T.ptx[LOAD4], view, wide.sub[:, 2:6].rearrange("(m row) word -> m row word", row=8))
        apart = T.alloc_shared((4, 8, 4), "uint32", layout=TileLayout(S[(4, 8, 4) : (64, 8, 2)]))
        T.cuda.tile.apply(T.ptx[LOAD4], view, apart)

    findings = refused(kernel)
    assert len(findings) == 3
    assert findings[0][0] == (
        f"{LOAD4}: operand src: every row must start at a multiple of 16 bytes, but the row at (0, 1, 0) starts "
        "20 bytes after the origin"
    )
    assert findings[1][0] == (
        f"{LOAD4}: operand src: every row must start at a multiple of 16 bytes, but the row at (0, 0, 0) starts "
        "8 bytes after the origin"
    )
    assert findings[2][0] == (
        f"{LOAD4}: operand src: the 16 bytes of a row must be contiguous, but element (0, 0, 1) is 2 elements after "
        "(0, 0, 0) instead of 1"
    )


def test_overlapping_and_missing_registers():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, a, b = operands()
        tile = T.alloc_shared((4, 8, 4), "uint32")
        registers = T.alloc_local((4,), "uint32")
        same = registers.view(4, 8, 4, layout=TileLayout(S[(4, 8, 4) : (0, 4 @ laneid, 1 @ laneid)]))
        T.cuda.tile.apply(T.ptx[LOAD4], same, tile)
        beyond = registers.view(4, 8, 4, layout=TileLayout(S[(4, 8, 4) : (2, 4 @ laneid, 1 @ laneid)]))
        copies = TileLayout(S[(2, 8, 2) : (1, 4 @ laneid, 1 @ laneid)] + R[2 : 2 @ laneid])
        T.cuda.tile.apply(T.ptx[LOAD2], registers.view(2, 8, 2, layout=copies), tile)

    findings = refused(kernel)
    assert len(findings) == 3
    assert "slot 0" in findings[0][0] or "register" in findings[0][0]
    assert findings[1][0].endswith("reaches register 6, but there are 4")
    assert findings[1][1].startswith("beyond =")
    assert "expected a view of shape" in findings[2][0] or "replicas" in findings[2][0]


def test_replicas_are_refused():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        tile = T.alloc_shared((1, 8, 4), "uint32")
        registers = T.alloc_local((2,), "uint32")
        copies = TileLayout(S[(1, 8, 4) : (1, 4 @ laneid, 1 @ laneid)] + R[2:1])
        one = T.ptx["ldmatrix.sync.aligned.m8n8.x1.shared.b16"]
        T.cuda.tile.apply(one, registers.view(1, 8, 4, layout=copies), tile)

    ((message, line),) = refused(kernel)
    assert "replica" in message and line.startswith("T.cuda.tile.apply(one")


def test_view_layout_traps():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        registers = T.alloc_local((4,), "uint32")
        a = registers.view(4, 8, 4, layout=TileLayout(S[(4, 8) : (8, 1)]))
        b = registers.view(4, 8, 4, layout=TileLayout(S[(4, 8, 4) : (1, 8 @ laneid, 1 @ laneid)]))
        c = registers.view(4, 8, 4, layout=TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)] + 100))
        Out[0] = 0.0

    findings = refused(kernel)
    assert len(findings) == 3
    assert findings[0][0].endswith("places 32 elements, but the shape has 128")
    assert "laneid" in findings[1][0] and "31" in findings[1][0]
    assert findings[2][0].endswith("reaches register 103, but there are 4")


def test_thread_scope_and_partial_blocks():
    def thread(Out):
        T.device_entry(launch=ONE_WARP)
        d, a, b = operands()
        T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0, scope="thread")

    assert [message for message, _ in refused(thread)] == [
        f'{MMA}: all 32 lanes must be active: expected scope="warp", "warpgroup" or "cta" but got "thread"'
    ]
    for threads in (16, 48):

        def partial(Out):
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=threads))
            d, a, b = operands()
            T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0)

        assert [message for message, _ in refused(partial)] == [
            f"{MMA}: all 32 lanes must be active, but the block's {threads} threads leave the last warp partly empty"
        ]


def diverges(text: str, who: str, control: str = "different from lane to lane") -> str:
    return (
        f"{text} must be executed by {who} together, but it stands under control flow that is {control}: not "
        "all of its "
        "threads get there"
    )


def test_guards_on_lanes_in_every_spelling():
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        d, a, b = operands()
        lane = T.cuda.lane_id()
        if lane < 16:
            T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0)
        if T.cuda.lane_id() < 16:
            T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.25)
        if T.cuda.thread_idx() < 16:
            T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.5)
        if T.cuda.warp_id() == 0:
            T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.75)
            T.cuda.cta_sync()

    findings = refused(kernel)
    assert [message for message, _ in findings] == [diverges(MMA, "a whole warp")] * 3 + [
        diverges("bar.sync", "the whole CTA", "the same for a whole warp")
    ]
    assert [line[-4:] for _, line in findings] == ["0.0)", ".25)", "0.5)", "nc()"]


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

    findings = refused(kernel)
    assert len(findings) == 3
    assert "has no modifier '.x3'; legal here: .x1, .x2, .x4" in findings[0][0]
    assert "there is no such combination" in findings[1][0] and "f16.f16.f32" in findings[1][0]
    assert "there is no instruction 'lmatrix'" in findings[2][0]
