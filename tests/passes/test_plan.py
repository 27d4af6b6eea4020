"""Launch plans: places in shared memory, expressions, and JSON that loses nothing."""

from __future__ import annotations

import json
import math
import operator
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpjit.errors import ArgumentError, Frame, Loc, TargetError
from warpjit.ir.dtypes import bfloat16, float32, int32, int64
from warpjit.ir.nodes import GlobalBuffer, Kernel, Launch, Local, Parameter, PlanExpr, SharedBuffer
from warpjit.passes import expressions
from warpjit.passes.expressions import Arguments, compile_plan
from warpjit.passes.launch_plan import LaunchPlan
from warpjit.passes.plan import plan


def kernel(*shared: SharedBuffer, parameters: tuple[Parameter, ...] = (), **launch: Any) -> Kernel:
    given = {"grid": (1, 1, 1), "block": (32, 1, 1)} | launch
    where = Loc((Frame("k.py", "k", 3, 0, 5, "def k():"),))
    return Kernel("k", parameters, shared, (), Launch(**given), loc=where)


# ---- shared memory ------------------------------------------------------------------------------------


def test_buffers_follow_each_other_at_their_alignment() -> None:
    planned = plan(
        kernel(SharedBuffer("a", 10, 16), SharedBuffer("b", 8, 8), SharedBuffer("c", 3, 128), SharedBuffer("d", 1, 1)),
        1000,
    )
    assert [planned.shared_offset(name) for name in "abcd"] == [0, 16, 128, 131]
    assert planned.shared_bytes == 132


def test_no_shared_memory() -> None:
    planned = plan(kernel(), 0)
    assert (planned.shared_bytes, planned.shared) == (0, ())


buffers = st.lists(st.tuples(st.integers(0, 300), st.sampled_from([1, 2, 4, 8, 16, 128, 1024])), max_size=8)


@given(buffers)
def test_buffers_are_aligned_and_apart(sizes: list[tuple[int, int]]) -> None:
    planned = plan(kernel(*(SharedBuffer(f"b{n}", size, align) for n, (size, align) in enumerate(sizes))), 10**6)
    end = 0
    for slot, (size, align) in zip(planned.shared, sizes, strict=True):
        assert slot.offset % align == 0
        assert end <= slot.offset < end + align
        end = slot.offset + size
    assert planned.shared_bytes == end


def test_the_limit_is_inclusive() -> None:
    assert plan(kernel(SharedBuffer("a", 100, 4)), 100).shared_bytes == 100


def test_too_much_shared_memory_is_one_finding_that_lists_the_buffers() -> None:
    with pytest.raises(TargetError) as caught:
        plan(kernel(SharedBuffer("tiles", 200_000, 128), SharedBuffer("bars", 64_000, 8)), 232_448)
    (finding,) = caught.value.findings
    assert "at most 232,448 bytes" in finding.message and "k allocates 264,000" in finding.message
    assert "tiles 200,000 at 0, bars 64,000 at 200,000" in finding.message
    assert finding.loc.line == 3 and 'File "k.py", line 3' in str(caught.value)


# ---- expressions --------------------------------------------------------------------------------------

BINARY: dict[str, Callable[..., Any]] = {
    **{"+": operator.add, "*": operator.mul, "//": operator.floordiv, "%": operator.mod},
    **{"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge},
    **{"min": min, "max": max, "not": operator.not_},
    "-": lambda a, *b: a - b[0] if b else -a,
}
LAZY: dict[str, Callable[..., Any]] = {
    "arg": lambda given, index: given.values[index],
    "size": lambda given, index, dimension: given.sizes[index][dimension],
    "stride": lambda given, index, dimension: given.strides[index][dimension],
    "and": lambda given, a, b: evaluate(a, given) and evaluate(b, given),
    "or": lambda given, a, b: evaluate(a, given) or evaluate(b, given),
    "select": lambda given, test, a, b: evaluate(a if evaluate(test, given) else b, given),
}


def evaluate(expression: PlanExpr, given: Arguments) -> Any:
    """What an expression means, node by node."""
    if not isinstance(expression, tuple):
        return expression
    head, operands = expressions.parts(expression)
    if head in LAZY:
        return LAZY[head](given, *operands)
    return BINARY[head](*(evaluate(operand, given) for operand in operands))


GIVEN = Arguments(values=(7, -3, 2.5, True), sizes=((4, 0), (), (), ()), strides=((5, 1), (), (), ()))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (5, 5),
        (True, True),
        (1.5, 1.5),
        (("arg", 0), 7),
        (("arg", 3), True),
        (("size", 0, 0), 4),
        (("stride", 0, 0), 5),
        (("//", ("arg", 1), 2), -2),
        (("%", ("arg", 1), 2), 1),
        (("//", 7, ("-", 2)), -4),
        (("%", 7, -2), -1),
        (("-", ("arg", 0), 3), 4),
        (("*", ("+", 1, 2), 3), 9),
        (("+", 1, ("*", 2, 3)), 7),
        (("-", 1, ("-", 2, 3)), 2),
        (("min", ("arg", 0), 3), 3),
        (("max", ("arg", 0), 3), 7),
        (("<", ("<", 3, 2), 1), True),
        (("==", 1, ("==", 2, 2)), True),
        (("not", ("!=", 1, 2)), False),
        (("and", 0, ("//", 1, 0)), 0),
        (("or", 3, ("//", 1, 0)), 3),
        (("and", 2, 3), 3),
        (("select", ("size", 0, 1), ("//", 1, ("size", 0, 1)), 9), 9),
        (("*", ("arg", 2), math.inf), math.inf),
        (("+", 2**70, 1), 2**70 + 1),
    ],
)
def test_values(expression: PlanExpr, value: object) -> None:
    for result in (evaluate(expression, GIVEN), *compile_plan([expression])(GIVEN.values, GIVEN.sizes, GIVEN.strides)):
        assert (type(result), result) == (type(value), value)


def test_a_division_by_zero_names_the_launch() -> None:
    bad = ("%", 1, ("size", 0, 1))
    with pytest.raises(ArgumentError, match="divides by zero"):
        compile_plan([1, bad])(GIVEN.values, GIVEN.sizes, GIVEN.strides)


@pytest.mark.parametrize(
    "bad",
    [
        ("arg", "0"),
        ("arg", -1),
        ("arg", True),
        ("size", 0),
        ("+", 1),
        ("**", 1, 2),
        (),
        (1, 2),
        ("values; x", 1),
        "arg",
    ],
)
def test_what_is_no_expression_is_refused(bad: Any) -> None:
    for use in (lambda: compile_plan([bad]), lambda: expressions.to_json(("+", 1, bad))):
        with pytest.raises(ArgumentError, match="expected an expression of a launch plan but got"):
            use()


def test_deep_expressions_compile() -> None:
    deep: PlanExpr = ("arg", 0)
    for _ in range(100):
        deep = ("+", ("*", deep, 1), 1)
    assert compile_plan([deep, deep])(GIVEN.values, (), ()) == (107, 107)


def test_parts_of_deep_expressions_stay_lazy() -> None:
    deep: PlanExpr = ("//", 1, 0)
    for _ in range(100):
        deep = ("+", deep, 1)
    assert compile_plan([("select", ("arg", 3), 5, deep)])(GIVEN.values, (), ()) == (5,)


def trees() -> st.SearchStrategy[PlanExpr]:
    leaves = st.one_of(
        st.integers(-9, 9),
        st.booleans(),
        st.sampled_from([("arg", 0), ("arg", 1), ("size", 0, 0), ("size", 0, 1), ("stride", 0, 1)]),
    )
    binary = ["+", "-", "*", "//", "%", "min", "max", "<", "<=", "==", "!=", ">", ">=", "and", "or"]
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(binary), inner, inner),
            st.tuples(st.sampled_from(["-", "not"]), inner),
            st.tuples(st.just("select"), inner, inner, inner),
        ),
        max_leaves=12,
    )


def outcome(compute: Any) -> object:
    try:
        value = compute()
    except (ArgumentError, ZeroDivisionError) as problem:
        return "divides by zero" if isinstance(problem, ZeroDivisionError) else str(problem)[-15:]
    return (type(value), value)


@settings(deadline=None)
@given(trees())
def test_compiled_and_evaluated_agree_and_survive_json(tree: PlanExpr) -> None:
    run = outcome(lambda: compile_plan([tree])(GIVEN.values, GIVEN.sizes, GIVEN.strides)[0])
    assert run == outcome(lambda: evaluate(tree, GIVEN))
    again = expressions.from_json(json.loads(json.dumps(expressions.to_json(tree))))
    assert repr(again) == repr(tree)


@given(st.floats(width=64))
def test_floats_survive_json_by_their_bits(value: float) -> None:
    again = expressions.from_json(json.loads(json.dumps(expressions.to_json(value))))
    assert isinstance(again, float)
    assert struct.pack(">d", again) == struct.pack(">d", value)


@pytest.mark.parametrize("bad", [None, "x", [], [1, 2], ["eval", 1], {"float64": "00", "x": 1}])
def test_json_that_is_no_expression_is_refused(bad: Any) -> None:
    with pytest.raises(ArgumentError, match="expected an expression of a launch plan"):
        expressions.from_json(bad)


# ---- whole plans --------------------------------------------------------------------------------------


def full() -> LaunchPlan:
    parameters = (
        Parameter(GlobalBuffer("A", bfloat16, 0, 16), ("arg", 0)),
        Parameter(Local("m", int32), ("size", 0, 0)),
        Parameter(Local("s", int64), ("stride", 0, 1)),
        Parameter(Local("scale", float32), -0.0),
    )
    launch = {
        "grid": (("//", ("+", ("size", 0, 0), 127), 128), 2, True),
        "block": (128, 2, 1),
        "cluster": (2, 1, 1),
        "max_registers": 168,
    }
    found = plan(kernel(SharedBuffer("a", 100, 1024), parameters=parameters, **launch), 10**5)
    return replace(found, reads=(0,), writes=(0, 2))


def test_a_plan_survives_json() -> None:
    again = LaunchPlan.from_json(json.loads(json.dumps(full().to_json())))
    assert again == full()
    assert again.to_json() == full().to_json()
    assert again.grid[2] is True
    assert math.copysign(1.0, again.parameters[3].source) == -1.0  # type: ignore[arg-type]


def test_numbers_of_other_types_are_other_plans() -> None:
    texts = {json.dumps(plan(kernel(grid=(one, 1, 1)), 0).to_json()) for one in (1, True, 1.0)}
    assert len(texts) == 3


def test_a_plan_of_another_schema_is_refused() -> None:
    with pytest.raises(ArgumentError, match="expected a launch plan of schema 2 but got 0"):
        LaunchPlan.from_json(full().to_json() | {"schema": 0})


def test_a_plan_says_all_that_a_launch_needs() -> None:
    planned = full()
    assert (planned.block, planned.cluster, planned.threads) == ((128, 2, 1), (2, 1, 1), 256)
    assert (planned.max_registers, planned.min_blocks_per_sm) == (168, None)
    assert [(each.name, each.dtype, each.pointer) for each in planned.parameters] == [
        ("A", bfloat16, True),
        ("m", int32, False),
        ("s", int64, False),
        ("scale", float32, False),
    ]
    computed = planned.compile()([0xABC0], [(300, 64)], [(64, 1)])
    assert computed == (3, 2, True, 0xABC0, 300, 1, -0.0)
