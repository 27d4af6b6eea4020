"""The types of the language: scalar types, tensor annotations, runtime sizes, compile-time constants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from warpjit.errors import TraceError, WarpjitError
from warpjit.ir import dtypes
from warpjit.ir.dtypes import DType
from warpjit.layout import ComposeLayout, TileLayout
from warpjit.record import record


@record
class ScalarType:
    """A scalar type: as an annotation a runtime argument of this type, called in a kernel a conversion to it.

    `T.float32(x)` of a number known while tracing is a literal of this type (it must fit); of a scalar it
    converts as CUDA does (float to integer toward zero, saturating; integer to integer modulo 2**bits; to
    float to nearest even). It may stand wherever a dtype is asked for.
    """

    dtype: DType

    @property
    def bits(self) -> int:
        """The width of a value."""
        return self.dtype.bits

    def __call__(self, value: Any) -> Any:
        raise TraceError(f"T.{self.dtype.name}(...) means something only inside a function decorated with @warpjit")

    def __repr__(self) -> str:
        return f"T.{self.dtype.name}"


@record
class Dynamic:
    """A runtime size (`T.dynamic`). The same name is the same size wherever it stands."""

    name: str
    multiple_of: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TraceError(f"T.dynamic: expected a name but got {self.name!r}")
        if isinstance(self.multiple_of, bool) or not isinstance(self.multiple_of, int) or self.multiple_of < 1:
            raise TraceError(f"T.dynamic({self.name!r}): expected multiple_of >= 1 but got {self.multiple_of!r}")


def dynamic(name: str, *, multiple_of: int = 1) -> Dynamic:
    """A size that is known at the launch only: one cubin serves every value.

    name         what messages call it; the same name in several shapes must have one value in a call
    multiple_of  a promise, checked at each call, that the size is a multiple of this

    In the kernel the object itself (captured) and `A.shape[i]` are the same int32 scalar.
    """
    return Dynamic(name, multiple_of)


@dataclass(frozen=True)
class Tensor:
    """A tensor parameter's annotation, or the description of an argument for `warpjit.compile`.

    shape    each item an int (must match), a string (a static size under a name, the same wherever the name
             stands), or `T.dynamic(...)` (a runtime size); None: any shape, specialised on
    dtype    a name such as "float16" or a scalar type; None: any, specialised on
    layout   "default": the argument must be packed row-major; None: strides are specialised on by their class
             (size 1: any; 0; 1; packed; free)
    align    bytes that the base address is promised to be a multiple of, checked at each call
    noalias  the memory is reached through this parameter only: the pointer becomes `__restrict__`
    """

    shape: tuple[int | str | Dynamic, ...] | None = None
    dtype: DType | None = None
    layout: str | TileLayout | ComposeLayout | None = None
    align: int | None = None
    noalias: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.shape is not None:
            items = tuple(self.shape) if isinstance(self.shape, tuple | list) else (self.shape,)
            object.__setattr__(self, "shape", items)
            for item in items:
                _check_extent(item)
        if self.dtype is not None:
            object.__setattr__(self, "dtype", as_dtype(self.dtype))
        if self.layout not in (None, "default"):
            raise TraceError(f'T.Tensor: expected layout="default" or None but got {self.layout!r}')
        if self.align is not None and (type(self.align) is not int or self.align < 1 or self.align & (self.align - 1)):
            raise TraceError(f"T.Tensor: expected align to be a power of two but got {self.align!r}")
        if not isinstance(self.noalias, bool):
            raise TraceError(f"T.Tensor: expected noalias to be True or False but got {self.noalias!r}")


def _check_extent(item: object) -> None:
    if isinstance(item, bool) or not isinstance(item, int | str | Dynamic):
        raise TraceError(f"T.Tensor: expected a size to be an int, a name or T.dynamic(...) but got {item!r}")
    if isinstance(item, int) and item < 0:
        raise TraceError(f"T.Tensor: expected a size of 0 or more but got {item}")


class constexpr:
    """Annotation of a parameter that is a compile-time constant; parameters after `*` are so without it."""


def as_dtype(value: Any) -> DType:
    """A DType from a name, a scalar type, or anything that prints as `torch.<name>`. TraceError lists the names."""
    if isinstance(value, ScalarType):
        return value.dtype
    if isinstance(value, str | DType):
        return dtypes.dtype(value)
    text = str(value)
    if text.startswith("torch."):
        return dtypes.dtype(text.removeprefix("torch."))
    raise WarpjitError(f"expected a data type but got {value!r}; the names are {', '.join(dtypes.DTYPES)}")


SCALAR_TYPES = {
    name: ScalarType(dtype)
    for name, dtype in dtypes.DTYPES.items()
    if (dtype.is_int and dtype.bits >= 8) or dtype.is_bool or dtype.is_float or dtype.is_pair
}
