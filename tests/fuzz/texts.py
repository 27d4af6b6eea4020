"""The emitted CUDA of many programs in one run of nvcc, with the warnings on that the package turns off."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from warpjit import config
from warpjit.cuda import toolchain
from warpjit.cuda.prelude import FUNCTIONS, prelude
from warpjit.isa.target import Target

from .trial import Case

KERNELS_A_TEXT = 24
HARMLESS = (
    "declared but never referenced",
    "set but never used",
    "expression has no effect",
    "loop is not reachable",
    "statement is unreachable",
    "division by zero",
    "is used before its value is set",
)
"""Warnings about what a random program does not use. A float may be divided by a constant 0. The first of several
elements in a word is put beside what the word holds by then, which is nothing."""


def emitted(case: Case, target: Target) -> tuple[str, str]:
    """A program's CUDA and the name of its kernel."""
    arguments = tuple(case.arguments("cpu").values())
    found = case.kernel.built(case.kernel.specialization(arguments, {}), target).emitted
    return found.text, found.entry


def together(texts: Sequence[tuple[str, str]]) -> str:
    """Several kernels as one text: each text begins with the functions that it calls, the first hides all others."""
    renamed = [re.sub(rf"\b{entry}\(", f"{entry}_{index}(", text) for index, (text, entry) in enumerate(texts)]
    return prelude(FUNCTIONS) + "\n".join(renamed)


def complaints(texts: Sequence[tuple[str, str]], target: Target) -> Iterator[str]:
    """What nvcc says of them that hints at a mistake: errors, and warnings that are not `HARMLESS`."""
    flags = [flag for flag in toolchain.compile_flags(target, ("-fmad=false",)) if flag != "-w"]
    nvcc = toolchain.find_nvcc(config.read())
    for start in range(0, len(texts), KERNELS_A_TEXT):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kernels.cu")
            path.write_text(together(texts[start : start + KERNELS_A_TEXT]))
            run = subprocess.run(
                [nvcc, *flags, "-cubin", "-o", str(path.with_suffix(".cubin")), str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
        for line in (run.stdout + run.stderr).splitlines():
            hint = "warning" in line or "error" in line
            if hint and not any(each in line for each in HARMLESS) and not line.startswith("Remark"):
                yield line
