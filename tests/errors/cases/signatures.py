"""Definitions of kernels: their parameters and annotations, and their source."""

import sys
from pathlib import Path

import pytest
from catalogue import Case, Topic

from warpjit.errors import ArgumentError, SourceError


def a_file(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Python runs a file, not a program given by -c."""
    patch.setattr(sys, "orig_argv", ["python", "example.py"])


TOPIC = Topic(
    "Calling a kernel",
    "Definitions of kernels",
    (
        Case("""
            @warpjit
            def kernel(*tensors):
                pass

            kernel(torch.zeros(4))
            """, "kernel: a kernel cannot have *tensors: pass a tuple"),
        Case("""
            @warpjit
            def kernel(A: int):
                pass

            kernel(torch.zeros(4))
            """,
             "kernel: the annotation of A, <class 'int'>, is not T.Tensor(...), a scalar type such as T.int32, or "
             "T.constexpr"),
        Case("""
            from __future__ import annotations

            @warpjit
            def kernel(A: T.Tensor(N)):
                pass

            kernel(torch.zeros(4))
            """,
             "kernel: the annotation of A, 'T.Tensor(N)', could not be evaluated: NameError: name 'N' is not defined"),
        Case("""
            @warpjit
            def kernel(A: T.float8_e4m3fn):
                pass

            kernel(1.0)
            """, "kernel: A: a number of a call cannot be a float8_e4m3fn"),
        Case("""
            class Group:
                @warpjit
                def kernel():
                    pass

            Group().kernel()
            """, "kernel(): expected a first parameter, such as self, of a kernel in a class but got none"),
        Case('T.Tensor((8, 1.5), "float32")',
             "T.Tensor: expected a size to be an int, a name or T.dynamic(...) but got 1.5"),
        Case('T.Tensor((8, -1), "float32")', "T.Tensor: expected a size of 0 or more but got -1"),
        Case('T.Tensor((8,), "float99")',
             "expected the name of a data type but got 'float99'; the names are float16, bfloat16, float32, float64, "
             "float8_e4m3fn, float8_e5m2, int4, int8, int16, int32, int64, uint4, uint8, uint16, uint32, uint64, "
             "float16x2, bfloat16x2, bool, mbarrier"),
        Case('T.Tensor((8,), "float32", layout="packed")',
             "T.Tensor: expected layout=\"default\" or None but got 'packed'"),
        Case('T.Tensor((8,), "float32", align=12)', "T.Tensor: expected align to be a power of two but got 12"),
        Case('T.Tensor((8,), align="16")', "T.Tensor: expected align to be a power of two but got '16'"),
        Case("T.Tensor((8,), noalias=1)", "T.Tensor: expected noalias to be True or False but got 1"),
        Case("T.dynamic(3)", "T.dynamic: expected a name but got 3"),
        Case('T.dynamic("M", multiple_of=0)', "T.dynamic('M'): expected multiple_of >= 1 but got 0"),
        Case("warpjit(3)", "expected a Python function but got int 3", error=SourceError),
        Case("warpjit(strict=5)", "warpjit: strict: expected a bool but got int 5", error=ArgumentError),
        Case("warpjit(lambda A: A)(torch.zeros(4))",
             "example.py, line 1: expected a function of def but got a lambda: a kernel begins with "
             "T.device_entry(...) and is made of statements; a lambda can be a helper", error=SourceError),
        Case("""
            @warpjit
            async def kernel(A):
                pass
            """, "expected a function of def or lambda but kernel is an async def", error=SourceError),
        Case("""
            exec("def plain(A): pass", space := {})
            warpjit(space["plain"])(torch.zeros(4))
            """,
             "the source of plain cannot be had: '<string>' cannot be read. Kernels are traced from their source, so "
             "define them in a file or a notebook cell (not on standard input, and not through exec without a "
             "linecache entry).", error=SourceError, given=a_file),
        Case("""
            from pathlib import Path

            text = "def kernel(A):\\n    pass\\n"
            Path("kernels.py").write_text(text)
            exec(compile(text, "kernels.py", "exec"), space := {})
            Path("kernels.py").write_text("def kernel(A, B):\\n    pass\\n")
            warpjit(space["kernel"])
            """,
             "kernels.py, line 1: the text of kernel is not what Python compiled: the file was edited after it was "
             "imported, or something rewrote the code. Import it afresh.", error=SourceError),
        Case("""
            from pathlib import Path

            text = "def kernel(A):\\n    pass\\n"
            Path("kernels.py").write_text(text)
            exec(compile(text, "kernels.py", "exec"), space := {})
            Path("kernels.py").write_text("def kernel(A:\\n")
            warpjit(space["kernel"])
            """,
             "kernels.py, line 1: the file no longer parses ('(' was never closed); it was edited after kernel was "
             "imported from it.", error=SourceError),
    ),
    frame="",
)  # fmt: skip
