"""Resources read from cubins, each compared with what ptxas itself reports for the same kernel."""

from __future__ import annotations

import re
from functools import cache

import pytest

from warpjit import config as config_module
from warpjit.cuda.elf import Parameter, Resources, resources, sections
from warpjit.cuda.prelude import prelude
from warpjit.cuda.toolchain import Compiled, compile_cubin
from warpjit.errors import CompileError
from warpjit.isa.target import Target

TARGETS = ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"]
BASES = [0x160, 0x160, 0x160, 0x210, 0x380, 0x380]  # where parameters begin in the constant bank

TEXT = (
    prelude(["__syncthreads"])
    + """
struct alignas(64) Map { unsigned long long words[16]; };
static __device__ __noinline__ float recursive(float* p, int n) {
  float v[50];
  for (int i = 0; i < 50; i++) v[i] = p[i * 32];
  return n > 0 ? v[n] + recursive(p + 1, n - 1) : v[-n];
}
extern "C" __global__ void empty() {}
extern "C" __global__ void __launch_bounds__(1024) spills(float* p, int n) {
  float v[200];
  for (int i = 0; i < 200; i++) v[i] = p[i * 32];
  asm volatile("" ::: "memory");
  for (int j = 0; j < n; j++) {
    for (int i = 0; i < 200; i++) v[i] = v[i] * v[(i + 7) % 200] + p[j];
    asm volatile("" ::: "memory");
  }
  for (int i = 0; i < 200; i++) p[i * 32] = v[i];
}
extern "C" __global__ void stack(float* p, int n) {
  float v[300];
  for (int i = 0; i < 300; i++) v[i] = p[i * n];
  for (int i = 0; i < 300; i++) v[(i * n) % 300] += p[i];
  p[0] = v[n];
}
extern "C" __global__ void calls(float* p, int n) { p[0] = recursive(p, n); }
extern "C" __global__ void shared(float* p, int n) {
  __shared__ float v[1000];
  extern __shared__ float more[];
  v[n] = p[n]; more[n] = p[n + 1];
  __syncthreads();
  p[0] = v[n + 1] + more[n + 2];
}
extern "C" __global__ void dynamic(float* p, int n) {
  extern __shared__ float more[];
  more[n] = p[n];
  asm volatile("bar.sync 3, 64;" ::: "memory");
  p[0] = more[n + 2];
}
extern "C" __global__ void parameters(char a, double b, const __grid_constant__ Map m, short c, float* p) {
  p[0] = a + b + m.words[a] + c;
}
"""
)
NAMES = ["empty", "spills", "stack", "calls", "shared", "dynamic", "parameters"]


@cache
def built(target: str) -> Compiled:
    return compile_cubin(TEXT, Target.parse(target), options=("-Xptxas", "-v"), config=config_module.read())


def of(target: str, kernel: str) -> Resources:
    return resources(built(target).cubin)[kernel]


def reported(target: str, kernel: str, pattern: str) -> int:
    """A number that ptxas reports for `kernel`, 0 where it reports none."""
    log = built(target).log
    part = log.split(f"Compiling entry function '{kernel}'")[1].split("Compiling entry function")[0]
    part = part[part.index(f"Function properties for {kernel}") :]
    found = re.search(pattern, part)
    return int(found[1]) if found else 0


@pytest.mark.nvcc
@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_is_listed_and_no_device_function(target: str) -> None:
    assert sorted(resources(built(target).cubin)) == sorted(NAMES)


@pytest.mark.nvcc
@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("target", TARGETS)
def test_registers_shared_memory_and_barriers_are_ptxas_numbers(target: str, kernel: str) -> None:
    mine = of(target, kernel)
    assert mine.registers == reported(target, kernel, r"Used (\d+) registers")
    assert mine.shared_bytes == reported(target, kernel, r"(\d+) bytes smem")
    assert mine.barriers == reported(target, kernel, r"used (\d+) barriers")


@pytest.mark.nvcc
@pytest.mark.parametrize("kernel", ["empty", "spills", "stack", "shared", "dynamic", "parameters"])
@pytest.mark.parametrize("target", TARGETS)
def test_the_stack_is_ptxas_number(target: str, kernel: str) -> None:
    assert of(target, kernel).stack_bytes == reported(target, kernel, r"(\d+) bytes stack frame")


@pytest.mark.nvcc
@pytest.mark.parametrize("target", TARGETS)
def test_known_causes_show(target: str) -> None:
    assert of(target, "spills").registers <= 64
    assert reported(target, "spills", r"(\d+) bytes spill stores") > 0
    assert of(target, "spills").stack_bytes > 0
    assert of(target, "stack").stack_bytes >= 1200
    assert of(target, "shared").shared_bytes == 4000
    assert of(target, "dynamic").shared_bytes == 0
    assert of(target, "empty") == Resources(of(target, "empty").registers, 0, 0, 0, (), 0)


@pytest.mark.nvcc
@pytest.mark.parametrize(("target", "base"), list(zip(TARGETS, BASES, strict=True)))
def test_parameters_lie_as_in_c_but_wide_alignment_counts_from_the_constant_banks_start(target: str, base: int) -> None:
    mine = of(target, "parameters")
    wide = -(-(base + 16) // 64) * 64 - base
    assert mine.parameters == (
        Parameter(0, 1),
        Parameter(8, 8),
        Parameter(wide, 128),
        Parameter(wide + 128, 2),
        Parameter(wide + 136, 8),
    )
    assert mine.parameter_bytes == wide + 144
    assert of(target, "spills").parameters == (Parameter(0, 8), Parameter(8, 4))
    assert of(target, "spills").parameter_bytes == 12


@pytest.mark.nvcc
def test_sections_hold_the_code_and_no_bytes_for_shared_memory() -> None:
    by_name = {section.name: section for section in sections(built("sm_80").cubin)}
    assert len(by_name[".text.empty"].data) == by_name[".text.empty"].size > 0
    assert (by_name[".nv.shared.shared"].data, by_name[".nv.shared.shared"].size) == (b"", 4000)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x01" + bytes(60), b"MZ" + bytes(100)])
def test_what_is_no_cubin_is_refused(data: bytes) -> None:
    with pytest.raises(CompileError, match="cubin"):
        resources(data)


@pytest.mark.nvcc
def test_a_cut_cubin_is_refused() -> None:
    cubin = built("sm_80").cubin
    for length in (64, 200, len(cubin) // 2):
        with pytest.raises(CompileError, match="damaged"):
            sections(cubin[:length])
