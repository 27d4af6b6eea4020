"""Small kernels that tests of the call share, and what stands for CUDA tensors where there is no GPU."""

from __future__ import annotations

import builtins
import ctypes
import hashlib
import io
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from warpjit import T, kernel, stages, store, warpjit
from warpjit.frontend import source

M = T.dynamic("M")


@warpjit
def double(X, Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    if lane < X.shape[0]:
        Out[lane] = X[lane] + X[lane]


@warpjit
def fill(Out: T.Tensor((32,), "float32"), value: T.float32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = value


@warpjit
def rows(X: T.Tensor((M, 8), "int32"), Out: T.Tensor((M, 8), "int32")):
    """A warp for each row."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=M, block=32))
    row, lane = T.cuda.block_idx("x"), T.cuda.lane_id()
    if lane < 8:
        Out[row, lane] = X[row, lane] + 1


@warpjit
def transfer(X, Out):
    """Element by element, whatever the strides."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=X.shape[0], block=32))
    row, lane = T.cuda.block_idx("x"), T.cuda.lane_id()
    if lane < X.shape[1]:
        Out[row, lane] = X[row, lane]


class CudaTensor:
    """What the call reads of a CUDA tensor."""

    def __init__(
        self,
        *shape: int,
        dtype: torch.dtype = torch.float32,
        pointer: int = 0x7F0000000000,
        index: int = 0,
        strides: tuple[int, ...] | None = None,
    ):
        self.shape, self.dtype, self._pointer = torch.Size(shape), dtype, pointer
        self.device = torch.device("cuda", index)
        self._strides = strides or torch.empty(shape, device="meta").stride()

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def data_ptr(self) -> int:
        return self._pointer

    def is_neg(self) -> bool:
        return False


def _refuse(what: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"a second call may not use {what}, with {args[:2]}")

    return refuse


FORBIDDEN = (
    (stages, "trace"),
    (kernel, "present_target"),
    (source, "of_function"),
    (store.Store, "get"),
    (builtins, "open"),
    (io, "open"),
    (os, "open"),
    (os, "stat"),
    (os, "listdir"),
    (subprocess, "run"),
    (subprocess.Popen, "__init__"),
    (hashlib, "sha256"),
    (ctypes, "CDLL"),
)


@contextmanager
def nothing_new(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside, nothing is traced, hashed, read from disk or run."""
    with monkeypatch.context() as patch:
        for owner, name in FORBIDDEN:
            patch.setattr(owner, name, _refuse(f"{getattr(owner, '__name__', owner)}.{name}"))
        yield
