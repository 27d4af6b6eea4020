"""`t.cast(dtype)`: a fragment's elements converted where they are, two at a time where an instruction does that.

Which lane and register holds what is `fragments`' matter, and what a conversion gives `arithmetic.convert`'s: pairs
give the same bits.
"""

from __future__ import annotations

import numpy as np

from warpjit.frontend import arithmetic, memory
from warpjit.frontend.addresses import static_int
from warpjit.frontend.builder import Builder
from warpjit.frontend.fragments import dense, in_registers, regs, sizes
from warpjit.frontend.language.types import as_dtype
from warpjit.frontend.registers import registers_tensor
from warpjit.frontend.values import Scalar, TensorValue, Value
from warpjit.frontend.views import reinterpret
from warpjit.frontend.words import refuse_cast
from warpjit.ir import dtypes
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType
from warpjit.ir.nodes import Registers, Slot
from warpjit.isa.row import Row
from warpjit.isa.scalar import CONVERT_PAIR, FLOAT8_PAIR
from warpjit.isa.scalar_float8 import TYPES as FLOAT8_TYPES


def cast(builder: Builder, tensor: TensorValue, dtype: Value) -> TensorValue:
    """`t.cast(dtype)`: new registers with the same elements, converted where they are."""
    layout, target = in_registers(tensor, "cast"), as_dtype(dtype)
    refuse_cast(tensor)
    source = regs(builder, tensor)
    (count,) = sizes(source)
    result = registers_tensor(builder, sizes(tensor), target, dense(tensor, layout), tensor.name)
    mine = regs(builder, result)
    pairs = count % 2 == 0 and tensor.dtype != target and _in_pairs(tensor.dtype, target)
    for index in range(0, count, 2 if pairs else 1):
        if pairs:
            _store_pair(builder, mine, index, _load_pair(builder, source, index))
        else:
            memory.store(builder, mine, (index,), memory.load(builder, source, (index,)))
    return result


def _in_pairs(source: DType, target: DType) -> bool:
    """Whether an instruction converts two elements on the way."""
    return bool({source, target} & set(FLOAT8_TYPES)) or (target.name, source.name) in CONVERT_PAIR


def _load_pair(builder: Builder, source: TensorValue, index: int) -> tuple[Scalar, Scalar]:
    """Elements `index` and the next one; 8-bit floats as float16."""
    row = FLOAT8_PAIR.get(("float16", source.dtype.name))
    if row is None or not _adjacent(source):
        low, high = (memory.load(builder, source, (index + part,)) for part in (0, 1))
        return low, high
    both = memory.load(builder, reinterpret(builder, source, dtypes.uint16), (index // 2,))
    word = builder.operate(row, (builder.atom(both),), fact.of_type(dtypes.uint32))
    first, second = (memory.half_of(builder, word, dtypes.float16, part) for part in (0, 1))
    return first, second


def _adjacent(source: TensorValue) -> bool:
    """Whether elements follow each other from an even one on."""
    assert source.layout is not None
    places = source.layout.enumerate().get("m", np.zeros(1, np.int64)) + static_int(source.offset, "an offset")
    return bool(places[0] % 2 == 0 and (np.diff(places) == 1).all())


def _store_pair(builder: Builder, result: TensorValue, index: int, pair: tuple[Scalar, Scalar]) -> None:
    """Elements `index` and the next one of a dense tensor."""
    target = result.dtype
    row = _row_of(target, pair[0].dtype)
    if row is None:
        for part, value in enumerate(pair):
            memory.store(builder, result, (index + part,), value)
        return
    low, high = (builder.atom(arithmetic.convert(builder, each, dtypes.float32)) for each in pair)
    packed = row.operands[0].dtype
    assert packed is not None and isinstance(result.base, Registers)
    if packed == result.base.word:
        builder.issue(row, (Slot(result.base, index // 2), high, low))
        return
    value = builder.operate(row, (high, low), fact.of_type(packed))
    memory.store(builder, reinterpret(builder, result, packed), (index // 2,), value)


def _row_of(target: DType, source: DType) -> Row | None:
    """What makes one word of two float32. Two float16 become bfloat16 by it as well."""
    if source.bits == 16 and target.bits == 16 and source == target:
        return None
    short = source.is_float and source.bits <= 32
    return FLOAT8_PAIR.get((target.name, "float32")) or CONVERT_PAIR.get((target.name, "float32")) if short else None
