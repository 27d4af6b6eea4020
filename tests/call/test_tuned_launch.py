"""Tuned kernels against a stand-in for the driver: a warm call is a kernel's, and a capture is left alone."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
from call_kernels import CudaTensor, nothing_new
from driver_stand_in import Fake

from warpjit import Config, LaunchError, T, warpjit
from warpjit.tuner import tuner

pytestmark = pytest.mark.nvcc

N = T.dynamic("N")


def fresh(*blocks: int, **settings: Any) -> Any:
    @warpjit.autotune([Config(BLOCK=block) for block in blocks], **settings)
    @warpjit
    def scaled(X: T.Tensor((N,), "float32"), Out: T.Tensor((N,), "float32"), by: T.float32, *, BLOCK, times=1):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(N, BLOCK), block=BLOCK))
        i = T.cuda.block_idx("x") * BLOCK + T.cuda.thread_idx("x")
        if i < N:
            Out[i] = X[i] * by * times

    return scaled


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(tuner, "device_name", lambda place: "a device")


def launches(gpu: Fake) -> list[str]:
    return [line.split(" shared")[0] for line in gpu.log if line.startswith("launch")]


@pytest.mark.parametrize("key", [[], ["by"]], ids=["no number", "a number in the key"])
def test_a_warm_call_makes_nothing_anew(gpu: Fake, monkeypatch: pytest.MonkeyPatch, key: list[str]) -> None:
    gpu.parameters(8, 8, 4, 4)
    scaled = fresh(64, key=key)
    x, out = CudaTensor(100), CudaTensor(100)
    scaled(x, out, 2.0)
    scaled(x, out, by=2.0, times=3)
    with nothing_new(monkeypatch):
        monkeypatch.setattr(scaled, "_run", None)
        scaled(x, out, 2.0)
        scaled(x, out, 2.0, times=3)
        scaled(CudaTensor(100, pointer=0x1000), out, by=2.0)
    assert launches(gpu) == ["launch 2,1,1 x 64,1,1"] * 5


def test_other_sizes_take_the_slow_path_once(gpu: Fake) -> None:
    gpu.parameters(8, 8, 4, 4)
    scaled = fresh(64)
    for size in (100, 200, 100, 200):
        scaled(CudaTensor(size), CudaTensor(size), 2.0)
    assert launches(gpu) == ["launch 2,1,1 x 64,1,1", "launch 4,1,1 x 64,1,1"] * 2


def test_in_a_capture_it_is_refused_before_the_driver(gpu: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    scaled = fresh(32, 64)
    with pytest.raises(LaunchError) as caught:
        scaled(CudaTensor(8), CudaTensor(8), 2.0)
    assert str(caught.value).endswith(
        "scaled would be tuned while a CUDA graph is captured: call it once before the capture with arguments of the "
        "same kinds"
    )
    assert [line for line in gpu.log if not line.startswith("attribute")] == []
