"""Addresses of accesses that are constants apart share what moves, also where their sum may wrap on its way."""

from __future__ import annotations

import re
from collections.abc import Callable

import torch

from warpjit import T, warpjit

ROWS = T.dynamic("rows")
SHAPE = (T.dynamic("batch"), ROWS, 16)


@warpjit
def shift_rows(X: T.Tensor(SHAPE, "float32"), Y: T.Tensor(SHAPE, "float32"), first):
    """Each batch's rows from `first` on, eight of them, two rows down; the row before goes to the last."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=SHAPE[0], block=32))
    source, target = X.sub[T.cuda.block_idx()], Y.sub[T.cuda.block_idx()]
    row, chunk = T.cuda.lane_id() // 4, T.cuda.lane_id() % 4 * 4
    values = T.load(source[first + row : first + row + 1, chunk : chunk + 4], width=16)
    T.store(target[first + row + 2 : first + row + 3, chunk : chunk + 4], values, width=16)
    before = T.load(source[first - 1 : first, chunk : chunk + 4], width=16, where=row == 0)
    T.store(target[first + 10 : first + 11, chunk : chunk + 4], before, width=16, where=row == 0)


def test_constants_apart(device: str, run: Callable[..., None]) -> None:
    """With strides that only the launch knows, and a constant below zero besides."""
    x = torch.randn(3, 20, 2, 16, device=device)[:, :, 0]
    y = torch.zeros(3, 20, 16, device=device)
    run(shift_rows, x, y, 5)
    assert torch.equal(x[:, 5:13], y[:, 7:15]) and torch.equal(x[:, 4], y[:, 15])
    assert not y[:, :7].any() and not y[:, 16:].any()


@warpjit
def sum_of_rows(X: T.Tensor((T.dynamic("batch"), ROWS, 16), "float32"), Y: T.Tensor((16,), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=16))
    lane, last = T.cuda.thread_idx(), X.sub[X.shape[0] - 1]
    total = T.float32(0.0)
    for i in range(ROWS // 4):
        for row in T.unroll(4):
            total = total + last[4 * i + row, lane]
    Y[lane] = total


def test_what_moves_is_computed_once(device: str, run: Callable[..., None]) -> None:
    x, y = torch.arange(3 * 8 * 16.0, device=device).view(3, 8, 16), torch.empty(16, device=device)
    run(sum_of_rows, x, y)
    assert torch.equal(y, x[2].sum(0))
    text = sum_of_rows.source(T.Tensor(None, "float32"), T.Tensor(None, "float32"))
    (loop,) = re.findall(r"for \(int i = 0.*?\n    }", text, re.S)
    assert [f"+ {64 * row})" in loop for row in (1, 2, 3)] == [True] * 3
    assert len(set(re.findall(r"X \+ (\w+) \+", loop))) == 1
