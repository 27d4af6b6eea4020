"""What a case's machine lacks or has: each makes it so, in the case's folder; its docstring says so in the document."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import warpjit.compiled


def no_compiler(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """On a machine with neither a GPU nor a compiler:"""
    patch.setenv("CUDA_HOME", "/nowhere")
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


def empty_path(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Without `CUDA_HOME`, and with no nvcc on `PATH`:"""
    patch.delenv("CUDA_HOME", raising=False)
    patch.setenv("PATH", "/nowhere")


def _program(folder: Path, name: str, text: str) -> Path:
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def false_nvcc(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """With an nvcc on `PATH` that is a script of another kind:"""
    _program(folder, "nvcc", "echo no such option")
    patch.delenv("CUDA_HOME", raising=False)
    patch.setenv("PATH", "bin")


def slow_nvcc(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """With `WARPJIT_COMPILE_TIMEOUT=0.2`, and an nvcc on `PATH` that hangs:"""
    _program(folder, "nvcc", "exec /bin/sleep 60")
    patch.delenv("CUDA_HOME", raising=False)
    patch.setenv("PATH", "bin")
    patch.setenv("WARPJIT_COMPILE_TIMEOUT", "0.2")


def misspelt_timeout(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """With `WARPJIT_COMPILE_TIMEOUT=5min`:"""
    false_nvcc(patch, folder)
    patch.setenv("WARPJIT_COMPILE_TIMEOUT", "5min")


def no_pycuda(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """With nvcc, but without PyCUDA:"""
    _program(folder, "nvcc", "exit 1")
    patch.setenv("CUDA_HOME", str(folder))
    patch.setitem(sys.modules, "pycuda", None)  # type: ignore[arg-type]


def no_nvdisasm(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Without nvdisasm:"""
    patch.delenv("CUDA_HOME", raising=False)
    patch.setenv("PATH", "/nowhere")
    patch.setattr("warpjit.cuda.disassemble._packaged", lambda: None)


def false_nvdisasm(patch: pytest.MonkeyPatch, folder: Path) -> None:
    _program(folder, "nvdisasm", "echo not a cubin; exit 1")
    patch.setenv("CUDA_HOME", str(folder))
