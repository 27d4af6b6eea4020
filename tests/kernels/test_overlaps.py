"""Results that lie where an input does: refused by every function of the package's kernels, and nothing else is."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from warpjit import ArgumentError
from warpjit.kernels import w4a16
from warpjit.kernels.attention import attention
from warpjit.kernels.facts import check_disjoint
from warpjit.kernels.layernorm import layernorm
from warpjit.kernels.matmul import matmul
from warpjit.kernels.matmul_int8 import matmul_int8
from warpjit.kernels.rmsnorm import rmsnorm
from warpjit.kernels.softmax import softmax

SENTENCE = "apart from .*, but they overlap"


def octets(x: torch.Tensor) -> set[int]:
    """The addresses of all bytes of a tensor."""
    found = {x.data_ptr()} if x.numel() else set()
    for extent, step in zip(x.shape, x.stride(), strict=True):
        found = {at + i * step * x.element_size() for at in found for i in range(extent)}
    return {at + i for at in found for i in range(x.element_size())}


def view(memory: torch.Tensor, order: random.Random) -> torch.Tensor:
    shape = [order.choice((0, 1, 2, 3, 3, 4)) for _ in range(order.randrange(4))]
    strides = [order.choice((0, 1, 2, 3, 4, 6, 8, 12, 16)) for _ in shape]
    return memory.view(order.choice((torch.int8, torch.int16, torch.int32))).as_strided(
        shape, strides, order.randrange(12)
    )


def refused(out: torch.Tensor, other: torch.Tensor, **options: Any) -> bool:
    try:
        check_disjoint(out, other=other, **options)
    except ArgumentError:
        return True
    return False


def test_no_byte_of_both_passes() -> None:
    memory, order, apart = torch.zeros(1024, dtype=torch.int8), random.Random(1), 0
    for _ in range(3000):
        x, y = view(memory, order), view(memory, order)
        if not refused(x, y):
            assert not octets(x) & octets(y), (x.shape, x.stride(), y.shape, y.stride())
            apart += 1
    assert apart > 300


def test_what_lies_between_passes() -> None:
    memory = torch.zeros(4, 6, 8)
    assert not refused(memory[:2], memory[2:])
    assert not refused(memory[..., :4], memory[..., 4:])
    assert not refused(memory[:, ::2], memory[:, 1::2])
    assert not refused(memory[:, 1], memory[:, 2:5])
    assert not refused(memory[:, 1].mT, memory[:, 2, :4])
    assert not refused(memory.view(torch.int16)[..., ::2], memory.view(torch.int16)[..., 1::2])
    assert refused(memory[:, :2], memory[:, 1:])
    assert refused(memory, memory[3, 5, 7])
    assert not refused(memory[:0], memory)


def test_only_the_same_elements_at_the_same_places_are_itself() -> None:
    memory = torch.zeros(4, 4)
    assert refused(memory, memory)
    assert not refused(memory, memory.view(4, 4), itself=True)
    assert refused(memory, memory.mT, itself=True)
    assert refused(memory, memory.view(torch.int32), itself=True)
    assert refused(memory[:2], memory[1:3], itself=True)


def half(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.float16)


def product(out: torch.Tensor, x: torch.Tensor) -> Any:
    packed = w4a16.pack(torch.zeros(64, 64, dtype=torch.float16), group=32)
    return w4a16.matmul(x, packed, out=out)


square, heads = half(64, 64), half(1, 2, 16, 16)
bytes_ = torch.zeros(64, 64, dtype=torch.int8)
CALLS = {
    "matmul, a": lambda: matmul(square, half(64, 64), out=square),
    "matmul, b": lambda: matmul(half(64, 64), square[:, :32], out=square[:, 16:48]),
    "matmul_int8": lambda: matmul_int8(bytes_, bytes_.new_zeros(64, 16), out=bytes_.view(torch.int32)),
    "w4a16": lambda: product(square, square),
    "attention, q": lambda: attention(heads, half(1, 2, 16, 16), half(1, 2, 16, 16), out=heads),
    "attention, v": lambda: attention(half(1, 2, 16, 16), half(1, 2, 16, 16), heads, out=heads),
    "softmax": lambda: softmax(square, out=square.mT),
    "rmsnorm": lambda: rmsnorm(square[:32], out=square[16:48]),
    "rmsnorm, weight": lambda: rmsnorm(square[:32], square[40], out=square[32:]),
    "layernorm": lambda: layernorm(square, out=square.mT),
    "layernorm, bias": lambda: layernorm(square[:32], None, square[40], out=square[32:]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_each_function_refuses(call: Any) -> None:
    with pytest.raises(ArgumentError, match=SENTENCE):
        call()
