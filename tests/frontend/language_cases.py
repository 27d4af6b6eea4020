"""What the language's tests share: where findings point, and which rows a kernel became.

Lines that a test expects an error at end in a comment `#: label`; `reported` gives the labels of the lines that the
findings are about, read from the file by the line number that the finding carries.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from warpjit import Kernel, TraceError
from warpjit.errors import Finding, Loc
from warpjit.ir.nodes import Op
from warpjit.kernel import resolve_target
from warpjit.passes.verify import operations

LABEL = re.compile(r"#: (\w+)")


def label(loc: Loc) -> str:
    """The label on the line of a place; the line itself where there is none."""
    assert loc.innermost is not None
    line = linecache.getline(loc.innermost.file, loc.line)
    found = LABEL.search(line)
    return found.group(1) if found else line.strip()


def findings(kernel: Kernel, *args: Any, **constants: Any) -> tuple[Finding, ...]:
    """What tracing and verifying the kernel for these arguments finds."""
    with pytest.raises(TraceError) as caught:
        kernel.source(*args, **constants)
    return caught.value.findings


def reported(kernel: Kernel, *args: Any, **constants: Any) -> list[tuple[str, str]]:
    """(label of the line, sentence) of each finding."""
    return [(label(finding.loc), finding.message) for finding in findings(kernel, *args, **constants)]


def rows(kernel: Kernel, *args: Any, **constants: Any) -> list[str]:
    """The texts of the operations of the kernel's IR, in order."""
    return [op.row.text for op in ops(kernel, *args, **constants)]


def ops(kernel: Kernel, *args: Any, **constants: Any) -> Iterator[Op]:
    specialization = kernel.specialization(args, constants)
    yield from operations(kernel.program(specialization, resolve_target("sm_90a")).kernel.body)


def kinds(kernel: Kernel, *args: Any, **constants: Any) -> list[str]:
    """The kinds of the top-level statements that are not operations: For, While, If, ..."""
    specialization = kernel.specialization(args, constants)
    body = kernel.program(specialization, resolve_target("sm_90a")).kernel.body
    return [type(node).__name__ for node in body if not isinstance(node, Op)]


def ints(device: str, *size: int) -> torch.Tensor:
    """An int32 tensor that holds what no kernel writes."""
    return torch.full(size or (32,), -12345, dtype=torch.int32, device=device)
