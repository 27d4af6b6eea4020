"""`apply` on worked values, on expressions, and beyond the shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_cases import any_shape, coordinates, layouts

from warpjit.errors import LayoutError
from warpjit.layout import ComposeLayout, Layout, R, S, TileLayout, laneid, warpid

WORKED: list[tuple[TileLayout, tuple[int, ...], tuple[int, ...] | None, dict[str, int]]] = [
    (TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)]), (2, 3, 1), None, {"m": 2, "laneid": 13}),
    (
        TileLayout(S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid),
        (1, 3),
        (8, 16),
        {"laneid": 5, "warpid": 5, "m": 1},
    ),
    (TileLayout(S[(8, 6) : (8, 1)]), (47,), None, {"m": 61}),
    (TileLayout(S[(8, 6) : (8, 1)]), (7, 5), None, {"m": 61}),
    (TileLayout(S[(8, 6) : (8, 1)]), (3, 11), (4, 12), {"m": 61}),
    (TileLayout(S[()]), (), None, {}),
    (TileLayout(S[()] + 3 @ laneid), (0,), None, {"laneid": 3}),
    (TileLayout(S[32 : 1 @ laneid] + 2), (7,), None, {"laneid": 7, "m": 2}),
    (TileLayout(S[(4, 2) : (0 @ laneid, 1)]), (3, 1), None, {"laneid": 0, "m": 1}),
    (TileLayout(S[4] + R[2 : 1 @ warpid]), (3,), None, {"m": 3}),
]


@pytest.mark.parametrize(("layout", "coords", "shape", "expected"), WORKED)
def test_worked_values(
    layout: TileLayout, coords: tuple[int, ...], shape: tuple[int, ...] | None, expected: dict[str, int]
) -> None:
    assert expected == layout.apply(*coords, shape=shape)


def test_the_second_copy_is_at_warp_9() -> None:
    layout = TileLayout(S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid)
    assert [5, 9] == layout.enumerate_replicas((8, 16))["warpid"][:, 1, 3].tolist()


def test_sizes_and_spans() -> None:
    assert (48, 62) == (TileLayout(S[(8, 6) : (8, 1)]).size(), TileLayout(S[(8, 6) : (8, 1)]).span())
    layout = TileLayout(S[(8, 4) : (4 @ laneid, 1)] + R[2 : 32 @ laneid] + 5 @ laneid + 3)
    assert (32, 4, 8, 1) == (layout.size(), layout.size("m"), layout.size(laneid), layout.size("warpid"))
    assert (7, 66, 1, 7) == (layout.span("m"), layout.span("laneid"), layout.span("warpid"), layout.span())


@pytest.mark.parametrize(
    ("coords", "shape", "sentence"),
    [
        ((32,), None, "coordinate of dim 0: expected 0 to 31 but got 32"),
        ((-1,), None, "coordinate of dim 0: expected 0 to 31 but got -1"),
        ((7, 4), None, "coordinate of dim 1: expected 0 to 3 but got 4"),
        ((2, 0), (2, 16), "coordinate of dim 0: expected 0 to 1 but got 2"),
        ((np.int64(40),), None, "coordinate of dim 0: expected 0 to 31 but got 40"),
        ((1.0,), None, "coordinate of dim 0: expected an int but got 1.0"),
        ((1, 2, 3), None, "expected 2 coordinates (one for each iter), or 1 (the linear index), but got 3"),
        ((1,), (2, 16), "expected 2 coordinates for shape (2, 16) but got 1"),
        ((1, 2), (2, 8), "shape: expected one of 32 elements but got (2, 8), which has 16"),
    ],
)
def test_coordinates_must_lie_in_the_shape(coords: Any, shape: Any, sentence: str) -> None:
    with pytest.raises(LayoutError) as caught:
        TileLayout(S[(8, 4) : (4 @ laneid, 1)]).apply(*coords, shape=shape)
    assert f"TileLayout(S[(8, 4) : (4 @ laneid, 1)]): {sentence}" == str(caught.value)


@dataclass(frozen=True, eq=False)
class Expr:
    """An expression that can be combined and read, but neither compared nor tested."""

    text: str
    value: int

    def _with(self, sign: str, other: Any, value: Any) -> Expr:
        return Expr(f"({self.text} {sign} {getattr(other, 'text', other)})", value(self.value, plain(other)))

    def __add__(self, other: Any) -> Expr:
        return self._with("+", other, lambda a, b: a + b)

    def __mul__(self, other: Any) -> Expr:
        return self._with("*", other, lambda a, b: a * b)

    def __floordiv__(self, other: Any) -> Expr:
        return self._with("//", other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> Expr:
        return self._with("%", other, lambda a, b: a % b)

    def __and__(self, other: Any) -> Expr:
        return self._with("&", other, lambda a, b: a & b)

    def __xor__(self, other: Any) -> Expr:
        return self._with("^", other, lambda a, b: a ^ b)

    def __lshift__(self, other: Any) -> Expr:
        return self._with("<<", other, lambda a, b: a << b)

    def __rshift__(self, other: Any) -> Expr:
        return self._with(">>", other, lambda a, b: a >> b)

    def _refuse(self, *_: object) -> Any:
        raise AssertionError(f"{self.text} was compared or tested")

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __index__ = __int__ = _refuse  # type: ignore[assignment]


def plain(value: Any) -> int:
    return value.value if isinstance(value, Expr) else int(value)


@settings(max_examples=100, deadline=None)
@given(st.data(), layouts())
def test_expressions_give_the_values_of_ints(data: st.DataObject, layout: Layout) -> None:
    shape = data.draw(any_shape(layout.size()))
    coords = coordinates(data.draw(st.integers(0, layout.size() - 1)), shape)
    mixed = [Expr(f"c{k}", c) if data.draw(st.booleans()) else c for k, c in enumerate(coords)]
    found = layout.apply(*mixed, shape=shape)
    assert layout.apply(*coords, shape=shape) == {axis: plain(value) for axis, value in found.items()}


MMA_A = TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ laneid, 2, 1 @ laneid)])
TEXTS: list[tuple[Layout, Any, Any, dict[str, str]]] = [
    (TileLayout(S[16, 16]), "ij", (16, 16), {"m": "((i * 16) + j)"}),
    (TileLayout(S[16, 16]), "i", None, {"m": "i"}),
    (TileLayout(S[(4, 4, 16) : (64, 16, 1)]), "ij", (16, 16), {"m": "((i * 16) + j)"}),
    (TileLayout(S[(8, 6) : (8, 1)]), "i", None, {"m": "(((i // 6) * 8) + (i % 6))"}),
    (TileLayout(S[(8, 6) : (8, 1)]), ["i", 2], None, {"m": "((i * 8) + 2)"}),
    (TileLayout(S[(8, 6) : (8, 1)] + 5), ["i", 2], None, {"m": "((i * 8) + 7)"}),
    (TileLayout(S[(8, 4) : (4 @ laneid, 1)]), [3, "j"], None, {"laneid": "12", "m": "j"}),
    (TileLayout(S[(1, 8, 1) : (3, 1, 7)]), "ijk", None, {"m": "j"}),
    (TileLayout(S[(4, 8) : (0, 1)]), "ij", None, {"m": "j"}),
    (
        MMA_A,
        [0, 0, "i", "j"],
        (1, 1, 16, 8),
        {"m": "((i // 8) + ((j // 4) * 2))", "laneid": "(((i % 8) * 4) + (j % 4))"},
    ),
    # Dims that the iters do not split along are linearised, with their neighbour only.
    (
        TileLayout(S[(2, 4, 6) : (100, 10, 1)]),
        "ijk",
        (2, 6, 4),
        {"m": "(((i * 100) + ((((j * 4) + k) // 6) * 10)) + (((j * 4) + k) % 6))"},
    ),
    (
        ComposeLayout(3, 3, 3, TileLayout(S[8, 64])),
        "ij",
        None,
        {"m": "(((i * 64) + j) ^ ((((i * 64) + j) >> 3) & 56))"},
    ),
    (
        ComposeLayout(0, 2, 3, TileLayout(S[8, 8]), swizzle_inner=False),
        "ij",
        None,
        {"m": "(((i * 8) + j) ^ ((((i * 8) + j) & 3) << 3))"},
    ),
    (TileLayout(S[(4, 6) : (1, 0)]), ["i", 3], (6, 4), {"m": "(((i * 4) + 3) // 6)"}),
    (ComposeLayout(3, 0, 3, TileLayout(S[8, 64])), "ij", None, {"m": "((i * 64) + j)"}),
]


@pytest.mark.parametrize(("layout", "coords", "shape", "expected"), TEXTS)
def test_no_work_is_spent_on_what_is_trivial(layout: Layout, coords: Any, shape: Any, expected: dict[str, str]) -> None:
    given_coords = [Expr(c, 0) if isinstance(c, str) else c for c in coords]
    found = layout.apply(*given_coords, shape=shape)
    assert expected == {axis: getattr(value, "text", str(value)) for axis, value in found.items()}


def test_static_coordinates_beside_expressions_are_checked() -> None:
    with pytest.raises(LayoutError, match="coordinate of dim 1: expected 0 to 5 but got 6"):
        TileLayout(S[8, 6]).apply(Expr("i", 0), 6)


def test_arrays_are_coordinates() -> None:
    layout = ComposeLayout(3, 3, 3, TileLayout(S[8, 64]))
    rows = np.arange(8)
    assert [8, 64, 152, 208, 296, 352, 440, 496] == layout.apply(rows, 8)["m"].tolist()
