"""The launch path against a stand-in for the driver: what is launched with what, what happens once, what is refused."""

from __future__ import annotations

import contextlib
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from call_kernels import CudaTensor, nothing_new
from driver_stand_in import PRIMARY, Fake

import warpjit as package
from warpjit import ArgumentError, LaunchError, T, config, kernel, warpjit
from warpjit import compiled as compiled_module
from warpjit.cuda import toolchain

pytestmark = pytest.mark.nvcc

M = T.dynamic("M")


def fresh() -> Any:
    """A kernel that nobody has called: four parameters (two pointers, a size, a number)."""

    @warpjit
    def scaled(X: T.Tensor((M, 32), "float32"), Out: T.Tensor((M, 32), "float32"), by: T.float32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=(M, 2), block=(32, 2)))
        row, lane = T.cuda.block_idx("x"), T.cuda.lane_id()
        last = M - 1
        Out[last - row, lane] = X[row, lane] * by

    return scaled


def launched(gpu: Fake) -> list[str]:
    return [line for line in gpu.log if line.startswith("launch")]


def words(line: str) -> list[bytes]:
    return [bytes.fromhex(part) for part in line.partition(": ")[2].split()]


def test_what_is_launched(gpu: Fake) -> None:
    gpu.parameters(8, 8, 4, 4)
    scaled = fresh()
    scaled(CudaTensor(3, 32, pointer=0x1000), CudaTensor(3, 32, pointer=0x2000), 1.5)
    (line,) = launched(gpu)
    assert line.startswith("launch 3,2,1 x 32,2,1 shared 0 stream 0x70: ")
    pointers = words(line)[:2]
    assert pointers == [struct.pack("<Q", 0x1000), struct.pack("<Q", 0x2000)]
    assert sorted(words(line)[2:]) == sorted([struct.pack("<f", 1.5), struct.pack("<i", 3)])
    assert gpu.contexts == (0, None)


def test_the_tensors_device_decides(gpu: Fake) -> None:
    gpu.parameters(8, 8, 4, 4)
    scaled = fresh()
    gpu.push(PRIMARY)  # device 0 is current
    scaled(CudaTensor(3, 32, index=1), CudaTensor(3, 32, index=1), 1.5)
    log = gpu.log
    assert f"push {hex(PRIMARY + 1)}" in log
    assert any("stream 0x71" in line for line in log)
    assert gpu.contexts == (1, PRIMARY)
    with pytest.raises(ArgumentError) as caught:
        scaled(CudaTensor(3, 32, index=1), CudaTensor(3, 32, index=0), 1.5)
    assert str(caught.value) == "expected all tensors on one device, but X is on cuda:1, Out is on cuda:0"


def test_a_second_launch_is_one_call_of_the_driver(gpu: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.parameters(8, 8, 4, 4)
    scaled = fresh()
    gpu.push(PRIMARY)
    scaled(CudaTensor(3, 32), CudaTensor(3, 32), 1.5)
    assert gpu.log
    with nothing_new(monkeypatch), monkeypatch.context() as patch:
        patch.setattr(config, "read", lambda: pytest.fail("a launch may not read the environment"))
        patch.setattr(toolchain, "compile_cubin", lambda *args, **how: pytest.fail("compiled again"))
        scaled(CudaTensor(5, 32, pointer=0x3000), CudaTensor(5, 32, pointer=0x4000), -2.0)
    (line,) = gpu.log
    assert line.startswith("launch 5,2,1 x 32,2,1 shared 0 stream 0x70: 0030000000000000 0040000000000000 ")


def test_an_empty_grid_launches_nothing(gpu: Fake) -> None:
    gpu.parameters(8, 8, 4, 4)
    scaled = fresh()
    scaled(CudaTensor(0, 32, pointer=0), CudaTensor(0, 32, pointer=0), 1.5)
    assert launched(gpu) == []


def test_a_bad_call_touches_no_driver(gpu: Fake) -> None:
    gpu.parameters(8, 8, 4, 4)
    scaled = fresh()
    scaled(CudaTensor(3, 32), CudaTensor(3, 32), 1.5)
    assert gpu.log
    bad = [
        (CudaTensor(3, 31), CudaTensor(3, 32), 1.5),
        (CudaTensor(3, 32), CudaTensor(4, 32), 1.5),
        (CudaTensor(3, 32), torch.zeros(3, 32), 1.5),
        (CudaTensor(3, 32), CudaTensor(3, 32), 1e39),
        (CudaTensor(3, 32, dtype=torch.float16), CudaTensor(3, 32), 1.5),
        (CudaTensor(3, 32, pointer=0x1002), CudaTensor(3, 32), 1.5),
    ]
    for args in bad:
        with pytest.raises(ArgumentError):
            scaled(*args)
    assert gpu.log == []


def test_two_threads_in_the_same_first_call_compile_once(
    gpu: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "cache"))
    gpu.parameters(8, 8, 4, 4)
    scaled = fresh()
    built: list[str] = []
    real = toolchain.compile_cubin

    def compile_cubin(text: str, *args: Any, **how: Any) -> Any:
        built.append(text)
        return real(text + f"// {id(scaled)}\n", *args, **how)

    monkeypatch.setattr(toolchain, "compile_cubin", compile_cubin)
    monkeypatch.setattr(package.build.Store, "obtain", lambda self, key, make, facts=None: make()[1])
    gate = threading.Barrier(4)

    def work() -> None:
        gate.wait()
        scaled(CudaTensor(3, 32), CudaTensor(3, 32), 1.5)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = gpu.log
    assert len(built) == 1
    assert sum(line.startswith("load") for line in log) == 1
    assert sum(line.startswith("launch") for line in log) == 4


SCALE = 2.0


def test_a_changed_capture_loads_another_cubin_once(gpu: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.parameters(8)

    @warpjit
    def of_global(Out: T.Tensor((32,), "float32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = T.float32(SCALE)

    def loads(value: float) -> int:
        monkeypatch.setitem(globals(), "SCALE", value)
        of_global(CudaTensor(32))
        log = gpu.log
        assert sum(line.startswith("launch") for line in log) == 1
        return sum(line.startswith("load") for line in log)

    two, three = 2.0, 3.0
    assert [loads(value) for value in (two, three, two, three)] == [1, 1, 0, 0]
    assert loads(float("2.0")) == 0  # another object: traced again, the same cubin


def test_a_cold_call_in_a_capture_is_refused_before_the_driver(gpu: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.parameters(8, 8, 4, 4)
    scaled, capturing = fresh(), [True]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])
    call = (CudaTensor(3, 32), CudaTensor(3, 32), 1.5)
    with pytest.raises(LaunchError) as caught:
        scaled(*call)
    assert str(caught.value) == (
        f"{scaled!r} would be compiled and loaded while a CUDA graph is captured: call it once before the capture with "
        "arguments of the same kinds"
    )
    assert gpu.log == []
    capturing[0] = False
    scaled(*call)
    assert len(launched(gpu)) == 1
    capturing[0] = True
    scaled(*call)
    assert len(launched(gpu)) == 1


def test_without_a_supported_device_one_sentence_says_so(gpu: Fake) -> None:
    gpu.library.fake_capability(7, 0)
    scaled = fresh()
    with pytest.raises(LaunchError) as caught:
        scaled(CudaTensor(3, 32), CudaTensor(3, 32), 1.5)
    assert str(caught.value) == f"{scaled!r}: there is no supported CUDA device 0"


# ---- compiled objects -----------------------------------------------------------------------------------------


def test_a_compiled_kernel_launches_what_it_holds(gpu: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.parameters(8, 8, 4, 4)
    scaled = fresh()
    compiled = package.compile(scaled, target="sm_90")
    gpu.push(PRIMARY)
    compiled(CudaTensor(3, 32), CudaTensor(3, 32), 1.5)
    assert len(launched(gpu)) == 1
    with nothing_new(monkeypatch):
        compiled(CudaTensor(4, 32), CudaTensor(4, 32), 1.5)
    assert [line.partition(" x ")[0] for line in gpu.log] == ["launch 4,2,1"]


@pytest.mark.parametrize("target", ["sm_80", "sm_100a", "sm_120"])
def test_a_compiled_kernel_for_another_device_is_refused(gpu: Fake, target: str) -> None:
    compiled = package.compile(fresh(), target=target)
    gpu.library.fake_clear()
    with pytest.raises(LaunchError) as caught:
        compiled(CudaTensor(3, 32), CudaTensor(3, 32), 1.5)
    assert str(caught.value) == f"{compiled!r} does not run on device 0, which is sm_90a"
    assert not any(line.startswith("load") for line in gpu.log)


def test_the_present_device_is_the_target(gpu: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.library.fake_capability(8, 9)
    monkeypatch.setenv("WARPJIT_TARGET", "sm_120")
    assert package.compile(fresh(), target="cuda").target.name == "sm_89"
    assert package.compile(fresh()).target.name == "sm_89"
    assert kernel.cpu_target().name == "sm_120"


def test_a_compiled_kernel_is_admitted_once_for_each_kind(gpu: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.parameters(8, 8, 4, 4)
    compiled = package.compile(fresh(), target="sm_90a")
    admitted: list[int] = []
    real = compiled_module.admit

    def admit(*args: Any) -> Any:
        admitted.append(1)
        return real(*args)

    monkeypatch.setattr(compiled_module, "admit", admit)
    gpu.push(PRIMARY)
    for rows in (3, 3, 3, 3, 5, 5, 3, 5):
        compiled(CudaTensor(rows, 32), CudaTensor(rows, 32), 1.5)
    assert len(admitted) == 2
    assert len(launched(gpu)) == 8
    with pytest.raises(ArgumentError, match=r"^X: compiled for a tensor of float32, but got float16"):
        compiled(CudaTensor(3, 32, dtype=torch.float16), CudaTensor(3, 32), 1.5)
    assert launched(gpu) == []


def test_constants_that_were_compiled_in_may_be_given_again(gpu: Fake) -> None:
    gpu.parameters(8)

    @warpjit
    def constant(Out: T.Tensor((32,), "int32"), c: T.constexpr, *, d=1):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = c + d

    compiled, out = package.compile(constant, c=300, d=2, target="sm_90a"), CudaTensor(32, dtype=torch.int32)
    for call in (
        lambda: compiled(out),
        lambda: compiled(out, 300),
        lambda: compiled(out, c=300, d=2),
        lambda: compiled(Out=out, d=2),
    ):
        for _ in range(4):
            call()
            assert len(launched(gpu)) == 1
    for args, named in [((out, 301), {}), ((out,), {"c": 300.0}), ((out,), {"d": 3}), ((out, 300), {"d": True})]:
        with pytest.raises(ArgumentError, match="compiled for the constant"):
            compiled(*args, **named)
    assert launched(gpu) == []
