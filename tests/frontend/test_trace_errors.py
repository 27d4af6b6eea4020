"""What is no part of the language is refused at its line with a caret; all mistakes come in one report."""

# ruff: noqa: B015, B018, C416, F401, F821, F841, PLC0415, RUF034, RUF059 (kernels that are wrong on purpose)

from __future__ import annotations

import pytest
import torch
from language_cases import findings, label, reported

import warpjit
from warpjit import SourceError, T, TraceError

FEW = torch.empty(64, dtype=torch.int32)
GRID = T.cuda.LaunchConfig(grid=1, block=32)
COUNT = 0


def test_statements_that_are_no_part_of_the_language():
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=GRID)
        try:  #: attempt
            out[0] = 1
        except ValueError:
            pass
        with open("file") as file:  #: context
            pass

        class Inner:  #: kind
            pass

        import math  #: load
        from math import sqrt  #: load_from

        global COUNT  #: shared
        del x  #: delete
        raise ValueError("no")  #: throw

        async def later():  #: asynchronous
            pass

        match out.shape[0]:  #: choice
            case 1:
                pass

        def outer():
            seen = 0

            def inner():
                nonlocal seen  #: outside
                return seen

            return inner()

        outer()

    sentence = "{} is not part of the language".format
    assert reported(kernel, FEW, FEW) == [
        ("attempt", sentence("try")), ("context", sentence("with")), ("kind", sentence("class")),
        ("load", sentence("import")), ("load_from", sentence("import")), ("shared", sentence("global")),
        ("delete", sentence("del")),
        ("throw", sentence("raise")), ("asynchronous", sentence("async def")), ("choice", sentence("match")),
        ("outside", sentence("nonlocal")),
    ]  # fmt: skip


def test_expressions_that_are_no_part_of_the_language():
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=GRID)
        b = {k for k in range(3)}  #: set_of
        d = (k for k in range(3))  #: generator
        e = {1, 2}  #: literal
        f = *(1, 2), 3  # a starred item of a tuple is fine
        out[0] = len(f)

    sets = "a set is not part of the language, since its order is not fixed: use a tuple or a list"
    generators = "a generator can only be the argument of tuple, list, sum, min, max, any, all, …: make a tuple of it"
    assert reported(kernel, FEW, FEW) == [("set_of", sets), ("generator", generators), ("literal", sets)]


def test_generators_and_coroutines():
    @warpjit.jit
    def generator(out):
        T.device_entry(launch=GRID)
        value = yield 1  #: given
        yield from (1, 2)  #: delegated

    assert reported(generator, FEW) == [
        ("given", "yield is not part of the language"), ("delegated", "yield from is not part of the language")
    ]  # fmt: skip
    with pytest.raises(SourceError, match=r"expected a function of def or lambda but .*coroutine is an async def"):

        @warpjit.jit
        async def coroutine(out):
            T.device_entry(launch=GRID)
            await out


def test_jumps_and_returns_out_of_place():
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=GRID)

        def helper():
            out[0] = 1

        if n > 5:
            return 3  #: value
        if n > 7:
            return None

        @staticmethod
        def decorated():  #: decorated
            pass

        out[0] + 1  #: effect
        n  #: name
        n == 1  #: comparison
        "a note is fine"
        helper
        T.cuda.lane_id()

    assert [item for item in reported(kernel, 1, FEW) if item[0] != "helper"] == [
        ("value", "a kernel returns nothing: write results into a tensor argument"),
        ("decorated", "decorated: a function inside a kernel cannot have decorators"),
        ("effect", "this expression has no effect"),
        ("name", "this expression has no effect"),
        ("comparison", "this expression has no effect"),
    ]


def test_a_caret_marks_what_is_wrong():
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=GRID)
        out[0] = 1 + (n * "text") - 2
        größe = n + 1.5
        out[größe] = 1

    first, second = findings(kernel, 1, FEW)
    lines = first.render().splitlines()
    assert lines[0] == "expected a number but got str 'text'"
    assert lines[1].endswith(f"line {first.loc.line}, in {kernel.function.__qualname__}") and __file__ in lines[1]
    shown, caret = lines[2][4:], lines[3][4:]
    assert shown == 'out[0] = 1 + (n * "text") - 2'
    assert shown[caret.index("^") : caret.rindex("^") + 1] == 'n * "text"'
    lines = second.render().splitlines()
    shown, caret = lines[2][4:], lines[3][4:]
    assert second.message == "index 0 of out: expected an integer but got a scalar of type float32"
    assert shown[caret.index("^") : caret.rindex("^") + 1] == "out[größe] = 1"
    assert second.loc.line == first.loc.line + 2


def test_all_mistakes_come_in_one_report():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=GRID)
        lane = T.cuda.lane_id()
        a = no_such_name  #: first
        b = a + 1  # nothing new to say
        out[lane] = b
        for i in range(n):
            c = x[lane, i]  #: second
            if n > 3:
                T.nothing_like_this()  #: third
            out[i] = c
        if lane < 4:
            out.shape.nothing  #: fourth
        else:
            T.alloc_shared((0,))  #: fifth
        while n > lane:
            n = "text"  #: sixth
        out[0] = T.sqrt(lane)  #: seventh

    with pytest.raises(TraceError) as caught:
        kernel.source(1, FEW, FEW)
    got = [(label(finding.loc), finding.message) for finding in caught.value.findings]
    assert [name for name, _ in got][:5] == ["first", "second", "third", "fourth", "fifth"]
    assert got[0][1] == "the name no_such_name is not defined"
    assert got[1][1] == "x: expected 1 index, one for each axis of shape (64,), but got 2"
    assert got[-1] == ("seventh", "sqrt is not defined for int32")
    assert str(caught.value).startswith(f"{len(got)} errors\n\n") and len(got) == 7


def test_the_same_mistake_in_each_copy_of_a_loop_is_told_once():
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=GRID)
        for i in T.unroll(4):
            out[no_such_name] = i  #: name

    assert reported(kernel, FEW) == [("name", "the name no_such_name is not defined")]


def test_illegal_operations_are_all_told():
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=48))
        lane = T.cuda.lane_id()
        if lane < 4:
            T.cuda.cta_sync()  #: barrier
        T.cuda.warp_sync()  #: part
        out[0] = 1

    assert [name for name, _ in reported(kernel, FEW)] == ["barrier", "part"]


def test_arguments_that_a_name_of_the_language_cannot_take():
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=GRID)
        T.cdiv(1.5, 2)  #: fraction
        T.fma(T.float32(1), x, 2.0)  #: tensor
        T.unroll(3, 4, 0)  #: still
        T.unroll()  #: nothing
        T.unroll(1.5)  #: float
        isinstance(x, 3)  #: kind

    assert reported(kernel, FEW, FEW) == [
        ("fraction", "T.cdiv: expected integers but got float 1.5"),
        ("tensor", "T.fma: expected numbers but got the tensor x"),
        ("still", "T.unroll: step: expected an int other than 0 but got 0"),
        ("nothing", "T.unroll: expected an iterable, or one to three integers, but got 0"),
        ("float", "an argument of T.unroll: expected an int but got float 1.5"),
        ("kind", "TypeError: isinstance() arg 2 must be a type, a tuple of types, or a union"),
    ]


def test_a_block_has_a_largest_extent_along_each_axis():
    @warpjit.jit
    def kernel(out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=(1, 1, 65)))  #: deep
        out[0] = 1

    assert reported(kernel, FEW)[0] == (
        "deep",
        "block: expected at most (1024, 1024, 64) threads along x, y and z but got (1, 1, 65)",
    )


def test_attributes_and_methods_that_do_not_exist():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=GRID)
        x.nothing  #: tensor
        n.shape  #: scalar
        x.ptr(0).nothing  #: pointer
        x.view()  #: empty
        x.permute(0, 1)  #: rank
        T.cuda.nothing  #: name
        n[0]  #: element
        n(3)  #: call
        x(3)  #: tensor_call
        (1, 2)[n]  #: item

    got = reported(kernel, 1, FEW, FEW)
    assert [name for name, _ in got] == ["tensor", "scalar", "pointer", "empty", "rank", "name", "element", "call",
                                         "tensor_call", "item"]  # fmt: skip
    sentences = dict(got)
    assert sentences["tensor"].startswith("a tensor has no attribute 'nothing'; it has ")
    assert sentences["scalar"] == "a scalar has no attribute 'shape'; it has dtype"
    assert sentences["element"] == "a scalar of type int32 has no elements"
    assert sentences["call"] == "a scalar of type int32 cannot be called"
    assert sentences["tensor_call"] == "the tensor x cannot be called"
    assert sentences["item"].startswith("the index of a tuple must be known while tracing")


def test_names_of_the_language_mean_nothing_outside():
    with pytest.raises(TraceError, match=r"T\.cuda\.lane_id means something only inside a function decorated"):
        T.cuda.lane_id()
    with pytest.raises(TraceError, match=r"T\.float32\(...\) means something only inside a function decorated"):
        T.float32(1)


@warpjit.jit
def odd_stores(n: T.int32, x, out, *, which):
    T.device_entry(launch=GRID)
    lane = T.cuda.lane_id()
    if which == 0:
        out[0] = (lambda: lane)()
        out[0] = lambda a: a
    elif which == 1:
        t = (x, n)
        out[0] = t
    elif which == 2:
        out[lane == 1] = 1
    elif which == 3:
        a, b = lane
    elif which == 4:
        out[0] = max()
    elif which == 5:
        out[0] = x[0:4] + 1
    elif which == 6:
        for _ in range(3, n, 1, 1):
            pass
    elif which == 7:
        v = T
        out[0] = v
    elif which == 8:
        out[...] = 1
    elif which == 9:
        out[None] = 1
    elif which == 10:
        out[0] = -x
    elif which == 11:
        out[0] = not x
    elif which == 12:
        if x:
            out[0] = 1
    elif which == 13:
        out[0] = x and n
    elif which == 14:
        out[0] = x == out


@warpjit.jit
def odd_values(n: T.int32, x, out, *, which):
    T.device_entry(launch=GRID)
    lane = T.cuda.lane_id()
    if which == 15:
        out[0] = f"{n}"
    elif which == 16:
        out[0] = [*n]
    elif which == 17:
        out[0] = 1j
    elif which == 18:
        print(**n)
    elif which == 19:
        out[0] = ~1.5 + n
    elif which == 20:
        while x:
            pass
    elif which == 21:
        out[0] = T.int32(x)
    elif which == 22:
        out[0] = x[lane, ...]
    elif which == 23:
        out[0] = n if x else n
    elif which == 24:
        T.assume(x)
    elif which == 25:
        out[0] = 2**70 + n
    elif which == 26:
        out[0] = n + float("nan") + float("inf") + 1e400 + T.int8(float("nan"))
    elif which == 27:
        out[0] = 2**70
    elif which == 28:
        out[T.int64(2) ** 40] = 1


@pytest.mark.parametrize("which", range(29))
def test_odd_programs_end_in_findings(which):
    """An internal assertion, or an error of Python inside of the tracer, never reaches a user."""
    kernel = odd_stores if which < 15 else odd_values
    assert all(finding.loc.line and finding.message for finding in findings(kernel, 1, FEW, FEW, which=which))
