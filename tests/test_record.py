"""`warpjit.record`: what frozen dataclasses with slots promise, and that data types are one object each."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from warpjit.ir import dtypes
from warpjit.record import changed, record


@record
class Point:
    x: int
    y: int = 2
    note: str = dataclasses.field(default="", compare=False)


@record
class Plane:
    """Of the same fields, but no point."""

    x: int
    y: int = 2


@record
class Checked:
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"expected 1 or more but got {self.count}")
        object.__setattr__(self, "count", int(self.count))

    def __repr__(self) -> str:
        return f"<{self.count}>"


@record
class Nothing:
    pass


def test_fields_are_given_by_place_by_name_or_by_default():
    assert (Point(1).x, Point(1).y) == (1, 2)
    assert (Point(x=3, y=4).x, Point(3, 4).y) == (3, 4)
    for wrong in (lambda: Point(), lambda: Point(1, 2, "", 4), lambda: Point(1, z=3)):
        with pytest.raises(TypeError):
            wrong()


def test_equality_and_hash_are_by_the_fields_that_count_and_by_the_class():
    assert Point(1, note="a") == Point(1, 2, "b") and hash(Point(1, note="a")) == hash(Point(1))
    assert Point(1) != Point(2) and Point(1) != Plane(1) and Point(1) != (1, 2)
    assert Nothing() == Nothing() and hash(Nothing()) == hash(Nothing())
    nan = Point(float("nan"))  # type: ignore[arg-type]
    assert nan == nan and {nan: 1}[nan] == 1


def test_a_record_is_a_frozen_dataclass_with_slots():
    point = Point(1)
    for change in (lambda: setattr(point, "x", 5), lambda: setattr(point, "z", 5), lambda: delattr(point, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    assert point.x == 1 and not hasattr(point, "__dict__")
    assert [each.name for each in dataclasses.fields(Point)] == ["x", "y", "note"]
    assert Point.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert dataclasses.replace(point, y=7) == changed(point, y=7) == Point(1, 7)


def test_what_a_class_defines_itself_stays():
    assert repr(Point(1)) == "Point(x=1, y=2, note='')"
    assert repr(Checked(3)) == "<3>" and type(Checked(True).count) is int
    with pytest.raises(ValueError, match="expected 1 or more but got 0"):
        Checked(0)


@pytest.mark.parametrize("value", [Point(1, 5, "n"), Checked(2), Nothing()])
def test_copies_are_equal(value: object):
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert other == value and repr(other) == repr(value)


@pytest.mark.parametrize("dtype", [*dtypes.DTYPES.values(), dtypes.uint1, dtypes.tf32], ids=str)
def test_a_copy_of_a_data_type_is_the_type_itself(dtype: dtypes.DType):
    assert copy.deepcopy(dtype) is pickle.loads(pickle.dumps(dtype)) is dtype
