"""The data types of the language: their names, widths, PTX suffixes, numpy types and promotion.

Known here: how a type is called and stored, and which type two operands meet in. Not here: how values convert
(`conversion`) and compute (`numerics`); torch's types, which other files reach by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from warpjit.errors import TraceError


@dataclass(frozen=True, eq=False)
class DType:
    """One data type. There is one object of each: types are compared and looked up at every operation.

    name   as torch spells it, e.g. "bfloat16"
    kind   "float" | "int" (signed) | "uint" | "bool" | "barrier" | "pair" (two floats in one word, see `element`)
    bits   width in memory; bool is one byte that holds 0 or 1
    ptx    the type suffix in the PTX manual without the dot (section "Fundamental Types" and "Alternate
           Floating-Point Data Formats"), e.g. "bf16"; "pred" for bool, whose memory suffix is `ptx_word`
    """

    name: str
    kind: str
    bits: int
    ptx: str

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], DType], tuple[str]]:
        """A copy, or what another process gets, is that process's own object of the type."""
        return _named, (self.name,)

    @cached_property
    def bytes(self) -> int:
        """Bytes of one element standing alone (4-bit types: 1; two of them share a byte only when packed)."""
        return (self.bits + 7) // 8

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type that holds this type's values in the simulator (one element a slot, also below 8 bits)."""
        return _numpy_types()[self.name]

    @property
    def ptx_word(self) -> str:
        """The untyped PTX suffix of the same width, e.g. "b16"; the suffix that a bool is loaded and stored with."""
        return f"b{self.bits}"

    @cached_property
    def is_float(self) -> bool:
        return self.kind == "float"

    @cached_property
    def is_int(self) -> bool:
        """Whether this is an integer, signed or not (bool is not)."""
        return self.kind in ("int", "uint")

    @cached_property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @cached_property
    def is_pair(self) -> bool:
        """Whether a value is two 16-bit floats in one 32-bit word, the first in the low half."""
        return self.kind == "pair"

    @cached_property
    def passed(self) -> bool:
        """Whether a number of a call can have this type: floats of 16 bits and more, integers of 8 and more, bool."""
        return self.is_bool or (self.is_int and self.bits >= 8) or (self.is_float and self.bits >= 16)

    @cached_property
    def element(self) -> DType:
        """Of a pair the type of its halves, of any other type itself."""
        return dtype(self.name.removesuffix("x2")) if self.is_pair else self

    @cached_property
    def signed(self) -> bool:
        """Whether negative values exist."""
        return self.kind in ("int", "float")

    @cached_property
    def min(self) -> int:
        """The smallest value of an integer or bool. Raises TraceError for other kinds."""
        self._require_range()
        return -(1 << self.bits - 1) if self.kind == "int" else 0

    @cached_property
    def max(self) -> int:
        """The largest value of an integer or bool. Raises TraceError for other kinds."""
        self._require_range()
        return {"int": (1 << self.bits - 1) - 1, "uint": (1 << self.bits) - 1, "bool": 1}[self.kind]

    @property
    def unsigned_word(self) -> DType:
        """The unsigned integer type of the same width."""
        return dtype(f"uint{self.bits}")

    def _require_range(self) -> None:
        if not (self.is_int or self.is_bool):
            raise TraceError(f"{self.name} has no smallest and largest integer: expected an integer type")


float16 = DType("float16", "float", 16, "f16")
bfloat16 = DType("bfloat16", "float", 16, "bf16")
float32 = DType("float32", "float", 32, "f32")
float64 = DType("float64", "float", 64, "f64")
float8_e4m3fn = DType("float8_e4m3fn", "float", 8, "e4m3")
float8_e5m2 = DType("float8_e5m2", "float", 8, "e5m2")
int4, int8, int16, int32, int64 = (DType(f"int{n}", "int", n, f"s{n}") for n in (4, 8, 16, 32, 64))
uint4, uint8, uint16, uint32, uint64 = (DType(f"uint{n}", "uint", n, f"u{n}") for n in (4, 8, 16, 32, 64))
float16x2, bfloat16x2 = DType("float16x2", "pair", 32, "f16x2"), DType("bfloat16x2", "pair", 32, "bf16x2")
bool_ = DType("bool", "bool", 8, "pred")
mbarrier = DType("mbarrier", "barrier", 64, "b64")

DTYPES: dict[str, DType] = {
    each.name: each
    for each in (
        *(float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2),
        *(int4, int8, int16, int32, int64),
        *(uint4, uint8, uint16, uint32, uint64),
        *(float16x2, bfloat16x2, bool_, mbarrier),
    )
}

# What only operands of matrix instructions hold, in 32-bit registers: single bits, and float32 whose low 13 bits are
# not looked at. No tensor has these types.
uint1 = DType("uint1", "uint", 1, "b1")
tf32 = DType("tf32", "float", 32, "tf32")


def _named(name: str) -> DType:
    return next(each for each in (*DTYPES.values(), uint1, tf32) if each.name == name)


_APART = {"bool": np.bool_, "mbarrier": np.uint64, "float16x2": np.uint32, "bfloat16x2": np.uint32}


@cache
def _numpy_types() -> dict[str, np.dtype[Any]]:
    import ml_dtypes  # noqa: PLC0415  a launch does without

    named: dict[str, np.dtype[Any]] = {
        name: np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else _APART.get(name, name))
        for name in DTYPES
    }
    return named | {"uint1": np.dtype(np.uint8), "tf32": np.dtype(np.float32)}


@cache
def _by_numpy() -> dict[np.dtype[Any], DType]:
    kinds = _numpy_types()
    return {kinds[name]: each for name, each in DTYPES.items() if each is not mbarrier and not each.is_pair}


# Types that are only stored and converted: arithmetic has no meaning for them, so neither has promotion.
_STORAGE_ONLY = (float8_e4m3fn, float8_e5m2, int4, uint4, mbarrier)


def dtype(name: str | DType) -> DType:
    """The type called `name`; a DType is returned as it is. Raises TraceError that lists the legal names."""
    if isinstance(name, DType):
        return name
    found = DTYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise TraceError(f"expected the name of a data type but got {name!r}; the names are {', '.join(DTYPES)}")
    return found


def dtype_of(array: np.ndarray[Any, Any]) -> DType:
    """The data type that an array's elements have (of words that stand for pairs or barriers: uint32, uint64).

    Raises TraceError for arrays of other types.
    """
    found = _by_numpy().get(array.dtype)
    if found is None:
        raise TraceError(f"no data type of the language is stored as numpy {array.dtype}")
    return found


@cache
def promote(a: DType, b: DType) -> DType:
    """The type in which operands of types `a` and `b` meet.

    torch's promotion (torch.promote_types) for bool, int8 to int64, uint8 and floats of 16 bits and more; two
    unsigned types give the wider. Raises TraceError, which suggests a cast, for uint16 to uint64 with a signed
    integer, and for different types of which one is a pair or has no arithmetic (8-bit floats, 4-bit integers,
    mbarrier).
    """
    if a == b:
        return a
    for pair, other in ((a, b), (b, a)):
        if pair.is_pair:
            raise TraceError(f"{pair} and {other} have no common type: expected two {pair}, T.{pair}(x) of a number x")
    for storage, other in ((a, b), (b, a)):
        if storage in _STORAGE_ONLY:
            raise TraceError(
                f"{storage} has no arithmetic with {other}: convert it first, for example to float32 or int32"
            )
    if a.is_float and b.is_float:
        return float32 if a.bits == b.bits else _wider(a, b)
    for one, other in ((a, b), (b, a)):
        if one.is_float or other.is_bool:
            return one
    return _promote_integers(a, b)


def _promote_integers(a: DType, b: DType) -> DType:
    if a.kind == b.kind:
        return _wider(a, b)
    unsigned, signed = (a, b) if a.kind == "uint" else (b, a)
    if unsigned == uint8:
        return signed if signed.bits > 8 else int16
    raise TraceError(
        f"{a} and {b} have no common type: cast one of them, for example the {unsigned} operand with "
        f"T.{_holder(unsigned)}(...) or the {signed} operand with T.{unsigned}(...)"
    )


def _holder(unsigned: DType) -> DType:
    """The signed type that holds every value of an unsigned one, or the widest there is."""
    return {16: int32, 32: int64}.get(unsigned.bits, int64)


def _wider(a: DType, b: DType) -> DType:
    return a if a.bits > b.bits else b
