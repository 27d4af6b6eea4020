"""Fragments in the element's own type: the same registers, proofs and code as those in 32-bit words."""

from __future__ import annotations

import pytest
import torch
from both import assert_same_bits
from refusals import ONE_WARP, refused

from warpjit import T, warpjit

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
HALF_SUMS = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
S4 = "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32"
E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
LOAD2 = "ldmatrix.sync.aligned.m8n8.x2.shared.b16"


@warpjit
def loaded(A, B, Out, *, text, form):
    """Out = A @ B.T of one instruction whose operands ldmatrix loads, declared in words or in elements."""
    T.device_entry(launch=ONE_WARP)
    mma = T.ptx[text]
    a_tile = T.alloc_shared(A.shape, A.dtype)
    b_tile = T.alloc_shared(B.shape, B.dtype)
    lane = T.cuda.lane_id()
    for i in T.unroll(A.shape[0] * A.shape[1] // 32):
        a_tile[i * 32 // A.shape[1], lane + i * 32 % A.shape[1]] = A[i * 32 // A.shape[1], lane + i * 32 % A.shape[1]]
    for i in T.unroll(B.shape[0] * B.shape[1] // 32):
        b_tile[i * 32 // B.shape[1], lane + i * 32 % B.shape[1]] = B[i * 32 // B.shape[1], lane + i * 32 % B.shape[1]]
    T.cuda.warp_sync()
    a = T.cuda.fragments(mma, "A", dtype=form)
    b = T.cuda.fragments(mma, "B", dtype=form)
    d = T.cuda.fragments(mma, "D")
    T.cuda.tile.apply(T.ptx[LOAD], a.view("uint32"), a_tile.view("float16"))
    T.cuda.tile.apply(T.ptx[LOAD2], b.view("uint32"), b_tile.view("float16"))
    T.cuda.tile.apply(mma, d, a, b, 0.0 if d.dtype == T.float32 else 0)
    for register, row, column in d.each():
        Out[row, column] = d.regs[register]


KINDS = [(S8, "int8", torch.int32), (E4M3, "float8_e4m3fn", torch.float32)]


def pair(dtype: str, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = (torch.randint(-3, 4, shape) for shape in ((16, 32), (8, 32)))
    return tuple(each.float().to(getattr(torch, dtype)).to(device) for each in (a, b))  # type: ignore[return-value]


@pytest.mark.parametrize(("text", "dtype", "result"), KINDS, ids=["int8", "fp8"])
def test_words_and_elements_make_the_same_code(device, both, text, dtype, result):
    a, b = pair(dtype, device)
    texts = set()
    for form in (None, "element", dtype, "uint32"):
        out = torch.zeros((16, 8), dtype=result, device=device)
        both(loaded, a, b, out, text=text, form=form)
        assert_same_bits((a.double().cpu() @ b.double().cpu().T).to(result), out)
        texts.add(loaded.source(a, b, out, text=text, form=form, target="sm_90a"))
    assert len(texts) == 1


@warpjit
def by_element(A, B, Out, *, text, dtype):
    """Operands written element by element; the sums in the operand's own type."""
    T.device_entry(launch=ONE_WARP)
    mma = T.ptx[text]
    a = T.cuda.fragments(mma, "A", dtype=dtype)
    b = T.cuda.fragments(mma, "B", dtype=dtype)
    d = T.cuda.fragments(mma, "D", dtype="element")
    for fragment, source in ((a, A), (b, B)):
        for register, row, column in fragment.each():
            fragment.regs[register] = source[row, column]
    T.cuda.tile.apply(mma, d, a, b, 0.0 if d.dtype == T.float16 else 0)
    for register, row, column in d.each():
        Out[row, column] = d.regs[register]


def test_half_sums_are_read_as_halves(device, both):
    a, b = (torch.randint(-3, 4, shape).half().to(device) for shape in ((16, 16), (8, 16)))
    out = torch.zeros((16, 8), dtype=torch.float16, device=device)
    both(by_element, a, b, out, text=HALF_SUMS, dtype="float16")
    assert_same_bits((a.double() @ b.double().T).half().cpu() + 0.0, out)


@pytest.mark.parametrize("dtype", ["int4", "element"])
def test_nibbles_are_written_one_by_one(device, both, dtype):
    a, b = (torch.randint(-8, 8, shape).to(torch.int8).to(device) for shape in ((16, 64), (8, 64)))
    out = torch.zeros((16, 8), dtype=torch.int32, device=device)
    both(by_element, a, b, out, text=S4, dtype=dtype)
    assert_same_bits((a.cpu().long() @ b.cpu().long().T).int(), out)


@warpjit
def nibbles(In, Out, Wide, *, dtype):
    """In as 4-bit integers, and back: by cast and one by one."""
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    local = T.alloc_local((8,), In.dtype)
    for i in T.unroll(8):
        local[i] = In[lane, i]
    small = local.cast(dtype)
    wide = small.cast("float32")
    for i in T.unroll(8):
        Out[lane, i] = small.regs[i]
        Wide[lane, i] = wide.regs[i]
    small.fill(3)
    Out[lane, 8] = small.regs[7]


@pytest.mark.parametrize("source", [torch.int32, torch.float32])
@pytest.mark.parametrize(("dtype", "low", "high"), [("int4", -8, 7), ("uint4", 0, 15)])
def test_casts_to_nibbles_and_back(device, both, source, dtype, low, high):
    x = torch.randint(-40, 40, (32, 8)).to(source).to(device)
    out, wide = torch.zeros((32, 9), dtype=torch.int32, device=device), torch.zeros((32, 8), device=device)
    both(nibbles, x, out, wide, dtype=dtype)
    whole = x.cpu().long()
    want = whole.clamp(low, high) if source is torch.float32 else (whole - low) % 16 + low
    assert torch.equal(out[:, :8].cpu().long(), want) and torch.equal(wide.cpu().long(), want)
    assert (out[:, 8] == 3).all()


def test_refused_types():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        T.cuda.fragments(T.ptx[F16], "A", dtype="bfloat16")
        T.cuda.fragments(T.ptx[F16], "D", dtype="float16")
        T.cuda.fragments(T.ptx[S4], "A", dtype="int4", fill=9)

    assert [message for message, _ in refused(kernel)] == [
        'T.cuda.fragments: dtype: expected a type of 32 bits, or "element" (float16) for operand A of '
        f"{F16}, but got bfloat16",
        f"T.cuda.fragments: dtype: expected a type of 32 bits for operand D of {F16}, but got float16",
        "the literal 9 does not fit int4 (-8 to 7)",
    ]


TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"


@warpjit
def by_words(A, B, Out):
    """Out = A @ B.T, where A's words are made of pairs and B's registers are stored as elements."""
    T.device_entry(launch=ONE_WARP)
    mma = T.ptx[F16]
    a, b, d = T.cuda.fragments(mma, "A"), T.cuda.fragments(mma, "B", dtype="element"), T.cuda.fragments(mma, "D")
    for register, row, column in a.view("float16").each():
        if register % 2 == 0:
            a.regs[register // 2] = T.reinterpret(T.float16x2(A[row, column], A[row, column + 1]), T.uint32)
    for register, row, column in b.each():
        b.regs[register] = B[row, column]
    T.cuda.tile.apply(mma, d, a, b, 0.0)
    for register, row, column in d.each():
        Out[row, column] = d.regs[register]


def test_words_are_stored_as_bits_and_elements_as_numbers(device, both):
    a, b = torch.randn(16, 16, device=device).half(), torch.randn(8, 16, device=device).half()
    out = torch.zeros(16, 8, device=device)
    both(by_words, a, b, out)
    torch.testing.assert_close(out, a.float() @ b.float().T, rtol=1e-5, atol=1e-5)


def test_numbers_are_no_words():
    """A fragment whose type nobody has named takes words; what would be converted to one is refused by each way in."""

    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        half, octet = T.float16(Out[0]), T.int8(Out[0])
        a, s = T.cuda.fragments(T.ptx[F16], "A", fill=1.5), T.cuda.fragments(T.ptx[S8], "A", fill=1)
        t = T.cuda.fragments(T.ptx[TF32], "A", dtype="element")
        a.regs[0] = half
        a.regs[0] = -0.0
        a[0, 0, 0, 0:4].regs[0] = half
        a.regs[0] += 1.5
        a.as_operand(T.ptx[F16], "A").regs[0] = half
        a.convert(T.cuda.fragments(T.ptx[HALF_SUMS], "D", M=2).layout).regs[0] = half
        s.regs[0] = octet
        t.regs[0] = Out[0]
        T.cuda.fragments(SPARSE, "E", fill=half)

    found = refused(kernel)
    assert [line for _, line in found] == [
        "a.regs[0] = half",
        "a.regs[0] = -0.0",
        "a[0, 0, 0, 0:4].regs[0] = half",
        "a.regs[0] += 1.5",
        'a.as_operand(T.ptx[F16], "A").regs[0] = half',
        'a.convert(T.cuda.fragments(T.ptx[HALF_SUMS], "D", M=2).layout).regs[0] = half',
        "s.regs[0] = octet",
        "t.regs[0] = Out[0]",
        'T.cuda.fragments(SPARSE, "E", fill=half)',
    ]
    assert all("since the fragment's type was not named, but got" in message for message, _ in found)
    assert 'make it with dtype="int8" to store elements' in found[6][0]


def test_what_converts_no_number_stays_allowed():
    """Integers of a word's size, a zero, and whatever a type was named for."""

    @warpjit
    def kernel(X: T.Tensor((32,), "float32"), Out: T.Tensor((32, 6), "int32")):
        T.device_entry(launch=ONE_WARP)
        lane = T.cuda.lane_id()
        a = T.cuda.fragments(T.ptx[F16], "A", fill=1.0)
        a.regs[0] = lane
        a.regs[1] = 0x3C003C00
        a.regs[2] = 0.0
        named = T.cuda.fragments(T.ptx[TF32], "A", dtype="uint32", fill=0)
        named.regs[0] = X[lane]
        a.view("uint32").regs[3] = X[lane]
        for i in T.unroll(4):
            Out[lane, i] = T.int32(a.regs[i])
        Out[lane, 4] = T.int32(named.regs[0])
        Out[lane, 5] = T.int32(named.cast("int32").regs[0])

    out = torch.zeros((32, 6), dtype=torch.int32)
    kernel(torch.full((32,), 7.5), out)
    assert out.tolist() == [[lane, 0x3C003C00, 0, 7, 7, 7] for lane in range(32)]
