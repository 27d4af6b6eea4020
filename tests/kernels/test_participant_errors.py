"""An instruction of a whole warp that not all lanes, or not all warps, come to: refused in every spelling."""

# Names in kernels that are refused are never used.

from __future__ import annotations

import pytest
from refusals import MMA, ONE_WARP, operands, refused

from warpjit import T


def test_thread_scope():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d, a, b = operands()
        T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0, scope="thread")

    assert refused(kernel) == [
        (
            f'{MMA}: all 32 lanes must be active: expected scope="warp", "warpgroup" or "cta" but got "thread"',
            'T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0, scope="thread")',
        )
    ]


@pytest.mark.parametrize("threads", [16, 48])
def test_a_block_with_a_part_of_a_warp(threads):
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=threads))
        d, a, b = operands()
        T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0)

    assert refused(kernel) == [
        (
            f"{MMA}: all 32 lanes must be active, but the block's {threads} threads leave the last warp partly empty",
            "T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0)",
        )
    ]


def test_a_warpgroup_needs_four_warps():
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        d, a, b = operands()
        T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0, scope="warpgroup")
        T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0, scope="cta")

    assert [message for message, _ in refused(kernel)] == [
        f'{MMA}: scope "warpgroup" needs a block of whole warpgroups (128 threads), but it has 64',
        f"{MMA}: operand D: expected a view of shape (2, *batch, M, N, 16, 8), but got (1, 1, 16, 8)",
    ]


def diverges(text: str, who: str, control: str = "different from lane to lane") -> str:
    return (
        f"{text} must be executed by {who} together, but it stands under control flow that is {control}: not "
        "all of its "
        "threads get there"
    )


@pytest.mark.parametrize("spelling", ["bound", "inline", "thread", "conditional"])
def test_guards_on_lanes_in_every_spelling(spelling):
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        d, a, b = operands()
        if spelling == "bound":
            lane = T.cuda.lane_id()
            if lane < 16:
                T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0)
        elif spelling == "inline":
            if T.cuda.lane_id() < 16:
                T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0)
        elif spelling == "thread":
            if T.cuda.thread_idx() < 16:
                T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0)
        else:
            if T.cuda.thread_idx() % 32 > 3 and Out[0] > 0.0:
                return
            T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0)

    assert refused(kernel) == [(diverges(MMA, "a whole warp"), "T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.0)")]


def test_roles_of_warps_may_multiply_but_not_meet_all_others():
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        d, a, b = operands()
        if T.cuda.warp_id() == 0:
            T.cuda.tile.apply(T.ptx[MMA], d, a, b, 0.75)
            T.cuda.cta_sync()

    assert refused(kernel) == [
        (diverges("bar.sync", "the whole CTA", "the same for a whole warp"), "T.cuda.cta_sync()")
    ]
