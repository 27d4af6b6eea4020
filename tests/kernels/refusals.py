"""How tests look at what a kernel is refused for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from warpjit import TraceError, warpjit


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
