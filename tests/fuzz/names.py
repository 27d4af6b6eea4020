"""What stands for `T` while the oracle runs a kernel."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import memory, numbers
from .memory import Cells
from .numbers import Invalid, Number, cast, extreme, lifted
from .pairs import by_halves, pair_of
from .types import ALL, BITS

if TYPE_CHECKING:
    from .oracle import Machine, Thread


def _word(value: Any) -> int:
    number = lifted(value)
    if number.type not in ("int32", "uint32", numbers.LITERAL, numbers.LOOSE):
        raise Invalid("a word of another type")
    return number.value & 0xFFFFFFFF


def _as(value: Any, like: Any) -> Number:
    kind = like.type if isinstance(like, Number) else "uint32"
    return Number(numbers.wrapped(value, kind), kind)


def _bits_of(value: Any) -> tuple[int, int]:
    number = lifted(value)
    if BITS.get(number.type, 0) not in (32, 64):
        raise Invalid("bits of another type")
    return number.value & (1 << BITS[number.type]) - 1, BITS[number.type]


def popc(value: Any) -> Number:
    return Number(_bits_of(value)[0].bit_count(), "int32")


def clz(value: Any) -> Number:
    bits, width = _bits_of(value)
    return Number(width - bits.bit_length(), "int32")


def brev(value: Any) -> Number:
    bits, width = _bits_of(value)
    return _as(int(f"{bits:0{width}b}"[::-1], 2), value)


def funnel_left(low: Any, high: Any, n: Any, *, clamp: bool = False) -> Number:
    count = min(_word(n), 32) if clamp else _word(n) % 32
    return _as(((_word(high) << 32 | _word(low)) << count) >> 32 & 0xFFFFFFFF, low)


def funnel_right(low: Any, high: Any, n: Any, *, clamp: bool = False) -> Number:
    count = min(_word(n), 32) if clamp else _word(n) % 32
    return _as((_word(high) << 32 | _word(low)) >> count & 0xFFFFFFFF, low)


def lop3(a: Any, b: Any, c: Any, table: int) -> Number:
    x, y, z = (_word(each) for each in (a, b, c))
    rows = (4 * (x >> k & 1) + 2 * (y >> k & 1) + (z >> k & 1) for k in range(32))
    return _as(sum((table >> row & 1) << k for k, row in enumerate(rows)), a)


def prmt(a: Any, b: Any, selector: Any) -> Number:
    data, digits, found = (_word(b) << 32 | _word(a)).to_bytes(8, "little"), _word(selector), 0
    for k in range(4):
        digit = digits >> 4 * k & 15
        byte = data[digit & 7]
        found |= (0xFF * (byte >> 7) if digit & 8 else byte) << 8 * k
    return _as(found, a)


def cdiv(a: Any, b: Any) -> Number:
    left, right = lifted(a), lifted(b)
    kind, x, y = numbers.meet(left, right)
    if kind not in BITS or y <= 0:
        raise Invalid("cdiv of floats, or by 0 and less")
    return Number(numbers.wrapped(-(-x // y), kind), kind)


def reinterpret(a: Any, kind: str) -> Number:
    """Integers as floats; from float to integer a NaN has no bits of its own, so that is left out."""
    number, width = lifted(a), BITS.get(lifted(a).type, 0)
    word = numbers.wrapped(int(number.value), f"uint{width}") if width else 0
    if kind in BITS and BITS[kind] == width:
        return Number(numbers.wrapped(word, kind), kind)
    views: dict[tuple[int, str], Callable[[int], Any]] = {
        (16, "float16"): lambda bits: np.float32(np.uint16(bits).view(np.float16)),
        (16, "bfloat16"): lambda bits: np.uint32(bits << 16).view(np.float32),
        (32, "float32"): lambda bits: np.uint32(bits).view(np.float32),
        (64, "float64"): lambda bits: np.uint64(bits).view(np.float64),
    }
    if (width, kind) not in views:
        raise Invalid("bits of another width, or of a float")
    return Number(views[width, kind](word), kind)


def _check(condition: Any, message: str = "") -> None:
    if not condition:
        raise Invalid("an assertion that does not hold")


def _assume(condition: Any) -> None:
    if not condition:
        raise Invalid("an assumption that does not hold")


def _atomic(function: Callable[[Number, Number], Number], returns: bool) -> Callable[..., Number | None]:
    def run(tensor: Cells, index: Any, value: Any, *, scope: str = "gpu") -> Number | None:
        old = tensor.atomic(function, index, value)
        return old if returns else None

    return run


_ATOMIC = {
    **{name: getattr(operator, f"__{name}__") for name in ("add", "and", "or", "xor")},
    **{"min": functools.partial(extreme, True), "max": functools.partial(extreme, False)},
}


def _unroll(*bounds: Any) -> Iterable[Any]:
    if len(bounds) == 1 and not isinstance(bounds[0], int):
        return bounds[0]
    return range(*(operator.index(each) for each in bounds))


BUILTINS: dict[str, Any] = {
    **{"min": by_halves(numbers.least_of), "max": by_halves(numbers.greatest_of)},
    **{name: (lambda x, kind=kind: cast(x, kind)) for name, kind in (("int", "int32"), ("float", "float32"))},
    "bool": lambda x: cast(x, "bool"),
}


def _range(*bounds: Any, unroll: int | None = None) -> Iterable[Any]:
    """Items that are never static, with the number of the copy where there are several."""
    numbers_ = range(*(operator.index(each) for each in bounds))
    items = (Number(number, "int32") for number in numbers_)
    return items if unroll is None else ((item, count % unroll) for count, item in enumerate(items))


class Names:
    """`T`: each name asks the machine which thread runs."""

    def __init__(self, machine: Machine):
        self.machine = machine
        for kind in ALL:
            setattr(self, kind, functools.partial(self._converted, kind))
        self.min, self.max = BUILTINS["min"], BUILTINS["max"]
        self.float16x2, self.bfloat16x2 = pair_of("float16"), pair_of("bfloat16")
        self.abs, self.fma, self.sqrt, self.rcp = abs, by_halves(numbers.fma), numbers.sqrt, numbers.rcp
        self.floor, self.ceil, self.trunc, self.round = numbers.floor, numbers.ceil, numbers.trunc, numbers.nearest
        self.popc, self.clz, self.brev, self.lop3, self.prmt, self.cdiv = popc, clz, brev, lop3, prmt, cdiv
        self.funnel_shift_left, self.funnel_shift_right = funnel_left, funnel_right
        self.reinterpret, self.assume, self.unroll, self.range = reinterpret, _assume, _unroll, _range
        self.device_assert = _check
        self.load, self.store = memory.load, memory.store
        self.cuda = SimpleNamespace(
            lane_id=lambda: Number(self.thread.index % 32, "int32"),
            warp_id=lambda: Number(self.thread.index // 32, "int32"),
            thread_idx=lambda: Number(self.thread.index, "int32"),
            block_idx=lambda: Number(self.thread.block, "int32"),
            block_dim=lambda: machine.block,
            LaunchConfig=lambda grid, block: None,
        )
        for name, function in _ATOMIC.items():
            setattr(self, f"atomic_{name}", _atomic(function, True))
            setattr(self, f"red_{name}", _atomic(function, False))

    @property
    def thread(self) -> Thread:
        assert self.machine.thread is not None
        return self.machine.thread

    def _converted(self, kind: str, value: Any) -> Number:
        return cast(value, kind, literal=True)

    def cast(self, value: Any, kind: str, *, rounding: str = "", saturate: bool | None = None) -> Number:
        if not rounding and saturate is None:
            return cast(value, kind)
        return numbers.cast_as_said(value, kind, rounding, saturate)

    def device_entry(self, *, launch: Any) -> None:
        """The launch is known from GRID and BLOCK."""

    def alloc_local(self, shape: Any, kind: str) -> Cells:
        return Cells.unwritten(shape, kind)

    def alloc_shared(self, shape: Any, kind: str) -> Cells:
        """The CTA's: the first thread to come makes it."""
        thread = self.thread
        if thread.allocated == len(thread.shared):
            thread.shared.append(Cells.unwritten(shape, kind))
        thread.allocated += 1
        return thread.shared[thread.allocated - 1]
