"""Kernels in classes: the object is a compile-time constant, and must be one."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import pytest
import torch

import warpjit
from warpjit import ArgumentError, T
from warpjit.errors import TraceError


@dataclass(frozen=True)
class Scale:
    """A frozen dataclass with a kernel, and methods that the kernel calls."""

    factor: int
    bias: int = 0

    BLOCK = 32

    @property
    def doubled(self) -> int:
        return 2 * self.factor

    def applied(self, value):
        return value * self.doubled + self.lane(self.bias)

    def lane(self, bias):
        return T.cuda.lane_id() + bias

    @warpjit.jit
    def kernel(self, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=self.BLOCK))
        lane = T.cuda.lane_id()
        table = [self.applied(k) for k in range(2)]
        out[lane] = self.applied(x[lane]) + table[0] - self.lane(self.bias)

    @staticmethod
    @warpjit.jit
    def outer_static(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        out[T.cuda.lane_id()] = x[T.cuda.lane_id()] + 1

    @warpjit.jit
    @staticmethod
    def inner_static(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        out[T.cuda.lane_id()] = x[T.cuda.lane_id()] + 2

    @warpjit.jit
    @classmethod
    def of_class(cls, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=cls.BLOCK))
        out[T.cuda.thread_idx()] = x[T.cuda.thread_idx()] + cls.BLOCK


class Wider(Scale):
    """The class that the kernel is called on is the constant."""

    BLOCK = 64


class Mode(Enum):
    """An enum whose members have a kernel."""

    ADD = 1
    SUB = -1

    @warpjit.jit
    def kernel(self, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        out[lane] = x[lane] + (10 if self is Mode.ADD else 100 * self.value)


class Shape(NamedTuple):
    """A named tuple with a kernel."""

    rows: int
    columns: int

    @warpjit.jit
    def kernel(self, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        out[T.cuda.lane_id()] = x[T.cuda.lane_id()] + self.rows * self.columns


class Plain:
    """An object of this class can change."""

    def __init__(self, weight: Any = None):
        self.weight = weight

    @warpjit.jit
    def kernel(self, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))

    @warpjit.jit
    def nothing():
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))


@dataclass(frozen=True)
class Layer:
    """Frozen, but its tensor can change."""

    weight: torch.Tensor

    kernel = Scale.__dict__["kernel"]


def tensors(device: str, size: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(size, dtype=torch.int32, device=device), torch.zeros(size, dtype=torch.int32, device=device)


def expected(scale: Scale) -> list[int]:
    return [v * 2 * scale.factor + v + scale.bias for v in range(32)]


def test_a_frozen_object_is_a_constant_of_its_kernel(device):
    x, out = tensors(device)
    programs = Scale.kernel.as_method._programs
    known = []
    for scale in (Scale(3), Scale(5, 7), Scale(3), Scale(3)):
        scale.kernel(x, out)
        assert out.tolist() == expected(scale)
        known.append(len(programs))
    assert known[1] == known[3] >= 2
    bound = Scale(2, 1).kernel.bind(x, out)
    bound()
    assert out.tolist() == expected(Scale(2, 1))
    assert Scale(2).kernel.source(x, out) != Scale(3).kernel.source(x, out) == Scale(3, 0).kernel.source(x, out)
    assert Scale(2).kernel.simulate(*tensors("cpu")).steps > 0
    assert repr(Scale(2).kernel) == "<<warpjit kernel Scale.kernel> of Scale>"


def test_other_objects_and_static_and_class_methods(device):
    x, out = tensors(device)
    scale = Scale(3)
    for call, added in (
        (Mode.ADD.kernel, 10), (Mode.SUB.kernel, -100), (Shape(2, 3).kernel, 6), (scale.outer_static, 1),
        (Scale.outer_static, 1), (scale.inner_static, 2), (Scale.inner_static, 2), (scale.of_class, 32),
        (Scale.of_class, 32),
    ):  # fmt: skip
        call(x, out)
        assert out.tolist() == [v + added for v in range(32)], call
    x, out = tensors(device, 64)
    Wider.of_class(x, out)
    assert out.tolist() == [v + 64 for v in range(64)]


@pytest.mark.nvcc
def test_a_method_is_compiled_and_copied_like_a_kernel():
    x, out = tensors("cpu")
    compiled = warpjit.compile(Scale(4).kernel, x, out, target="sm_90a")
    compiled(Scale(4), x, out)
    assert out.tolist() == expected(Scale(4))
    with pytest.raises(ArgumentError, match="self"):
        compiled(Scale(5), x, out)
    assert pickle.loads(pickle.dumps(Scale.kernel)) is Scale.kernel is copy.deepcopy(Scale.kernel)


def test_an_object_that_can_change_is_refused():
    x, out = tensors("cpu")
    with pytest.raises(ArgumentError) as caught:
        Plain().kernel(x, out)
    assert str(caught.value) == (
        "self: expected an object that cannot change (of a frozen dataclass, an enum or a named tuple), since it is a "
        "compile-time constant of the kernel, but got a Plain: write @dataclass(frozen=True) above its class, or pass "
        "what the kernel needs as arguments"
    )
    with pytest.raises(ArgumentError, match=r"self\.weight is a captured tensor: pass it as an argument"):
        Layer(x).kernel(x, out)
    with pytest.raises(TraceError, match="expected a first parameter, such as self"):
        Plain().nothing()


@pytest.mark.nvcc
def test_a_method_is_warmed_up_by_calls_without_the_object(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path))
    x, out = tensors("cpu")
    Scale(41).kernel.warmup([(x, out), {"x": x, "out": out}], target="sm_90a", progress=False)
    Wider.of_class.warmup([(x, out)], target="sm_90a", progress=False)
    assert len(list(tmp_path.rglob("*/cubin/*/*"))) == 2
    with pytest.raises(ArgumentError, match=r"calls\[0\]: expected a tuple of arguments"):
        Scale(41).kernel.warmup([3])
