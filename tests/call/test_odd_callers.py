"""Who else may hold or call a kernel: copies and pickles, and what runs while the kernel is being compiled."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from call_kernels import double, fill
from driver_stand_in import in_thread

import warpjit as package
from warpjit import T, warpjit
from warpjit.cuda import toolchain
from warpjit.kernels.gemm import Tile
from warpjit.kernels.matmul import matmul


class Model(torch.nn.Module):
    """A module that holds a kernel."""

    def __init__(self, kernel: Any) -> None:
        super().__init__()
        self.kernel, self.weight = kernel, torch.nn.Parameter(torch.ones(32))


def test_a_kernel_is_copied_and_pickled_as_a_function_is() -> None:
    assert copy.copy(double) is double and copy.deepcopy(double) is double
    model = copy.deepcopy(Model(fill))
    assert model.kernel is fill
    assert pickle.loads(pickle.dumps([double, double])) == [double, double]
    assert pickle.loads(pickle.dumps(double, protocol=0)) is double


def test_a_kernel_without_a_name_to_import_is_not_pickled() -> None:
    @warpjit
    def local(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = 1.0

    with pytest.raises((pickle.PicklingError, AttributeError), match=r"local"):
        pickle.dumps(local)


@pytest.mark.nvcc
def test_a_kernel_may_be_called_for_while_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finalizer or a signal handler comes at any moment, in the same thread."""

    @warpjit
    def local(Out: T.Tensor((32,), "float32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = 0.375

    real, inside = toolchain.compile_cubin, list[bytes]()

    def compile_cubin(*args: Any, **how: Any) -> Any:
        if not inside:
            inside.append(b"")
            inside.append(package.compile(local, target="sm_90a").cubin)
        return real(*args, **how)

    monkeypatch.setattr(toolchain, "compile_cubin", compile_cubin)
    cubin = in_thread(lambda: local.cubin(target="sm_90a"), seconds=60)
    assert isinstance(cubin, bytes) and inside[1] == cubin


def test_compiled_callers_run_kernels_between_graphs() -> None:
    """torch.compile finds graphs before and after a call, and none in it, cold or warm."""
    graphs = 0

    def backend(module: Any, inputs: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return module.forward

    @warpjit
    def local(X, Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = X[T.cuda.lane_id()] + 1.0

    bound = local.bind(torch.zeros(32), torch.zeros(32))

    def caller(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        local(x * 2.0, out)
        middle = out * 3.0
        bound(middle, out)
        return matmul(out.half()[None], out.half()[:, None], tile=Tile(16, 16, 32, 16, 16, 2)).float() - 1.0

    x = torch.arange(32.0) / 32
    expected = ((x * 2 + 1) * 3 + 1).square().sum() - 1
    compiled = torch.compile(caller, backend=backend)
    for _ in range(3):
        torch.testing.assert_close(compiled(x, torch.zeros(32)).squeeze(), expected, rtol=1e-2, atol=0)
    assert graphs == 4  # of what stands before, between and after three calls
