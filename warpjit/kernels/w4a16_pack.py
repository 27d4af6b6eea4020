"""Weights of 4 bits: quantised, and packed in the order in which the lanes of the kernel of `w4a16_product` read them.

A panel is 64 rows; of 128 of its columns, 4 KB follow each other: for each 16 rows and each 64 columns 16 bytes a lane,
which are a word for each 16 columns, a nibble for each of the 8 elements that the lane has in operand A of the matrix
instruction. Which these are is asked from the instruction's row: nibble i + 4 * h is half h of register i, so that the
halves of a register are 16 bits apart and one mask has both.

Scale and zero of a row and group are a word: the scale's 16 bits below, above those of -(2 ** p + zero), where p is the
number of bits of the type's fraction: put below the exponent of 2 ** p, a nibble q reads as 2 ** p + q, so that one sum
leaves q - zero, exactly. Of a panel and group, the words that a lane needs follow each other.

Left out: the product (`w4a16_product`), quantisers that look at activations: `pack_quantized` takes what they found.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from warpjit.errors import ArgumentError
from warpjit.frontend.specialize import brief
from warpjit.isa import holds

PANEL, DEPTH = 64, 128
"""Rows and columns that the packed matrix is filled up to multiples of."""
LEVELS = 15
INTEGERS = ("torch.uint8", "torch.int8", "torch.int16", "torch.int32", "torch.int64")
SMALLEST_GROUP = 32


@dataclass(frozen=True)
class Half:
    """A 16-bit float.

    name      as torch spells it
    ptx       as PTX does
    fraction  bits of it: 2 ** fraction is the number whose last place is 1
    power     the bits of 2 ** fraction
    """

    name: str
    ptx: str
    fraction: int
    power: int

    @property
    def mma(self) -> str:
        return f"mma.sync.aligned.m16n8k16.row.col.f32.{self.ptx}.{self.ptx}.f32"

    @classmethod
    def of(cls, name: str, dtype: Any) -> Half:
        """Of a type of torch. Raises ArgumentError about `name`: another one."""
        if str(dtype) not in HALVES:
            raise ArgumentError(f"{name}: expected float16 or bfloat16 but got {dtype}")
        return HALVES[str(dtype)]


HALVES = {
    "torch.float16": Half("float16", "f16", 10, 0x6400),
    "torch.bfloat16": Half("bfloat16", "bf16", 7, 0x4300),
}


@dataclass(frozen=True, eq=False)
class Packed:
    """A matrix of (n, k) weights of 4 bits; made by `pack` and `pack_quantized`.

    words    int32 (⌈n / 64⌉, ⌈k / 128⌉, 4, 2, 32, 4): 16 rows, 64 columns, lane, 16 columns
    factors  int32 (⌈n / 64⌉, groups, 8, 8): row in 8, and twice 16 rows + half of the 16; scale and zero
    shape    (n, k) without the rows and columns that fill the last panel up
    group    columns that share a scale and a zero
    dtype    of the scales, and so of a product's other side: float16 or bfloat16
    """

    words: Any
    factors: Any
    shape: tuple[int, int]
    group: int
    dtype: Any

    @property
    def half(self) -> Half:
        """What is known of `dtype`."""
        return HALVES[str(self.dtype)]

    @property
    def nbytes(self) -> int:
        """Of words and factors together: what a product reads at least."""
        return int(self.words.nbytes + self.factors.nbytes)

    @property
    def scales(self) -> Any:
        """(n, ⌈k / group⌉) of `dtype`."""
        return self._factor(0)

    @property
    def zeros(self) -> Any:
        """(n, ⌈k / group⌉) of uint8, 0 to 15."""
        return (-self._factor(1).float() - 2**self.half.fraction).to(_torch().uint8)

    def _factor(self, half: int) -> Any:
        panels, groups = self.factors.shape[:2]
        halves = self.factors.view(self.dtype).view(panels, groups, 8, 4, 2, 2)[..., half]
        rows = halves.permute(0, 3, 4, 2, 1).reshape(panels * PANEL, groups)
        return rows[: self.shape[0], : -(-self.shape[1] // self.group)].contiguous()

    def quantized(self) -> Any:
        """(n, k) of uint8, 0 to 15: the nibbles."""
        torch = _torch()
        lanes = self.words.transpose(-1, -2)
        tiles = torch.empty(*lanes.shape[:-1], 256, dtype=torch.uint8, device=self.words.device)
        for nibble, elements in enumerate(_elements(self.half)):
            tiles[..., list(elements)] = (lanes >> 4 * nibble & LEVELS).to(torch.uint8)
        panels, depths = lanes.shape[:2]
        whole = tiles.view(panels, depths, 4, 2, 4, 16, 16).permute(0, 2, 5, 1, 3, 4, 6)
        return whole.reshape(panels * PANEL, depths * DEPTH)[: self.shape[0], : self.shape[1]].contiguous()

    def dequantize(self) -> Any:
        """(n, k) of float32: exactly the weights that a product is made of, (q - zero) * scale."""
        scales, zeros = (
            each.float().repeat_interleave(self.group, dim=1)[:, : self.shape[1]] for each in (self.scales, self.zeros)
        )
        return (self.quantized().float() - zeros) * scales

    def to(self, device: Any) -> Packed:
        """The same weights on another device."""
        return Packed(self.words.to(device), self.factors.to(device), self.shape, self.group, self.dtype)


def pack(weight: Any, group: int = 128, dtype: Any = None) -> Packed:
    """Quantise to 4 bits, rows and groups of columns each for themselves, and pack.

    weight  (n, k), floats, finite
    group   columns that share a scale and a zero: a power of two, at least 32; the last group may be cut
    dtype   float16 or bfloat16: the type of the products' other side; None: the weight's, where it is one of them

    The smallest and the largest weight of a group (and 0, which stays 0) become the ends of 0 ... 15. Raises
    ArgumentError: another shape, type or group, numbers that are not finite, scales that leave the type's range.
    """
    torch = _torch()
    if not isinstance(weight, torch.Tensor) or weight.ndim != 2 or not weight.dtype.is_floating_point:
        raise ArgumentError(f"weight: expected a float tensor of shape (n, k) but got {_said(weight)}")
    if 0 in weight.shape:
        raise ArgumentError(f"weight: expected a matrix that is not empty but got shape {tuple(weight.shape)}")
    _check_dense("weight", weight)
    _check_group(group)
    kind = weight.dtype if dtype is None else dtype
    Half.of("dtype", kind)
    n, k = weight.shape
    groups = -(-k // group)
    grouped = torch.nn.functional.pad(weight.float(), (0, groups * group - k)).view(n, groups, group)
    low, high = grouped.amin(-1).clamp(max=0), grouped.amax(-1).clamp(min=0)
    scales = ((high - low) / LEVELS).to(kind)
    if not scales.isfinite().all():
        raise ArgumentError(f"weight: expected finite numbers with scales in {kind} but got others")
    # Where the range is 0, or too small for the type, all weights are 0.
    step = scales.float().where(scales > 0, torch.inf)
    zeros = (-low / step).round().clamp(0, LEVELS)
    q = (grouped / step[..., None]).round().add(zeros[..., None]).clamp(0, LEVELS)
    return pack_quantized(q.view(n, -1)[:, :k].to(torch.uint8), scales, zeros.to(torch.uint8), group)


def pack_quantized(q: Any, scales: Any, zeros: Any, group: int = 128) -> Packed:
    """Pack weights that were quantised before: (q - zero) * scale.

    q       (n, k) integers, 0 to 15: uint8, or signed ones
    scales  (n, ⌈k / group⌉), float16 or bfloat16, finite, on q's device
    zeros   (n, ⌈k / group⌉) integers as q's, 0 to 15, on q's device
    group   columns that share a scale and a zero: a power of two, at least 32

    Raises ArgumentError: other shapes, types, devices, or values, a tensor that is not dense or not in memory.
    """
    torch = _torch()
    for name, each in (("q", q), ("scales", scales), ("zeros", zeros)):
        if not isinstance(each, torch.Tensor) or each.ndim != 2 or 0 in each.shape:
            raise ArgumentError(f"{name}: expected a tensor of two axes that are not empty but got {_said(each)}")
        if each.device != q.device:
            raise ArgumentError(f"{name}: expected a tensor on {q.device}, as q, but got one on {each.device}")
        _check_dense(name, each)
    _check_group(group)
    half = Half.of("scales", scales.dtype)
    (n, k), groups = q.shape, -(-q.shape[1] // group)
    for name, each in (("scales", scales), ("zeros", zeros)):
        if tuple(each.shape) != (n, groups):
            raise ArgumentError(f"{name}: expected shape {(n, groups)} but got {tuple(each.shape)}")
    for name, each in (("q", q), ("zeros", zeros)):
        if str(each.dtype) not in INTEGERS or int(each.min()) < 0 or int(each.max()) > LEVELS:
            raise ArgumentError(f"{name}: expected integers from 0 to {LEVELS} but got others, of {each.dtype}")
    if not scales.isfinite().all():
        raise ArgumentError("scales: expected finite numbers but got others")
    pad = torch.nn.functional.pad
    padded = pad(q.to(torch.uint8), (0, -k % DEPTH, 0, -n % PANEL))
    panels, depths = padded.shape[0] // PANEL, padded.shape[1] // DEPTH
    tiles = (
        padded.view(panels, 4, 16, depths, 2, 4, 16).permute(0, 3, 1, 4, 5, 2, 6).reshape(panels, depths, 4, 2, 4, 256)
    )
    words = torch.zeros(panels, depths, 4, 2, 4, 32, dtype=torch.int32, device=q.device)
    for nibble, elements in enumerate(_elements(half)):
        words |= tiles[..., list(elements)].int() << 4 * nibble
    shifted = (-(zeros.float() + 2**half.fraction)).to(scales.dtype)
    whole_groups = -(-depths * DEPTH // group)
    halves = pad(torch.stack([scales, shifted], dim=-1), (0, 0, 0, whole_groups - groups, 0, -n % PANEL))
    factors = halves.view(torch.int32).view(panels, 4, 2, 8, whole_groups).permute(0, 4, 3, 1, 2)
    return Packed(
        words.transpose(-1, -2).contiguous(),
        factors.reshape(panels, whole_groups, 8, 8).contiguous(),
        (n, k),
        group,
        scales.dtype,
    )


@functools.cache
def _elements(half: Half) -> tuple[tuple[int, ...], ...]:
    """For each nibble the element of each lane, as a row-major index into 16 rows of 16."""
    places = [[holds(half.mma, "A", lane, register) for register in range(4)] for lane in range(32)]
    return tuple(
        tuple(16 * row + column for lane in places for row, column in [lane[nibble % 4][nibble // 4].element])
        for nibble in range(8)
    )


def _check_group(group: Any) -> None:
    if type(group) is not int or group < SMALLEST_GROUP or group & (group - 1):
        raise ArgumentError(f"group: expected a power of two of at least {SMALLEST_GROUP} but got {group!r}")


def _check_dense(name: str, x: Any) -> None:
    if x.is_meta or x.layout != _torch().strided:
        raise ArgumentError(f"{name}: expected a dense tensor in memory but got {x.layout} on {x.device}")


def _said(value: Any) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"shape {tuple(value.shape)} of {value.dtype}"
    return brief(value)


def _torch() -> Any:
    import torch  # noqa: PLC0415  heavy

    return torch
