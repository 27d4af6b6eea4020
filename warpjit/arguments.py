"""The runtime half of a call's arguments: devices, addresses, bytes. The one file that touches torch tensors' memory.

What an argument is specialised on is `frontend.specialize`'s.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from warpjit.errors import ArgumentError
from warpjit.frontend.kinds import Kind, ScalarKind, Specialization, TensorKind
from warpjit.ir.dtypes import DType
from warpjit.passes.expressions import Arguments
from warpjit.passes.launch_plan import PlannedParameter

if TYPE_CHECKING:
    from warpjit.sim import GlobalMemory

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Place:
    """Where a call runs: "cpu" (the simulator), "cuda" with a device number, or "meta" (nowhere)."""

    kind: str
    index: int = 0

    def __str__(self) -> str:
        return f"cuda:{self.index}" if self.kind == "cuda" else self.kind


def place_of(specialization: Specialization, runtime: Sequence[Any]) -> Place:
    """The one device of all tensors. ArgumentError: they are on several, or on one that cannot run kernels."""
    found: dict[Place, int] = {}
    for position, (kind, value) in enumerate(zip(specialization.leaves(), runtime, strict=True)):
        if isinstance(kind, TensorKind):
            device = value.device
            found.setdefault(Place(device.type, device.index or 0), position)
    if not found:
        return Place("cuda", current_device()) if gpu_present() else Place("cpu")
    if len(found) > 1:
        names = specialization.leaf_names()
        shown = ", ".join(f"{names[position]} is on {place}" for place, position in found.items())
        raise ArgumentError(f"expected all tensors on one device, but {shown}")
    place, position = next(iter(found.items()))
    if place.kind not in ("cpu", "cuda"):
        raise ArgumentError(
            f"{specialization.leaf_names()[position]}: expected a CUDA tensor, or a CPU tensor to simulate, but it is "
            f"on {place}"
        )
    return place


def torch_module() -> Any:
    """torch, if somebody has imported it: without it there are no tensors."""
    return sys.modules.get("torch")


def gpu_present() -> bool:
    torch = torch_module()
    return torch is not None and bool(torch.cuda.is_available())


def current_device() -> int:
    """torch's current CUDA device in this thread."""
    return int(torch_module().cuda.current_device())


def plain_tensor_types() -> tuple[Any, ...]:
    """torch's own types of tensors that always stand for memory."""
    torch = torch_module()
    return () if torch is None else (torch.Tensor, torch.nn.Parameter)


def stream_reader() -> Callable[[int], int]:
    """A function from a device's number to the handle of torch's current stream there, 0 for the default stream.

    `torch.cuda.current_stream().cuda_stream` says the same in 50 times the time.
    """
    reader: Callable[[int], int] = torch_module()._C._cuda_getCurrentRawStream
    return reader


def outside_of_graphs(function: F) -> F:
    """Tell torch.compile to run a Python function, and all that it calls, as it is: it would look for a graph in it.

    A caller that is compiled is then two graphs with the call between them. Costs nothing at a call, unlike
    `torch.compiler.disable`. Without torch, and where another version of it has no such way, nothing happens.
    """
    plain: Any = getattr(function, "__func__", function)
    try:
        frames = torch_module()._C._dynamo.eval_frame
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(plain.__code__, frames._FrameExecStrategy(skip, skip))
        plain._torchdynamo_disable = True
        plain._torchdynamo_disable_msg = "a kernel runs as it is, between graphs"
    except (AttributeError, TypeError):
        pass
    return function


def planned(runtime: Sequence[Any], kinds: Sequence[Kind]) -> Arguments:
    """What the launch plan's expressions may read."""
    values: list[Any] = []
    sizes: list[Sequence[int]] = []
    strides: list[Sequence[int]] = []
    for value, kind in zip(runtime, kinds, strict=True):
        if isinstance(kind, TensorKind):
            values.append(value.data_ptr())
            sizes.append(value.shape)
            strides.append(value.stride())
        else:
            assert isinstance(kind, ScalarKind)
            values.append(number(value, kind.dtype))
            sizes.append(())
            strides.append(())
    return Arguments(values, sizes, strides)


def number(value: Any, dtype: DType) -> int | float | bool:
    """A scalar argument as Python's number of its type's kind; a 16-bit float has been rounded to one."""
    if dtype.is_int:
        return int(value)
    if dtype.is_bool:
        return bool(value)
    if dtype.bits == 16:
        from warpjit.ir.conversion import convert  # noqa: PLC0415  most kernels do without

        return float(convert(np.asarray(float(value), np.float64), dtype))
    return float(value)


def check_values(parameters: Sequence[PlannedParameter], values: Sequence[Any]) -> None:
    """ArgumentError: an integer that was computed for this launch does not fit its type."""
    for parameter, value in zip(parameters, values, strict=True):
        dtype = parameter.dtype
        if not parameter.pointer and dtype.is_int and not dtype.min <= value <= dtype.max:
            raise ArgumentError(f"{parameter.name} is {value} in this call, which does not fit {dtype}")


# ---- for the launch -----------------------------------------------------------------------------------------

FORMATS = {
    **{f"int{bits}": code for bits, code in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))},
    **{f"uint{bits}": code for bits, code in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))},
    "float32": "f",
    "float64": "d",
    "float16": "H",
    "bfloat16": "H",
    "bool": "?",
}
"""struct formats of kernel parameters; 16-bit floats travel as their bits."""


def encoded(value: Any, dtype: DType) -> Any:
    """A planned value as its struct format takes it."""
    if dtype.is_float and dtype.bits == 16:
        return int(np.asarray(value, dtype.numpy).view(np.uint16))
    return value


def half_bits(value: float, dtype: DType) -> int:
    """A number as the bits of a 16-bit float type, rounded once. Remembered: the exact way takes 20 µs, and the numbers
    that a kernel gets are few. (By their digits, since 0.0 == -0.0; a NaN has more bits than digits.)"""
    return _half_bits(value, dtype) if math.isnan(value) else _known_half_bits(value.hex(), dtype)


@functools.lru_cache(maxsize=1024)
def _known_half_bits(digits: str, dtype: DType) -> int:
    return _half_bits(float.fromhex(digits), dtype)


def _half_bits(value: float, dtype: DType) -> int:
    return int(encoded(number(value, dtype), dtype))


# ---- for the simulator ----------------------------------------------------------------------------------------


def simulated(value: Any) -> GlobalMemory:
    """A CPU tensor's storage as bytes, shared with torch."""
    from warpjit.sim import GlobalMemory  # noqa: PLC0415  launches do without

    storage = value.untyped_storage()
    size = storage.nbytes()
    data = (
        np.frombuffer((ctypes.c_uint8 * size).from_address(storage.data_ptr()), np.uint8)
        if size
        else np.zeros(0, np.uint8)
    )
    base = value.storage_offset() * value.element_size()
    return GlobalMemory(data, base, _ranges(value, base))


def _ranges(value: Any, base: int) -> tuple[tuple[int, int], ...]:
    """The bytes of the storage that a tensor's elements lie in, from the first to the last."""
    if value.numel() == 0:
        return ()
    reach = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    return ((base, base + (reach + 1) * value.element_size()),)
