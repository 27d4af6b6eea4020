"""What a case's machine lacks or has: each makes it so, in the case's folder; its docstring says so in the document."""

from __future__ import annotations

from pathlib import Path

import pytest

import warpjit.compiled


def no_compiler(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """On a machine with neither a GPU nor a compiler:"""
    patch.setenv("CUDA_HOME", str(folder))
    patch.setattr(warpjit.compiled, "present", lambda: None)


def cpu_forbidden(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """With `WARPJIT_CPU=error`:"""
    patch.setenv("WARPJIT_CPU", "error")


def cpu_misspelt(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """With `WARPJIT_CPU=yes`:"""
    patch.setenv("WARPJIT_CPU", "yes")


def impatient(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.setattr("warpjit.sim.machine._TESTS", 100)
    patch.setattr("warpjit.sim.machine._READS", 100)
