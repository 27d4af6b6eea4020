"""The values that a kernel's parameters have while it is traced."""

from __future__ import annotations

from dataclasses import dataclass, field

from warpjit.frontend import arithmetic
from warpjit.frontend.builder import Builder
from warpjit.frontend.language.types import Dynamic
from warpjit.frontend.specialize import ConstantKind, Kind, ScalarKind, Specialization, Stride, TensorKind, TupleKind
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import GlobalBuffer, Local, Parameter
from warpjit.layout import S, TileLayout

MAX_SIZE = (1 << 31) - 1


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
            facts = Facts(0, MAX_SIZE, item.multiple_of, Uniformity.GRID)
            self.sizes[item.name] = self.builder.planned(("size", index, axis), dtypes.int32, facts, item.name)
        return self.sizes[item.name]

    def _stride(self, kind: TensorKind, shape: tuple[int | Scalar, ...], index: int, axis: int) -> int | Scalar:
        known = {Stride.ANY: 0, Stride.ZERO: 0, Stride.ONE: 1}.get(kind.strides[axis])
        if known is not None:
            return known
        if kind.strides[axis] is Stride.PACKED:
            return self._packed(shape[axis + 1 :])
        multiple = max(16 * 8 // kind.dtype.bits, 1) if kind.strides[axis] is Stride.FREE16 else 1
        narrow = dtypes.int32 if kind.narrow else dtypes.int64
        facts = Facts(0, MAX_SIZE if kind.narrow else narrow.max, multiple, Uniformity.GRID)
        return self.builder.planned(("stride", index, axis), narrow, facts, "stride")

    def _packed(self, sizes: tuple[int | Scalar, ...]) -> int | Scalar:
        product: int | Scalar = 1
        for size in reversed(sizes):
            if isinstance(product, int) and isinstance(size, int):
                product *= size
            else:
                product = size if product == 1 else arithmetic.binary(self.builder, "mul", product, size)
        return product


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
