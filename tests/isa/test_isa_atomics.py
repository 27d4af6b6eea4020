"""Atomic rows: what each leaves in memory and returns, against Python's integers and rounded float64 sums."""

from __future__ import annotations

import numpy as np
import pytest
from isa_values import same, values

from warpjit.ir import numerics
from warpjit.ir.dtypes import bfloat16, float16
from warpjit.isa.atomics import ATOM, FORMS, RED, REGISTERS, ROWS, Form
from warpjit.isa.row import Array, Kind, Mode
from warpjit.isa.table import lookup
from warpjit.isa.target import Target

COUNT = 4096

INTEGER = {
    "add": lambda old, b: old + b,
    "min": min,
    "max": max,
    "inc": lambda old, b: 0 if old >= b else old + 1,
    "dec": lambda old, b: b if old == 0 or old > b else old - 1,
    "and": lambda old, b: old & b,
    "or": lambda old, b: old | b,
    "xor": lambda old, b: old ^ b,
    "exch": lambda old, b: b,
    "cas": lambda old, b, c: c if old == b else old,
}
FLOATS = ("f16", "bf16", "f32", "f64")


def run(form: Form, old: Array, *operands: Array) -> Array:
    """What is in memory afterwards; checks what is returned."""
    octets = np.ascontiguousarray(old)[:, None].view(np.uint8)
    returned, stored = ATOM[form].meaning(octets, *operands)
    assert same(returned, old).all()
    if form in RED:
        assert (RED[form].meaning(octets, *operands) == stored).all()
    return np.ascontiguousarray(stored).view(old.dtype)[:, 0]


@pytest.mark.parametrize(
    "form", [each for each in FORMS if each.scope == "" and "f" not in each.ptx], ids=lambda form: form.text("atom")
)
def test_integers(form: Form) -> None:
    of = REGISTERS[form.ptx]
    old, b, c = (values(of, COUNT, seed) for seed in (1, 2, 3))
    b[::3] = old[::3]
    operands = (b, c) if form.operation == "cas" else (b,)
    got = run(form, old, *operands)
    lists = [x.tolist() for x in (old, *operands)]
    want = [INTEGER[form.operation](*each) & of.unsigned_word.max for each in zip(*lists, strict=True)]
    assert got.view(of.unsigned_word.numpy).tolist() == want


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("ptx", FLOATS)
def test_floats(space: str, ptx: str) -> None:
    of = REGISTERS[ptx]
    old, b = values(of, COUNT, 4), values(of, COUNT, 5)
    got = run(Form(space, "", "add", ptx), old, b)
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64) for x in (old, b)]
        # The float64 sum of bfloat16 numbers that lie far apart would be rounded twice.
        want = numerics.add(old, b) if ptx == "bf16" else (wide[0] + wide[1]).astype(of.numpy)
    flushed = np.zeros(COUNT, bool)
    if (ptx, space) == ("f32", "global"):
        flushed = np.any([(x != 0) & (np.abs(x) < 2.0**-126) for x in (*wide, want.astype(np.float64))], axis=0)
    assert (same(got, want) | flushed).all() and flushed.sum() < COUNT // 10


def test_subnormal_numbers() -> None:
    old = np.array([1e-40, -1e-40, 1.5e-38, 0.0], np.float32)
    b = np.array([0.0, 0.0, -1.0e-38, 1e-40], np.float32)
    with np.errstate(all="ignore"):
        assert (run(Form("shared", "", "add", "f32"), old, b) == old + b).all()
    flushed = run(Form("global", "", "add", "f32"), old, b)
    assert (flushed == 0).sum() == 3 and flushed[2] == np.float32(1.5e-38)
    assert run(Form("global", "", "add", "f64"), np.array([5e-324]), np.array([5e-324]))[0] == 1e-323
    tiny = np.array([6e-8], np.float16)
    assert run(Form("global", "", "add", "f16"), tiny, tiny)[0] == np.float16(1.2e-7)


@pytest.mark.parametrize(("ptx", "element"), [("f16x2", float16), ("bf16x2", bfloat16)])
def test_pairs(ptx: str, element) -> None:
    old, b = values(element, 2 * COUNT, 6), values(element, 2 * COUNT, 7)
    got = run(Form("global", "", "add", ptx), old.view(np.uint32), b.view(np.uint32))
    assert same(got.view(element.numpy), numerics.add(old, b)).all()


def test_texts_and_targets() -> None:
    assert len(ROWS) == len(set(ROWS)) > 250
    assert lookup("atom.global.add.noftz.relaxed.sys.f16x2").text == "atom.relaxed.sys.global.add.noftz.f16x2"
    row = lookup("red.shared.add.noftz.bf16")
    assert row.needs.holds(Target.parse("sm_90")) and not row.needs.holds(Target.parse("sm_89"))
    for each in ROWS:
        place = each.operand("a")
        assert each.memory and place.kind is Kind.ADDRESS and place.mode is Mode.UPDATE and place.align == place.bytes
    assert "subnormal" in lookup("atom.global.add.f32").notes and not lookup("atom.shared.add.f32").notes
