"""Tuples, lists, dictionaries, comprehensions and strings as structure that is known while tracing."""

# ruff: noqa: C408, C416, C420, F821, F841, RUF015, RUF059 (kernels as users write them, some of them wrong)

from __future__ import annotations

import torch
from language_cases import findings, ints, kinds, label, reported, rows

import warpjit
from warpjit import T

FEW = torch.empty(64, dtype=torch.int32)
SHAPES = {"small": 2, "large": 4}


def total(items, *more, scale=1, **named):
    return (sum(items) + sum(more)) * scale + named.get("bias", 0)


def extremes(values):
    return min(values), max(values)


def test_comprehensions_over_what_is_static(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        i = 100
        loaded = [x[k, lane] for k in range(4)]
        odd = [k * v for k, v in enumerate(loaded) if k % 2]
        by_name = {f"row{k}": v for k, v in zip(range(4), loaded, strict=True)}
        pairs = tuple((i, j) for i in range(3) for j in range(i) if (i + j) % 2)
        nested = [[v + i for v in loaded[:2]] for i in range(2)]
        out[0, lane] = sum(odd) + i
        out[1, lane] = by_name["row2"] + len(by_name) + sum(by_name.values())
        out[2, lane] = sum(10 * a + b for a, b in pairs)
        out[3, lane] = nested[1][0] + nested[0][1] + sum(sum(row) for row in nested)
        low, high = extremes(loaded)
        out[4, lane] = low + 2 * high + max(v for v in loaded) - min([v for v in loaded])
        out[5, lane] = any(v == 7 for v in loaded) + 2 * all(v > 0 for v in loaded)
        out[6, lane] = [last := v + 1 for v in loaded][0] + last
        out[7, lane] = total(tuple(v for v in loaded), *odd, scale=2, **dict(bias=lane))
        functions = [lambda v: v + i, lambda v, i=1: v * i]
        out[8, lane] = sum(f(lane) for f in functions) + sum(map(lambda a, b: a * b, loaded, odd))
        out[9, lane] = (lane in (3, 5, x[0, 0])) + 2 * (lane not in range(4)) + 4 * (3 in (1, 2))

    x = (torch.arange(128, dtype=torch.int32) * 7 % 23 - 4).reshape(4, 32)
    out = ints(device, 10, 32)
    run(kernel, x.to(device), out)
    for lane, got in enumerate(out.T.tolist()):
        a, b, c, d = v = x[:, lane].tolist()
        assert got == [
            b + 3 * d + 100, c + 4 + sum(v), 10 + 21, (a + 1) + b + (a + b) + (a + b + 2),
            min(v) + 2 * max(v) + max(v) - min(v), (7 in v) + 2 * (min(v) > 0), a + 1 + d + 1,
            (sum(v) + b + 3 * d) * 2 + lane, lane + 100 + lane + a * b + b * 3 * d,
            (lane in (3, 5, x[0, 0])) + 2 * (lane > 3),
        ]  # fmt: skip


def test_any_and_all_stop_where_python_does():
    """What stands behind a static end is not evaluated, and a load only where the one before leaves it open."""

    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        if any(k > 1 or x[k] for k in range(4)):
            out[0] = 1
        if all(k < 2 and x[k] > 0 for k in range(4)):
            out[1] = all(()) + any(())

    assert rows(kernel, FEW, FEW).count("load.global.s32") == 4
    assert "If" in kinds(kernel, FEW, FEW)


def test_lists_and_dictionaries_change_while_tracing(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        values, names = [], {}
        for k in range(3):  # expanded: a list grows in it
            values.append(x[k, lane])
            names[f"v{k}"] = values[-1] * 10
        alias = values
        alias += [lane]
        values[0] = values[1] + values[2]
        values[1] *= 2
        values.extend((5, 6))
        popped = values.pop()
        names.update(extra=popped)
        for key, value in names.items():
            if key != "extra":
                values.insert(0, value)
        first, *middle, (a, b) = [*values, ("a", 3)]
        middle.reverse()
        out[0, lane] = sum(alias)
        out[1, lane] = first + middle[0] + len(middle) + b + len(a)
        out[2, lane] = names.get("v1", 0) + names.get("none", 7) + ("extra" in names) + names["extra"]
        copied = values[2:5] + list(values) + values.copy()
        copied.clear()
        out[3, lane] = len(copied) + len(values) + sum(values[i] for i in (0, -1))
        queue = [lane, 2]
        for item in queue:  # it comes to what is appended meanwhile
            if len(queue) < 4:
                queue.append(item * 10)
        out[5, lane] = sum(queue) + len(queue)

        def grown(items, value):
            items.append(value)
            return items

        if lane % 2:
            mine = [lane]
            out[4, lane] = sum(grown(mine, 3)) + len(mine)
        else:
            out[4, lane] = sum(sorted((3, 1, 2), key=lambda n: -n)[:2])

    x = torch.arange(96, dtype=torch.int32).reshape(3, 32)
    out = ints(device, 6, 32)
    run(kernel, x.to(device), out)
    for lane, got in enumerate(out.T.tolist()):
        a, b, c = x[:, lane].tolist()
        values = [10 * c, 10 * b, 10 * a, b + c, 2 * b, c, lane, 5]
        assert got == [
            sum(values), values[0] + 5 + 7 + 3 + 1, 10 * b + 7 + 1 + 6, 8 + values[0] + 5,
            lane + 3 + 2 if lane % 2 else 5, lane + 2 + 10 * lane + 20 + 4,
        ]  # fmt: skip


def test_conditional_expressions_choose_part_by_part(device, run):
    @warpjit.jit
    def kernel(x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        low, high, kind, tensor = (lane, 0, 3, x) if lane < 9 else (9, lane, 3, x)
        loaded = (x[lane], (lane, 1)) if lane % 2 else (x[31 - lane], (0.5 * lane, 1))
        out[0, lane] = low + 100 * high + (10, 20, 30, 40)[kind] + tensor[lane]
        out[1, lane] = loaded[0] + T.int32(loaded[1][0] * 10) + (5, 6)[loaded[1][1]]
        out[2, lane] = (no_such if lane is None else x)[lane] + (len("ab") if len("a") == 1 else no_such)

    x = torch.arange(32, dtype=torch.int32) * 1000
    out = ints(device, 3, 32)
    run(kernel, x.to(device), out)
    for i, got in enumerate(out.T.tolist()):
        first = (i if i < 9 else 9) + 100 * (0 if i < 9 else i) + 40 + 1000 * i
        second = 1000 * i + 10 * i + 6 if i % 2 else 1000 * (31 - i) + 5 * i + 6
        assert got == [first, second, 1000 * i + 2]


def test_text_makes_the_names_of_instructions(device, run):
    @warpjit.jit
    def kernel(a, out, *, kind):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        word = "mul24.lo." if kind.startswith("fast") else "mul.lo."
        parts = {"size": 32, "sign": "su"[kind.endswith("unsigned")]}
        name = (word + "{sign}{size}".format(**parts)).lower().replace("mul24", "mul")
        if (n := len(name.split("."))) == 3 and f"{n:02}" == "03":
            out[lane] = T.ptx[name](a[lane], 3) if False else a[lane] * n

    a = torch.arange(32, dtype=torch.int32, device=device)
    out = ints(device)
    run(kernel, a, out, kind="fast")
    assert out.tolist() == [3 * v for v in range(32)]


def test_changes_that_may_not_happen_once_are_refused():
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        values = [lane]  #: made
        table = {"a": lane}
        for k in range(n):
            values.append(k)  #: loop
        if lane > 3:
            table["b"] = 1  #: branch
        for k in range(4):
            if lane == k:
                values[0] = k  #: inner
        while n > lane:
            values += [1]  #: grown
            break
        T.cuda.lane_id().append(1)  #: scalar
        total([1]).append(2)  #: number

    found = findings(kernel, 3, FEW)
    assert [label(finding.loc) for finding in found] == ["loop", "branch", "inner", "grown", "scalar", "number"]
    assert [finding.message.partition(" would change a ")[0] for finding in found[:4]] == [
        "append",
        "an assignment to an item",
        "an assignment to an item",
        "extend",
    ]
    assert "list inside of a loop or branch of the device" in found[0].message
    assert "dictionary" in found[1].message
    assert label(found[0].notes[0].loc) == "made" and found[0].notes[0].message == "the list was made here"


def test_structure_that_is_refused():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        pair = (lane, n)
        out[0] = sum([k for k in range(n)])  #: length
        out[0] = sum([k for k in range(4) if lane > k])  #: condition
        kept = (k for k in range(4))  #: kept
        out[0] = total(k for k in range(4))  #: given
        out[0] = {n: 1}[n]  #: key
        out[0] = {k: 1 for k in (n, 2)}[2]  #: keys
        out[0] = pair == (lane, n)  #: equal
        out[0] = pair.index(lane)  #: index
        out[0] = pair[lane]  #: item
        out[0] = sum(pair[:n])  #: slice
        out[0] = lane in x  #: tensor
        out[0] = len({1, 2})  #: set
        out[0] = len({k for k in (1, 2)})  #: setcomp
        out[0] = sorted(pair)[0]  #: order
        a, b, c = pair  #: few
        a, *b, c, d = pair  #: fewer
        out[0] = [k for k in n][0]  #: scalar
        out[0] = [no_such for k in range(2)][0]  #: name
        out[0] = pair["a"]  #: python

    got = dict(reported(kernel, 3, FEW, FEW))
    assert list(got) == [
        "length", "condition", "kept", "given", "key", "keys", "equal", "index", "item", "slice", "tensor", "set",
        "setcomp", "order", "few", "fewer", "scalar", "name", "python",
    ]  # fmt: skip
    assert got["length"] == "a comprehension over a range of the device: its length must be known while tracing"
    assert got["condition"] == "the condition of a comprehension must be known while tracing"
    assert got["kept"] == got["given"] and got["kept"].startswith("a generator can only be the argument of")
    assert got["key"] == "a key of a dictionary must be known while tracing, not a scalar of type int32"
    assert got["keys"] == got["key"]
    assert got["equal"] == "'eq' of what holds device values: compare its items, one by one"
    assert got["tensor"] == "in: expected a number but got the tensor x: read an element with an index"
    assert got["name"] == "the name no_such is not defined"
    assert not any("Traceback" in message or "Scalar(" in message for message in got.values()), got
