"""`warpjit.compile` and the methods that look inside: for arguments, specs or annotations, for any target."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from call_kernels import double, rows, transfer
from warp_matmul import warp_matmul

import warpjit as package
from warpjit import ArgumentError, CompileError, T, TargetError, kernel, stages, warpjit
from warpjit import compiled as compiled_module
from warpjit.cuda import toolchain
from warpjit.isa.target import ARCHITECTURES, Target

nvcc = pytest.mark.nvcc


def seed_inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    a, b = torch.randn((16, 16)).half(), torch.randn((8, 16)).half()
    return a, b, torch.full((16, 8), float("nan"))


# ---- descriptions ---------------------------------------------------------------------------------------------


def test_the_same_kernel_by_tensors_meta_tensors_specs_and_annotations():
    a, b, out = seed_inputs()
    specs = (T.Tensor((16, 16), "float16"), T.Tensor((8, 16), torch.float16), T.Tensor((16, 8), T.float32))
    ways: list[tuple[Any, ...]] = [(), (a, b, out), tuple(x.to("meta") for x in (a, b, out)), specs, (a.to("meta"),)]
    texts = {warp_matmul.source(*way, target="sm_90a") for way in ways}
    assert len(texts) == 1
    assert len({warp_matmul.specialization(way, {}) for way in ways}) == 1


def test_specs_fill_in_what_annotations_leave_open():
    text = double.source(T.Tensor((16,), "float32"), T.Tensor((16,), "float32"))
    assert text == double.source(torch.empty(16), torch.empty(16, device="meta"))
    assert text != double.source(T.Tensor((16,), "int32"), T.Tensor((16,), "int32"))


@warpjit
def open_sizes(X: T.Tensor(("n", T.dynamic("M", multiple_of=4)), "float16"), Y: T.Tensor(("n",)), s, *, c=1):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    if s > 0:
        X[0, 0] = c


X8 = T.Tensor((8, T.dynamic("M")), "float16")
BAD = [
    ((), "open_sizes(X, Y, s, *, c): expected arguments or specs (the annotations do not say all) for Y, s"),
    (
        (T.Tensor((8,), "float16"),),
        "open_sizes(X, Y, s, *, c): expected arguments or specs (the annotations do not say",
    ),
    ((T.Tensor((8,), "float16"), X8, 1), "X: expected 2 axes, shape (n, M), but got shape (8,)"),
    ((T.Tensor((8, 4), "float32"), T.Tensor((8,), "int8"), 1), "X: expected a tensor of float16 but got float32"),
    ((T.Tensor((8, 6)), T.Tensor((8,), "int8"), 1), "X.shape[1]: expected M to be a multiple of 4 but got 6"),
    ((T.Tensor((8, 4)), T.Tensor((7,), "int8"), 1), "Y.shape[0]: expected size n = 8, as in X.shape[0], but got 7"),
    (
        (T.Tensor((T.dynamic("n"), 4)), T.Tensor((7,), "int8"), 1),
        "X.shape[0]: the size 'n' is static: expected an int but",
    ),
    (
        (T.Tensor(("n", 4)), T.Tensor((7,), "int8"), 1),
        "X.shape[0]: the size 'n' is static and has no value: give it as",
    ),
    ((X8, T.Tensor((8,)), 1), "Y: a spec needs a shape and a data type but got Tensor(shape=(8,), dtype=None"),
    ((X8, T.int32, 1), "Y: expected a tensor but got T.int32"),
    ((X8, 5, 1), "Y: expected a tensor but got 5"),
]


@pytest.mark.parametrize(("args", "sentence"), BAD)
def test_bad_specs(args, sentence):
    with pytest.raises(ArgumentError) as caught:
        open_sizes.source(*args)
    assert str(caught.value).startswith(sentence)


def test_specs_of_scalars_and_named_sizes():
    y = T.Tensor((8,), "int8")
    int64 = open_sizes.specialization((X8, y, T.int64), {})
    assert [str(kind) for _, kind in int64.kinds] == [
        "a tensor of float16, shape (8, M), strides (packed, one), aligned to 16 bytes",
        "a tensor of int8, shape (8,), strides (one), aligned to 16 bytes",
        "a number of type int64",
        "the constant 1",
    ]
    assert open_sizes.specialization((X8, y, 5), {}) == open_sizes.specialization((X8, y, T.int32), {"c": 1})
    named = T.Tensor(("n",), "int8"), T.Tensor(dtype="int8")
    for spec in named:
        assert open_sizes.specialization((X8, spec, 5), {}) == open_sizes.specialization((X8, y, 7), {})


# ---- targets --------------------------------------------------------------------------------------------------


def test_the_default_target(monkeypatch):
    monkeypatch.setattr(kernel, "present", lambda: None)
    monkeypatch.delenv("WARPJIT_TARGET", raising=False)
    assert {kernel.resolve_target(name).name for name in (None, "cuda")} == {"sm_90a"}
    monkeypatch.setenv("WARPJIT_TARGET", "sm_86")
    assert {kernel.resolve_target(name).name for name in (None, "cuda")} == {"sm_86"}
    assert kernel.cpu_target().name == "sm_86"
    assert kernel.resolve_target("sm_120a").name == "sm_120a"
    monkeypatch.setattr(kernel, "present", lambda: Target.parse("sm_89"))
    assert kernel.resolve_target("cuda").name == "sm_89"
    assert kernel.cpu_target().name == "sm_86"  # what is simulated is verified for what was asked for


@pytest.mark.parametrize("target", ["sm_70", "hopper", "SM_90", 90, ("sm_90",)])
def test_unknown_targets_are_refused_with_the_known_ones(target):
    with pytest.raises(TargetError) as caught:
        warp_matmul.source(target=target)
    assert str(caught.value).startswith(f'expected a target of the form "sm_90a" but got {target!r}')


@nvcc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_target_is_built_for_without_a_gpu(arch):
    compiled = package.compile(rows, target=f"sm_{arch}")
    assert compiled.cubin[:4] == b"\x7fELF"
    assert compiled.target.name == f"sm_{arch}"
    assert f".target sm_{arch}\n" in compiled.ptx


def test_a_kernel_that_the_target_cannot_run_is_refused():
    with pytest.raises(package.TraceError, match="sm_75") as caught:
        warp_matmul.source(target="sm_75")
    assert caught.value.findings[0].loc.line > 0


@pytest.mark.parametrize(
    ("target", "device", "runs"),
    [
        ("sm_90a", "sm_90a", True),
        ("sm_90", "sm_90a", True),
        ("sm_80", "sm_89", True),
        ("sm_80", "sm_90a", False),
        ("sm_89", "sm_80", False),
        ("sm_80", "sm_87", False),
        ("sm_87", "sm_89", False),
        ("sm_100", "sm_103a", True),
        ("sm_100a", "sm_103a", False),
        ("sm_100f", "sm_103a", True),
        ("sm_103f", "sm_100a", False),
        ("sm_100f", "sm_120a", False),
    ],
)
def test_which_devices_run_a_target(target, device, runs):
    assert Target.parse(target).runs_on(Target.parse(device)) is runs


# ---- the compiled object --------------------------------------------------------------------------------------


@nvcc
def test_properties_are_those_of_the_methods():
    compiled = package.compile(warp_matmul, target="sm_89")
    assert compiled.source == warp_matmul.source(target="sm_89")
    assert compiled.ptx == warp_matmul.ptx(target="sm_89")
    assert compiled.cubin == warp_matmul.cubin(target="sm_89")
    assert compiled.sass == warp_matmul.sass(target="sm_89")
    assert compiled.resources == warp_matmul.resources(target="sm_89")
    assert "HMMA" in compiled.sass and "mma.sync" in compiled.ptx
    assert repr(compiled) == "<<warpjit kernel warp_matmul> compiled for sm_89>"


@nvcc
def test_the_resources_are_those_of_a_launch():
    @warpjit
    def big(X: T.Tensor((32,), "float32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        a = T.alloc_shared((32, 1024), "float32")
        a[T.cuda.lane_id(), 5] = X[T.cuda.lane_id()]
        T.cuda.cta_sync()
        X[T.cuda.lane_id()] = a[31 - T.cuda.lane_id(), 5]

    found = package.compile(big, target="sm_90a").resources
    assert found.shared_bytes == 32 * 1024 * 4 + 1024
    assert found.stack_bytes == 0 and 0 < found.registers <= 32
    assert package.compile(rows, target="sm_75").resources.shared_bytes == 0


def test_only_kernels_are_compiled():
    with pytest.raises(
        ArgumentError, match=r"^warpjit.compile: expected a function decorated with @warpjit but got <built"
    ):
        package.compile(len)


@nvcc
def test_a_compiled_kernel_runs_on_cpu_tensors_whatever_its_target():
    a, b, out = seed_inputs()
    for target in ("sm_80", "sm_120", "cuda", None):
        out.fill_(float("nan"))
        package.compile(warp_matmul, target=target)(a, b, out)
        torch.testing.assert_close(out, a.float() @ b.float().T, rtol=2e-4, atol=2e-4)


@nvcc
def test_arguments_may_be_better_than_those_compiled_for(monkeypatch):
    @warpjit
    def shifted(X, Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=4, block=32))
        row, lane = T.cuda.block_idx("x"), T.cuda.lane_id()
        if lane < 5:
            Out[row, lane] = X[row, lane] + 1

    base = torch.arange(420, dtype=torch.float32).view(20, 21)
    free = base[1:8:2, 1:10:2]  # strides of no kind, unaligned
    compiled = package.compile(shifted, free, free, target="sm_90a")
    monkeypatch.setattr(stages, "trace", lambda *args: pytest.fail("traced again"))
    for x in (
        free,
        base[:4, :5],
        base[:4, ::5],
        base[:5, :4].t(),
        base[:1, :5].expand(4, 5),
        base[:4, :5].contiguous(),
    ):
        out = torch.full((4, 5), -1.0)
        compiled(x, out)
        assert torch.equal(out, x + 1)


@nvcc
def test_arguments_that_are_worse_are_refused():
    good = torch.zeros((4, 8))
    compiled = package.compile(transfer, good, good, target="sm_90a")
    base = torch.zeros((8, 32))
    described = "a tensor of float32, shape (4, 8), strides (packed, one), aligned to 16 bytes"
    bad = [
        (good.half(), "X: compiled for a tensor of float32, but got float16"),
        (base[:4, :9], "X: compiled for shape (4, 8), but got (4, 9)"),
        (good[0], "X: compiled for shape (4, 8), but got (8,)"),
        (base[:4, :8], f"X: compiled for {described}, but got strides (32, 1) of shape (4, 8)"),
        (
            torch.zeros(40)[1:33].view(4, 8),
            "X: expected an address that is a multiple of 16 bytes but got one 4 bytes beyond",
        ),
        (7, f"X: compiled for {described}, but got 7"),
        (good.to("meta"), "expected all tensors on one device, but X is on meta, Out is on cpu"),
    ]
    for x, sentence in bad:
        with pytest.raises(ArgumentError) as caught:
            compiled(x, good)
        assert str(caught.value).startswith(sentence)
    with pytest.raises(ArgumentError, match=r"^transfer\(X, Out\): expected arguments for Out$"):
        compiled(good)


@nvcc
def test_constants_numbers_tuples_and_runtime_sizes_of_a_compiled_kernel():
    @warpjit
    def general(X: T.Tensor((T.dynamic("M", multiple_of=2),), "int32"), parts, n, *, c, d=0):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        if lane < X.shape[0]:
            X[lane] = parts[0][lane] + n + c + d

    part = torch.arange(32, dtype=torch.int32)
    compiled = package.compile(general, X_SPEC, (part, None), T.int32, c=100, target="sm_90a")
    for size in (2, 8, 32):
        x = torch.zeros(size, dtype=torch.int32)
        compiled(x, (part, None), size)
        assert torch.equal(x, part[:size] + 100 + size)
    x = torch.zeros(4, dtype=torch.int32)
    compiled(x, (part, None), 4, c=100, d=0)
    bad = [
        (
            (torch.zeros(3, dtype=torch.int32), (part, None), 4),
            {},
            "X.shape[0]: expected M to be a multiple of 2 but got 3",
        ),
        ((x, (part,), 4), {}, "parts: expected a tuple of 2 but got ("),
        ((x, (part, 1), 4), {}, "parts[1]: compiled for the constant None, but got 1"),
        ((x, (None, None), 4), {}, "parts[0]: compiled for a tensor of int32"),
        ((x, (part, None), 1.5), {}, "n: expected an integer (int32) but got 1.5"),
        ((x, (part, None), 4), {"c": 100.0}, "c: compiled for the constant 100, but got 100.0"),
        ((x, (part, None), 4), {"e": 1}, "general(X, parts, n, *, c, d): expected names of its parameters but got 'e'"),
    ]
    before = x.clone()
    for args, named, sentence in bad:
        with pytest.raises(ArgumentError) as caught:
            compiled(*args, **named)
        assert str(caught.value).startswith(sentence)
    assert torch.equal(x, before)


X_SPEC = T.Tensor((T.dynamic("M", multiple_of=2),), "int32")
ADDEND = 3


@nvcc
def test_a_compiled_kernel_keeps_the_captures_of_its_compilation(monkeypatch):
    @warpjit
    def captured(Out: T.Tensor((32,), "int32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = ADDEND

    compiled, out = package.compile(captured), torch.zeros(32, dtype=torch.int32)
    monkeypatch.setitem(globals(), "ADDEND", 5)
    compiled(out)
    assert (out == 3).all()
    captured(out)
    assert (out == 5).all()


# ---- without a compiler ---------------------------------------------------------------------------------------


def test_without_a_compiler_the_seeds_spelling_still_simulates(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    for module in (kernel, compiled_module):
        monkeypatch.setattr(module, "present", lambda: None)
    monkeypatch.setattr(toolchain, "_identities", {})

    @warpjit
    def local(Out: T.Tensor((32,), "int32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = 3

    compiled, out = package.compile(local, target="cuda"), torch.zeros(32, dtype=torch.int32)
    compiled(out)
    assert (out == 3).all() and "__global__" in compiled.source
    for ask in (lambda: compiled.cubin, lambda: package.compile(local, target="sm_80"), lambda: local.cubin()):
        with pytest.raises(CompileError, match=r"^nvcc was not found: set CUDA_HOME"):
            ask()
