"""Loops whose facts take several attempts to settle: operations on tiles are traced once, when they have."""

# ruff: noqa: B007 (loop variables that nothing reads)

from __future__ import annotations

import pytest
import torch
from language_cases import reported

from warpjit import T, warpjit
from warpjit.frontend import tiles
from warpjit.kernel import resolve_target
from warpjit.passes.verify import operations

COPY = T.ptx["cp.async.cg.shared.global"]
SOURCE = torch.empty((64, 32), dtype=torch.float32)


@pytest.fixture
def applied(monkeypatch) -> list[object]:
    """The instructions of the copies that are traced from here on, one for each `tile.apply`."""
    seen: list[object] = []
    real = tiles.apply_copy
    monkeypatch.setattr(tiles, "apply_copy", lambda tracer, row, *rest: (seen.append(row), real(tracer, row, *rest)))
    return seen


def program(kernel, *args):
    return kernel.program(kernel.specialization(args, {}), resolve_target("sm_90a")).kernel


def ring():
    """A loop in a loop, each with a stage that goes round."""

    @warpjit
    def kernel(n: T.int32, x):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=128))
        buffer = T.alloc_shared((3, 16, 32))
        stage = 0
        for k in range(n):
            T.cuda.tile.apply(COPY, buffer.sub[stage], x[0:16, 0:32], scope="cta", size=16)
            stage = stage + 1 if stage + 1 < 3 else 0
            other = 2
            for q in range(n):
                T.cuda.tile.apply(COPY, buffer.sub[other], x[16:32, 0:32], scope="cta", size=16)
                other = other - 1 if other > 0 else 2

    return kernel


def test_operations_on_tiles_are_traced_once_however_many_attempts_a_loop_takes(applied):
    kernel = program(ring(), 4, SOURCE)
    assert len(applied) == 2
    assert [op.row.text for op in operations(kernel.body)].count(COPY.text) == 2
    assert (kernel.facts["stage"].lo, kernel.facts["stage"].hi) == (0, 2)
    assert (kernel.facts["other"].lo, kernel.facts["other"].hi) == (0, 2)


def test_special_registers_are_read_in_the_order_in_which_the_whole_program_uses_them():
    """A draft meets `lane` first, since it leaves out the copy, which needs `thread_x`."""

    @warpjit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=128))
        buffer = T.alloc_shared((16, 32))
        total = 0
        for k in range(n):
            T.cuda.tile.apply(COPY, buffer, x[0:16, 0:32], scope="cta", size=16)
            total = total + T.cuda.lane_id()
        out[0] = total

    body = program(kernel, 4, SOURCE, torch.empty(1, dtype=torch.int32)).body
    assert [op.operands[0].name for op in body[:2]] == ["thread_x", "lane"]


def test_what_is_wrong_with_an_operation_on_tiles_is_found_in_a_loop():
    @warpjit
    def kernel(n: T.int32, x):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=128))
        buffer = T.alloc_shared((16, 32))
        stage = 0
        for k in range(n):
            T.cuda.tile.apply(COPY, buffer, x[0:8, 0:32], scope="cta", size=16)  #: shape
            stage = stage + 1
            T.copy(buffer, x[stage : stage + 8, 0:32])  #: copy

    assert [place for place, _ in reported(kernel, 4, SOURCE)] == ["shape", "copy"]
