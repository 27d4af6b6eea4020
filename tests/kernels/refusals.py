"""Mistaken kernels: what they are made of, and what they are refused for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from warpjit import T, TraceError, warpjit

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
ONE_WARP = T.cuda.LaunchConfig(grid=1, block=32)


def operands(fill: int | None = 0):
    """Fragments of one instruction."""
    mma = T.ptx[MMA]
    return T.cuda.fragments(mma, "D"), T.cuda.fragments(mma, "A", fill=fill), T.cuda.fragments(mma, "B", fill=fill)


def refused(body: Callable[..., Any], *, target: str = "sm_90a") -> list[tuple[str, str]]:
    """(sentence, source line) of every finding about a kernel `body(Out)`, in order."""
    kernel = warpjit(body)
    with pytest.raises(TraceError) as caught:
        kernel.source(torch.empty(64, device="meta"), target=target)
    lines, first = inspect.getsourcelines(body)
    return [(each.message, _line(lines, first, each)) for each in caught.value.findings]


def _line(lines, first, finding):
    """The line of the kernel, not of a helper that it calls."""
    return lines[finding.loc.frames[0].line - first].strip()
