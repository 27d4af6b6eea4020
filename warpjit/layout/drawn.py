"""What a layout can show of itself. Drawing is loaded with the first picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpjit.layout.elements import ElementType
    from warpjit.layout.picture import Picture


class Drawn:
    """A layout's pictures."""

    def draw(
        self: Any, shape: Sequence[int] | None = None, *, color: str | None = None, dtype: ElementType | None = None
    ) -> Picture:
        """A picture of the layout: its `svg()`, its `text()`, `save(path)`, and in a notebook the picture itself.

        shape  in elements: rows and columns; leading dims are panels. Default: the split of the iters nearest to a
               square
        color  "lane" (default), "register" or "warp"; of a layout in memory "bank"
        dtype  of the elements, by name or bits: several share a register or a bank. Default: 32 bits, and where there
               is a swizzle, what makes its units 16 bytes

        Labels: T lane, R register, W warp; in memory B bank and + the byte. Boxes hold the elements of one 32-bit word.
        Raises LayoutError: a shape of another size, more than 16,384 elements, a colour that the layout does not have.
        """
        from warpjit.layout.picture import draw_layout  # noqa: PLC0415  kernels do without

        return draw_layout(self, shape, color=color, dtype=dtype)

    def _repr_html_(self: Any) -> str:
        from warpjit.layout.picture import layout_html  # noqa: PLC0415  kernels do without

        return layout_html(self)
