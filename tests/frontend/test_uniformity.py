"""Which threads agree on a value decides which barriers are legal."""

from __future__ import annotations

import torch
from language_cases import ints, reported

from warpjit import T, warpjit

FEW = torch.empty(64, dtype=torch.int32)


# ---- uniformity: barriers and collectives -------------------------------------------------------------------------

TOGETHER = (
    "bar.sync must be executed by the whole CTA together, but it stands under control flow that is {}: not all of its "
    "threads get there"
)
WARP, LANE = "the same for a whole warp", "different from lane to lane"


def test_barriers_under_control_flow_that_all_share(device, run):
    @warpjit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=64))
        t = T.cuda.thread_idx()
        s = T.alloc_shared((64,), "int32")
        v = 0
        if T.cuda.block_idx() == 0 and n > 1:
            T.cuda.cta_sync()
        for i in range(x[0]):
            s[t] = i + t
            T.cuda.cta_sync()
            if x[i] == 2:
                break
            v += s[63 - t]
            T.cuda.cta_sync()
        if n == 77:
            return
        T.cuda.cta_sync()
        out[t] = v

    x = torch.tensor([4, 1, 2, 0], dtype=torch.int32, device=device)
    out = ints(device, 64)
    run(kernel, 5, x, out)
    assert out.tolist() == [2 * (63 - t) + 1 for t in range(64)]


def test_barriers_that_not_all_reach():
    @warpjit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        lane, warp = T.cuda.lane_id(), T.cuda.warp_id()
        if lane < 16:
            T.cuda.cta_sync()  #: arm
        if warp == 0:
            T.cuda.cta_sync()  #: warp
            T.cuda.warp_sync()
        for _ in range(lane):
            T.cuda.cta_sync()  #: loop
        for i in range(10):
            T.cuda.cta_sync()  #: left
            if x[lane] == i:
                break
        n = 0
        while n < lane:
            T.cuda.cta_sync()  #: turns
            n += 1
        k = 3 if lane < 4 else 5
        if k == 3:
            T.cuda.cta_sync()  #: chosen
        if lane == 0 or warp == 1:
            T.cuda.cta_sync()  #: either
        if x[warp] == 1:
            T.cuda.cta_sync()  #: loaded

    got = reported(kernel, FEW, FEW)
    expected = [("arm", LANE), ("warp", WARP), ("loop", LANE), ("left", LANE), ("turns", LANE), ("chosen", LANE),
                ("either", LANE), ("loaded", WARP)]  # fmt: skip
    text = got[0][1].partition(" must")[0]
    assert got == [(name, TOGETHER.replace("bar.sync", text).format(phrase)) for name, phrase in expected]


def test_barriers_after_some_lanes_left():
    @warpjit
    def returned(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        lane = T.cuda.lane_id()
        if x[0] > 2:
            if lane == 5:
                return
        T.cuda.cta_sync()  #: after

    @warpjit
    def in_a_loop(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        lane = T.cuda.lane_id()
        for i in range(4):
            T.cuda.cta_sync()  #: again
            if x[i] > 2:
                if lane == 5:
                    return
        T.cuda.cta_sync()  #: after

    @warpjit
    def in_an_expanded_loop(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        for i in T.unroll(2):
            T.cuda.cta_sync()  #: again
            if x[i] > 2 and x[i] < T.cuda.lane_id():
                return

    assert [name for name, _ in reported(returned, FEW, FEW)] == ["after"]
    assert [name for name, _ in reported(in_a_loop, FEW, FEW)] == ["again", "after"]
    assert [name for name, _ in reported(in_an_expanded_loop, FEW, FEW)] == ["again"]


def test_uniformity_of_carried_names():
    @warpjit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        lane = T.cuda.lane_id()
        a = b = c = 0
        for i in range(n):
            a = a + i
            if x[i] > 0:
                b = b + 1
            if lane > i:
                c = c + 1
        if a > 3:
            T.cuda.cta_sync()
        if b > 3:
            T.cuda.cta_sync()
        if c > 3:
            T.cuda.cta_sync()  #: lane
        stop = 0
        for i in range(n):
            stop = i
            if x[lane] == i:
                break
        if stop == 1:
            T.cuda.cta_sync()  #: left

    assert [name for name, _ in reported(kernel, 3, FEW, FEW)] == ["lane", "left"]
