"""Guards: they hold where all facts are the same, and nowhere else; torch's own are trusted only if they do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from call_kernels import CudaTensor

from warpjit import arguments, guards


class Special(torch.Tensor):
    """A subclass of a user."""


base = torch.zeros((8, 8))
TENSORS: list[Any] = [
    base,
    torch.zeros((8, 8)),
    base.t(),
    base[:4],
    base[:, :4],
    base[:1].expand(8, 8),
    base.view(64),
    base.view(2, 4, 8),
    base.half(),
    base.bfloat16(),
    base.to(torch.int32),
    torch.empty((8, 8), device="meta"),
    torch._neg_view(base),
    torch.zeros((8, 8), dtype=torch.complex64).conj().imag,
    torch.nn.Parameter(base),
    base.as_subclass(Special),
    base[:0],
    torch.zeros(()),
    CudaTensor(8, 8),
    CudaTensor(8, 8, index=1),
]


@pytest.fixture(params=["torch", "python"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[Any]], guards.Guard]:
    if request.param == "python":
        monkeypatch.setattr(guards, "_torch_guards", lambda: None)
    return guards.guard


@pytest.fixture
def fresh() -> Iterator[None]:
    """torch's guards are tried out anew, before and after."""
    guards._torch_guards.cache_clear()
    yield
    guards._torch_guards.cache_clear()


@pytest.mark.parametrize("first", range(len(TENSORS)))
def test_a_guard_holds_where_the_facts_are_the_same(make: Callable[..., guards.Guard], first: int) -> None:
    tensor, beside = TENSORS[first], torch.zeros(3)
    alone, second = make([tensor]), make([beside, tensor])
    for other in TENSORS:
        same = guards.facts(other) == guards.facts(tensor)
        assert alone(other) is same
        assert second(torch.ones(3), other) is same
        assert second(torch.ones(4), other) is False
    for other in (None, 5, "text", object(), base.to_sparse()):
        assert alone(other) is False


def test_one_tensor_in_two_places(make: Callable[..., guards.Guard]) -> None:
    x, y, z = torch.zeros(4), torch.zeros(4), torch.zeros(5)
    guard = make([x, x, z])
    assert guard(x, x, z) is True and guard(x, y, z) is True and guard(y, y, torch.ones(5)) is True
    assert guard(x, z, z) is False and guard(x, x, x) is False


def test_without_tensors_the_current_device_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    current = [0]
    monkeypatch.setattr(arguments, "current_device", lambda: current[0])
    guard = guards.guard([])
    assert guard() is True
    current[0] = 1
    assert guard() is False


def test_torchs_guards_are_trusted_here(fresh: None) -> None:
    assert guards._torch_guards() is not None
    assert type(guards.guard([base])).__name__ == "builtin_function_or_method"


@pytest.mark.parametrize("blind", ["dtype", "shape", "stride", "device", "is_neg", "all", "gone", "strict"])
def test_torchs_guards_are_not_trusted_where_they_are_blind(
    fresh: None, monkeypatch: pytest.MonkeyPatch, blind: str
) -> None:
    names = [name for name in ("dtype", "shape", "stride", "device", "is_neg") if name != blind]

    def facts(tensor: Any) -> list[Any]:
        found = [getattr(tensor, name, None) for name in names]
        return [each() if callable(each) else each for each in found]

    class Blind:
        def __init__(self, *tensors: Any, **how: Any) -> None:
            self.wanted = [facts(tensor) for tensor in tensors]

        def check(self, *tensors: Any) -> bool:
            if blind in ("all", "strict"):
                return blind == "all"
            return [facts(tensor) for tensor in tensors] == self.wanted

    owner = torch._C._dynamo.guards
    if blind == "gone":
        monkeypatch.delattr(owner, "TensorGuards")
    else:
        monkeypatch.setattr(owner, "TensorGuards", Blind)
    assert guards._torch_guards() is None
    for first, second in itertools.product(TENSORS[:6], TENSORS[:6]):
        assert guards.guard([first])(second) is (guards.facts(first) == guards.facts(second))
