"""The kernels by other hands: what they compile to, what they count, and how they are launched."""

from __future__ import annotations

import ctypes
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from driver_stand_in import Fake

from bench import loop, native
from bench.contestants import REFERENCE_SHARED, THREADS, reference
from bench.launchers import BLOCK, Ground, Parameters, built_loop, of_ctypes
from bench.native import Native, cubin, function
from bench.products import DTYPES, Case, Problem, Size
from warpjit import config
from warpjit.cuda import driver, elf
from warpjit.cuda.disassemble import Instruction, count, instructions, loops, sass
from warpjit.isa.target import Target

pytestmark = pytest.mark.nvcc

SM_90A = Target.parse("sm_90a")


def code(file: str, dtype: str) -> list[Instruction]:
    return instructions(sass(cubin(file, SM_90A, *loop.options(dtype)), config.read()))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_loop_is_products_and_its_own_control(dtype: str) -> None:
    whole = [each for each in code(loop.FILE, dtype) if each.function == "mma_loop"]
    (main,) = loops(whole)
    body = Counter(each.mnemonic for each in whole if main.holds(each))
    products = body.pop("HMMA")
    assert products == loop.UNROLL * loop.TILES == count(whole, "HMMA.16816.F32")
    assert set(body) <= {"IADD3", "UIADD3", "ISETP", "UISETP", "BRA", "NOP"}
    assert sum(body.values()) <= products / 30
    flop_of_iteration = products * loop.FLOP_OF_MMA * loop.WARPS
    assert loop.flop(132, 1000) == 132 * 1000 * flop_of_iteration
    kernel = elf.resources(cubin(loop.FILE, SM_90A, *loop.options(dtype)))["mma_loop"]
    assert kernel.stack_bytes == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_loop_is_of_its_type(dtype: str) -> None:
    bf16 = count(code(loop.FILE, dtype), "HMMA.16816.F32.BF16")
    assert bf16 == (loop.UNROLL * loop.TILES if dtype == "bfloat16" else 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_reference_is_built_as_it_was_written(dtype: str) -> None:
    kernel = elf.resources(cubin("gemm_cp_async.cu", SM_90A, *loop.options(dtype)))["gemm"]
    assert (kernel.registers, kernel.stack_bytes) == (255, 0)
    assert [each.size for each in kernel.parameters] == [8, 8, 8, 4, 4, 4]
    # 64 x 64 of a warp: 4 x 8 tiles, 4 steps of 16 along K.
    assert count(code("gemm_cp_async.cu", dtype), "HMMA") == 4 * 8 * 4


def test_the_empty_kernel_has_the_parameters_of_the_launch() -> None:
    kernel = elf.resources(cubin("empty.cu", SM_90A))["empty"]
    assert [each.size for each in kernel.parameters] == [8, 8, 8, 4, 4]


# ---- the loop's own check -----------------------------------------------------------------------------------


def fragments(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A (64, 16) and B (64, 16) as the words of 32 lanes, (32, lanes, 2), place by place from the PTX manual."""
    words = torch.empty((32, 32, 2))
    for lane in range(32):
        group, pair = lane // 4, 2 * (lane % 4)
        for tile in range(4):
            for register in range(4):
                row, column = 16 * tile + group + 8 * (register % 2), pair + 8 * (register // 2)
                words[4 * tile + register, lane] = a[row, column : column + 2]
        for tile in range(8):
            for register in range(2):
                column = pair + 8 * register
                words[16 + 2 * tile + register, lane] = b[8 * tile + group, column : column + 2]
    return words


def test_the_sums_of_the_loop_are_those_of_the_products() -> None:
    torch.manual_seed(0)
    warps = 3
    a, b = torch.randn((2, loop.SETS, warps, 64, 16), dtype=torch.float64)
    operands = torch.stack(
        [torch.cat([fragments(a[s, w], b[s, w]) for w in range(warps)], dim=1) for s in range(loop.SETS)]
    ).double()
    assert operands.shape == (loop.SETS, 32, 32 * warps, 2)
    exact, size = loop.warp_sums(operands, iterations=3)
    rounded_a, rounded_b = a.float().double(), b.float().double()
    products = torch.einsum("swmk,swnk->w", rounded_a, rounded_b)
    magnitude = torch.einsum("swmk,swnk->w", rounded_a.abs(), rounded_b.abs())
    assert torch.allclose(exact, products * 3 * loop.UNROLL / loop.SETS)
    assert torch.allclose(size, magnitude * 3 * loop.UNROLL / loop.SETS)


# ---- launched, on the stand-in for the driver -----------------------------------------------------------------


@pytest.fixture
def gpu(as_libcuda: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """An H200 as the launches see it: torch's current device is 0, its current stream 0x70."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0x70 + device, raising=False)
    native._module.cache_clear()
    yield as_libcuda
    native._module.cache_clear()


def launched(gpu: Fake) -> list[str]:
    return [line for line in gpu.log if line.startswith("launch")]


def values(line: str) -> list[bytes]:
    return [bytes.fromhex(part) for part in line.partition(": ")[2].split()]


def test_the_reference_is_launched_on_the_current_stream(gpu: Fake) -> None:
    gpu.parameters(8, 8, 8, 4, 4, 4)
    size = Size(384, 512, 128)
    problem = Problem(Case(size, "bfloat16"), "cpu", seed=0)
    entrant = reference(problem, 0)
    assert f"set {driver.MAX_DYNAMIC_SHARED_BYTES} to {REFERENCE_SHARED}" in gpu.log
    entrant.launch()
    (line,) = launched(gpu)
    assert line.startswith(f"launch 6,1,1 x {THREADS},1,1 shared {REFERENCE_SHARED} stream 0x70: ")
    pointers, sizes = values(line)[:2], values(line)[3:]
    assert pointers == [struct.pack("<Q", each.data_ptr()) for each in (problem.a, problem.w)]
    assert sizes == [struct.pack("<i", each) for each in (size.m, size.n, size.k)]
    # The stand-in computes nothing, so the result is what it was: poison.
    assert "were not written" in str(entrant.check().error)


def test_the_reference_refuses_what_its_tiles_do_not_divide(gpu: Fake) -> None:
    problem = Problem(Case(Size(128, 128, 64), "float16"), "cpu", seed=0)
    with pytest.raises(ValueError, match="expected a size that 128x256x64 divides but got 128x128x64"):
        reference(problem, 0)


def test_a_native_kernel_is_loaded_once(gpu: Fake) -> None:
    gpu.parameters(8, 8, 8, 4, 4)
    for _ in range(2):
        kernel = function("empty.cu", "empty")
        Native(kernel, ["Q", "Q", "Q", "i", "i"], [1, 2, 3, 4, 5], grid=7, block=32).launch()
    log = gpu.log
    assert sum(line.startswith("load") for line in log) == 1
    assert [line.partition(":")[0] for line in log if line.startswith("launch")] == [
        "launch 7,1,1 x 32,1,1 shared 0 stream 0x70"
    ] * 2


@pytest.fixture
def ground(gpu: Fake) -> Ground:
    gpu.parameters(8, 8, 8, 4, 4)
    gpu.push(driver.driver().device(0).context)
    a, b, c = (torch.zeros(BLOCK) for _ in range(3))
    return Ground(a, b, c, stream=0x71, device=0)


def expected(ground: Ground) -> list[bytes]:
    pointers = [struct.pack("<Q", each.data_ptr()) for each in (ground.a, ground.b, ground.c)]
    return [*pointers, struct.pack("<i", 3), struct.pack("<i", 5)]


def test_ctypes_launches_the_empty_kernel(gpu: Fake, ground: Ground) -> None:
    with ExitStack() as stack:
        of_ctypes(ground, stack)(3)
    lines = launched(gpu)
    assert len(lines) == 3
    assert {line.partition(":")[0] for line in lines} == {f"launch 1,1,1 x {BLOCK},1,1 shared 0 stream 0x71"}
    assert values(lines[0]) == expected(ground)


CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)
"""cuLaunchKernel, which the stand-in does not have."""


def test_the_c_loop_launches_until_a_launch_fails(ground: Ground, tmp_path: Path) -> None:
    seen: list[tuple[object, ...]] = []

    def launch(kernel: int, *rest: Any) -> int:
        *shape, stream, parameters, extra = rest
        pointers = ctypes.cast(parameters, ctypes.POINTER(ctypes.c_void_p))
        given = [ctypes.string_at(pointers[index], size) for index, size in enumerate((8, 8, 8, 4, 4))]
        seen.append((kernel, tuple(shape), stream, extra, given))
        return 0 if len(seen) < 5 else 700

    call = CALL(launch)
    entry, kernel, stream = ctypes.cast(call, ctypes.c_void_p), ctypes.c_void_p(0x99), ctypes.c_void_p(0x71)
    launch_loop, parameters = built_loop(tmp_path), Parameters(ground)
    assert launch_loop(entry, kernel, BLOCK, stream, parameters.array, 3) == 0
    assert seen == [(0x99, (1, 1, 1, BLOCK, 1, 1, 0), 0x71, None, expected(ground))] * 3
    assert launch_loop(entry, kernel, BLOCK, stream, parameters.array, 10) == 700
    assert len(seen) == 5
