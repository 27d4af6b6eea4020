"""Who else may hold or call a kernel: copies and pickles, and what runs while the kernel is being compiled."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from call_kernels import double, fill

from warpjit import T, warpjit


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
