"""mma.sync of every family in kernels: fragments filled with a number, C as a number, operands viewed in elements.

What the instructions compute is tested in tests/isa; here, that the language's forms reach each family.
"""

# Names in kernels that are refused are never used.

from __future__ import annotations

import pytest
import torch
from both import assert_same_bits
from refusals import ONE_WARP, refused

from warpjit import T, warpjit

INPUTS = {
    "m16n8k16.row.col.f16.f16.f16.f16": "float16",
    "m16n8k8.row.col.f32.tf32.tf32.f32": "float32",
    "m16n8k16.row.col.f64.f64.f64.f64": "float64",
    "m8n8k4.row.col.f64.f64.f64.f64": "float64",
    "m16n8k32.row.col.satfinite.s32.s8.u8.s32": "int8",
    "m8n8k16.row.col.s32.s8.s8.s32": "int8",
    "m16n8k32.row.col.f32.e4m3.e5m2.f32": "float8_e4m3fn",
    "m16n8k32.row.col.f16.e5m2.e4m3.f16": "float8_e5m2",
}
"""One row of each family, and the type of A's elements. B's are the other, where there are two."""
HALVES, INTEGERS = (
    f"mma.sync.aligned.{each}" for each in ("m16n8k8.row.col.f16.f16.f16.f16", "m8n8k32.row.col.s32.s4.s4.s32")
)
OTHER = {"int8": "uint8", "float8_e4m3fn": "float8_e5m2", "float8_e5m2": "float8_e4m3fn"}


def opcode(text: str) -> str:
    return f"mma.sync.aligned.{text}"


def types(text: str) -> tuple[str, str, str]:
    """Of the elements of A, B and D, in torch's names."""
    left = INPUTS[text]
    mixed = ".s8.u8." in text or left.startswith("float8")
    result = {"f": "float", "s": "int"}[text.split(".")[-1][0]] + text.split(".")[-1][1:]
    return left, OTHER[left] if mixed else left, result


@warpjit
def forms(A, B, C, Value, Out, *, text, number):
    """Out[i] = A @ B.T + C for: C a tensor, a literal, a value of the kernel, and D in place, filled before."""
    T.device_entry(launch=ONE_WARP)
    mma, value = T.ptx[text], Value[0]
    a = loaded(T.cuda.fragments(mma, "A"), A)
    b = loaded(T.cuda.fragments(mma, "B"), B)
    given = loaded(T.cuda.fragments(mma, "C"), C)
    same = T.cuda.fragments(mma, "D", fill=value)
    for index, c in enumerate((given, number, value, same)):
        d = same if index == 3 else T.cuda.fragments(mma, "D")
        T.cuda.tile.apply(mma, d, a, b, c)
        sums = d.view(Out.dtype)
        for register, row, column in sums.each():
            Out[index, row, column] = sums.regs[register]


def loaded(fragment, source):
    """The fragment, its elements read from a matrix."""
    elements = fragment.view(source.dtype)
    for register, row, column in elements.each():
        elements.regs[register] = source[row, column]
    return fragment


@pytest.mark.parametrize("text", INPUTS)
def test_every_form_of_c_and_elements_as_operands(device, run, text):
    left, right, result = (getattr(torch, name) for name in types(text))
    m, k = (int(each) for each in text.split(".")[0][1:].split("n8k"))
    generator = torch.Generator().manual_seed(7)
    made = [torch.randint(-2, 3, shape, generator=generator) for shape in ((m, k), (8, k), (m, 8))]
    if right is torch.uint8:
        made[1] = made[1].abs()
    a, b, c = (each.to(kind) for each, kind in zip(made, (left, right, result), strict=True))
    number = 3 if result is torch.int32 else -1.5
    value = torch.tensor([2.5]).to(result)
    out = torch.full((4, m, 8), 77, dtype=result, device=device)
    run(forms, *(each.to(device) for each in (a, b, c, value)), out, text=opcode(text), number=number)
    product = made[0].double() @ made[1].double().T
    starts = (made[2].double(), number, value.double(), value.double())
    expected = torch.stack([product + start for start in starts]).to(result)
    # Sums of zeros are +0 but in float64, where the chain keeps C's sign.
    assert_same_bits(expected if result is torch.int32 else expected + 0.0, out)


FILLS = {
    "m16n8k8.row.col.f16.f16.f16.f16": (1.0, 0x3C003C00),
    "m16n8k8.row.col.f32.bf16.bf16.f32": (-2, 0xC000C000),
    "m16n8k4.row.col.f32.tf32.tf32.f32": (1.5, 0x3FC00000),
    "m16n8k16.row.col.s32.s8.u8.s32": (-3, 0xFDFDFDFD),
    "m16n8k32.row.col.s32.s4.u4.s32": (-7, 0x99999999),
    "m16n8k128.row.col.s32.b1.b1.s32.and.popc": (1, 0xFFFFFFFF),
    "m16n8k16.row.col.f32.e5m2.e4m3.f32": (0.5, 0x38383838),
}
"""A number that fills operand A, and the word that it becomes."""


@warpjit
def filled(Value, Out, *, text, number, bits):
    """Operand A's registers, filled with a literal, and with a value of the kernel where elements are bytes or more."""
    T.device_entry(launch=ONE_WARP)
    by_literal = T.cuda.fragments(T.ptx[text], "A", fill=number)
    by_value = T.cuda.fragments(T.ptx[text], "A", fill=number if Value is None else Value[0])
    for r in T.unroll(2):
        Out[0, T.cuda.lane_id(), r] = by_literal.regs[r]
        Out[1, T.cuda.lane_id(), r] = by_value.regs[r]
    by_element = T.cuda.fragments(T.ptx[text], "A", dtype=None if bits else "element", fill=number)
    words = by_element.view("uint32")
    for r in T.unroll(2):
        Out[2, T.cuda.lane_id(), r] = words.regs[r]


@pytest.mark.parametrize("text", FILLS)
def test_fill_sets_every_element(device, run, text):
    number, word = FILLS[text]
    out = torch.zeros((3, 32, 2), dtype=torch.int64, device=device)
    # No instruction of the table makes an 8-bit float of another number.
    kind = torch.float8_e5m2 if "e5m2" in text else torch.float32
    value = None if "4.u4" in text or "b1" in text else torch.tensor([float(number)]).to(kind).to(device)
    run(filled, value, out, text=opcode(text), number=number, bits="b1" in text)
    assert out.unique().tolist() == [word]


def test_numbers_that_fit_no_element():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        halves, integers = T.ptx[HALVES], T.ptx[INTEGERS]
        d, a, b = T.cuda.fragments(halves, "D"), T.cuda.fragments(halves, "A"), T.cuda.fragments(halves, "B")
        T.cuda.tile.apply(halves, d, a, b, 0)
        T.cuda.tile.apply(halves, d, a, b, T.float32(0.0))
        T.cuda.tile.apply(halves, d, a, b, 1e9)
        d, a, b = T.cuda.fragments(integers, "D"), T.cuda.fragments(integers, "A"), T.cuda.fragments(integers, "B")
        T.cuda.tile.apply(integers, d, a, b, 0.5)
        T.cuda.fragments(integers, "A", fill=8)
        T.cuda.fragments(integers, "A", fill=T.cuda.lane_id())
        T.cuda.fragments(integers, "A", fill="1")

    assert [message for message, _ in refused(kernel)] == [
        f"{HALVES}: operand C: expected float16 but got the int 0: write 0.0 or T.float16(0)",
        f"{HALVES}: operand C: expected float16 but got a scalar of type float32",
        "the literal 1000000000.0 is too large for float16",
        "the literal 0.5 is not an integer: it cannot become int32",
        "the literal 8 does not fit int4 (-8 to 7)",
        "expected a number known while tracing but got int32: int4 is less than a byte",
        "T.cuda.fragments: expected fill to be a number but got str '1'",
    ]
