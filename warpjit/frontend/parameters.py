"""The values that a kernel's parameters have while it is traced."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from warpjit.frontend import arithmetic
from warpjit.frontend.builder import Builder
from warpjit.frontend.kinds import (
    BASE_ALIGNMENT,
    ConstantKind,
    Kind,
    ScalarKind,
    Specialization,
    Stride,
    TensorKind,
    TupleKind,
)
from warpjit.frontend.language.types import Dynamic
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import GlobalBuffer, Local, Parameter
from warpjit.layout import S, TileLayout


@dataclass
class Arguments:
    """Parameters as values, and the buffers behind tensors in the order of the arguments."""

    builder: Builder
    sizes: dict[str, Scalar | int]
    names: dict[str, Value] = field(default_factory=dict)
    buffers: list[GlobalBuffer] = field(default_factory=list)
    index: int = 0

    def value(self, name: str, kind: Kind) -> Value:
        if isinstance(kind, ConstantKind):
            return kind.value
        if isinstance(kind, TupleKind):
            return tuple(self.value(f"{name}_{i}", item) for i, item in enumerate(kind.items))
        index, self.index = self.index, self.index + 1
        if isinstance(kind, ScalarKind):
            facts = fact.of_type(kind.dtype, Uniformity.GRID)
            return self.builder.planned(("arg", index), kind.dtype, facts, name)
        return self._tensor(name, kind, index)

    def _tensor(self, name: str, kind: TensorKind, index: int) -> TensorValue:
        shape = tuple(self._size(item, index, axis) for axis, item in enumerate(kind.shape))
        for axis, symbol in kind.names:
            extent = shape[axis]
            assert isinstance(extent, int)
            self.sizes[symbol] = extent
        strides = tuple(self._stride(kind, shape, index, axis) for axis in range(len(shape)))
        buffer = GlobalBuffer(self.builder.unique(name), kind.dtype, index, kind.align, not kind.narrow, kind.noalias)
        self.buffers.append(buffer)
        extents = tuple(extent for extent in shape if isinstance(extent, int) and extent > 0)
        steps = tuple(stride for stride in strides if isinstance(stride, int))
        if shape and len(extents) == len(steps) == len(shape):
            layout = TileLayout(S[extents:steps])
            return TensorValue(name, kind.dtype, shape, buffer, layout, align=kind.align, loc=self.builder.loc)
        return TensorValue(name, kind.dtype, shape, buffer, None, strides, align=kind.align, loc=self.builder.loc)

    def _size(self, item: int | Dynamic, index: int, axis: int) -> int | Scalar:
        if isinstance(item, int):
            return item
        if item.name not in self.sizes:
            facts = Facts(0, dtypes.int32.max, item.multiple_of, Uniformity.GRID)
            self.sizes[item.name] = self.builder.planned(("size", index, axis), dtypes.int32, facts, item.name)
        return self.sizes[item.name]

    def _stride(self, kind: TensorKind, shape: tuple[int | Scalar, ...], index: int, axis: int) -> int | Scalar:
        known, right = kind.strides[axis], shape[axis + 1 :]
        if known in (Stride.ZERO, Stride.ONE):
            return int(known is Stride.ONE)
        if known is Stride.ANY:  # never multiplied by anything but 0: what a packed tensor has, where that is static
            return math.prod(size for size in right if isinstance(size, int)) if _static(right) else 0
        if known is Stride.PACKED:
            return self._packed(right, kind)
        multiple = max(BASE_ALIGNMENT * 8 // kind.dtype.bits, 1) if known is Stride.FREE16 else 1
        return self._planned(("stride", index, axis), kind, multiple)

    def _packed(self, sizes: tuple[int | Scalar, ...], kind: TensorKind) -> int | Scalar:
        """The product of the sizes. Of a narrow tensor it fits 32 bits, whatever the ranges of its factors say."""
        static = math.prod(size for size in sizes if isinstance(size, int))
        runtime = [size for size in sizes if isinstance(size, Scalar)]
        if not runtime or static == 0:
            return static
        expression = arithmetic.plan_of(runtime[0])
        for size in runtime[1:]:
            expression = ("*", expression, arithmetic.plan_of(size))
        if static != 1:
            expression = ("*", expression, static)
        multiple = static * math.prod(size.facts.multiple for size in runtime)
        return self._planned(expression, kind, multiple)

    def _planned(self, expression: Any, kind: TensorKind, multiple: int) -> Scalar:
        """A stride as a hidden argument, in the type that holds every offset of the tensor."""
        dtype = dtypes.int32 if kind.narrow else dtypes.int64
        return self.builder.planned(expression, dtype, Facts(0, dtype.max, multiple, Uniformity.GRID), "stride")


def _static(sizes: tuple[int | Scalar, ...]) -> bool:
    return all(isinstance(size, int) for size in sizes)


def bind_parameters(builder: Builder, sizes: dict[str, Scalar | int], specialization: Specialization) -> Arguments:
    """The parameters of one specialisation. `sizes` receives what each size name and `T.dynamic` stands for."""
    arguments = Arguments(builder, sizes)
    for name, kind in specialization.kinds:
        arguments.names[name] = arguments.value(name, kind)
    return arguments


def kernel_parameters(builder: Builder, buffers: list[GlobalBuffer], used: set[Local]) -> tuple[Parameter, ...]:
    """The generated kernel's parameters: all tensors, then each planned scalar that the body uses."""
    tensors = [Parameter(buffer, ("arg", buffer.index)) for buffer in buffers]
    scalars = [Parameter(local, source) for local, source in builder.sources.items() if local in used]
    return tuple(tensors + scalars)
