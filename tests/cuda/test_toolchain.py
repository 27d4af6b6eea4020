"""Building: what the compiler is given and gives back, and how its words reach the user."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from warpjit import config as config_module
from warpjit.config import Config
from warpjit.cuda.elf import sections
from warpjit.cuda.messages import CompilerMessage, parse_messages, ptx_lines, with_text_lines
from warpjit.cuda.prelude import FUNCTIONS, PRELUDE, prelude
from warpjit.cuda.toolchain import compile_cubin, compile_flags, compile_ptx, option_flags
from warpjit.errors import CompileError, Frame, Loc
from warpjit.isa.target import ARCHITECTURES, Target

CONFIG = config_module.read()
SM_90A = Target.parse("sm_90a")
SM_80 = Target.parse("sm_80")
EMPTY = PRELUDE + 'extern "C" __global__ void empty() {}\n'


def place(line: int) -> Loc:
    return Loc((Frame("user.py", "kernel", 1000 + line, 0, 4, "user text"),))


# --- building ---------------------------------------------------------------------------------------------------


@pytest.mark.nvcc
def test_a_cubin_is_elf_for_the_target_and_the_same_every_time() -> None:
    first, second = (compile_cubin(EMPTY, SM_90A, config=CONFIG) for _ in range(2))
    assert first.cubin[:4] == b"\x7fELF"
    assert first.cubin[0x31] == 90  # e_flags holds the architecture
    assert first.cubin == second.cubin
    assert (first.log, first.messages) == ("", ())


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["sm_75", "sm_89", "sm_100f", "sm_120a"])
def test_ptx_names_the_target(name: str) -> None:
    target = Target.parse(name)
    ptx = compile_ptx(EMPTY, target, config=CONFIG)
    assert f".target {name}" in ptx
    assert ".visible .entry empty" in ptx


@pytest.mark.nvcc
def test_the_toolkit_takes_every_target_of_the_table() -> None:
    listed = subprocess.run(["nvcc", "--list-gpu-code"], capture_output=True, text=True, check=True).stdout.split()
    assert listed and set(listed) <= {f"sm_{arch}" for arch in ARCHITECTURES}


def test_flags_are_in_a_fixed_order_and_hold_all_that_the_compiler_is_told() -> None:
    assert compile_flags(SM_90A, option_flags(contract=False, lineinfo=True)) == (
        "-std=c++17",
        "-w",
        "-D__CUDA_RUNTIME_H__",
        "-gencode",
        "arch=compute_90a,code=sm_90a",
        "-fmad=false",
        "-lineinfo",
    )
    assert option_flags() == ()


@pytest.mark.nvcc
def test_contraction_is_on_and_can_be_turned_off() -> None:
    text = PRELUDE + 'extern "C" __global__ void k(float* p) { p[0] = p[1] * p[2] + p[3]; }\n'
    fused = compile_ptx(text, SM_80, config=CONFIG)
    apart = compile_ptx(text, SM_80, options=option_flags(contract=False), config=CONFIG)
    assert "fma.rn.f32" in fused and "fma.rn.f32" not in apart


@pytest.mark.nvcc
def test_what_the_compiler_says_on_success_is_the_log_and_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = compile_cubin(EMPTY, SM_80, options=("-Xptxas", "-v"), config=CONFIG)
    assert compiled.cubin[:4] == b"\x7fELF"
    assert any(
        message.tool == "ptxas" and "Compiling entry function" in message.message for message in compiled.messages
    )


@pytest.mark.nvcc
def test_builds_in_threads_keep_their_words_apart() -> None:
    def build(number: int) -> str:
        text = PRELUDE + f'extern "C" __global__ void k{number}() {{}}\n'
        return compile_cubin(text, SM_80, options=("-Xptxas", "-v"), config=CONFIG).log

    with ThreadPoolExecutor(3) as pool:
        logs = list(pool.map(build, range(6)))
    assert [f"function 'k{number}'" in log and log.count("Compiling") == 1 for number, log in enumerate(logs)] == [
        True
    ] * 6


# --- the prelude ------------------------------------------------------------------------------------------------

USES_EVERY_WORD = """
struct alignas(64) Map { unsigned long long words[16]; };
__constant__ float table[4];
static __device__ __noinline__ float far(float x) { return x + table[0]; }
static __device__ __forceinline__ float near(float x) { return x * 2.0f; }
extern "C" __global__ void __launch_bounds__(128, 2) __cluster_dims__(2, 1, 1)
k(float* p, const __grid_constant__ Map map) {
  __shared__ float one[32];
  extern __shared__ __align__(1024) unsigned char arena[];
  one[threadIdx.x] = near(p[blockIdx.x]);
  __syncthreads();
  arena[threadIdx.y + blockDim.x] = gridDim.z;
  p[threadIdx.z] = far(one[threadIdx.x ^ 1]) + arena[0];
  asm volatile("prefetch.tensormap [%0];" :: "l"(&map));
}
"""


@pytest.mark.nvcc
def test_the_prelude_stands_in_for_nvccs_headers() -> None:
    ptx = compile_ptx(prelude(["__syncthreads"]) + USES_EVERY_WORD, SM_90A, config=CONFIG)
    for mark in (".maxntid 128", ".minnctapersm 2", ".reqnctapercluster 2", "%tid.x", "%ctaid.x", "%nctaid.z"):
        assert mark in ptx
    assert ".align 1024" in ptx and "bar.sync" in ptx


@pytest.mark.nvcc
def test_the_text_means_the_same_under_nvccs_own_headers(tmp_path: Path) -> None:
    text = prelude(["__syncthreads"]) + USES_EVERY_WORD
    (tmp_path / "kernel.cu").write_text(text)
    command = ["nvcc", "--cubin", "-std=c++17", "-w", "-gencode", SM_90A.gencode, "kernel.cu", "-o", "headers.cubin"]
    subprocess.run(command, cwd=tmp_path, check=True)
    ours = compile_cubin(text, SM_90A, config=CONFIG).cubin
    theirs = (tmp_path / "headers.cubin").read_bytes()
    assert code_of(ours) == code_of(theirs)


def code_of(cubin: bytes) -> bytes:
    (code,) = [section.data for section in sections(cubin) if section.name == ".text.k"]
    return code


def argument(kind: str, index: int) -> str:
    return '"text"' if kind == "const char*" else f"*(const {kind}*)(p + {8 * index})"


@pytest.mark.nvcc
def test_every_declared_function_is_known_to_the_compiler() -> None:
    calls = []
    for index, (name, declaration) in enumerate(FUNCTIONS.items()):
        head, _, kinds = declaration.rstrip(");\n").partition(f" {name}(")
        arguments = ", ".join(argument(kind, n) for n, kind in enumerate(kinds.split(", ")) if kind not in ("", "..."))
        result = head.split("__device_builtin__ ")[1]
        store = "" if result == "void" else f"*({result}*)(q + {8 * index}) = "
        calls.append(f"  {store}{name}({arguments});\n")
    text = prelude(FUNCTIONS) + 'extern "C" __global__ void k(char* q, const char* p) {\n' + "".join(calls) + "}\n"
    assert compile_cubin(text, SM_90A, config=CONFIG).log == ""


def test_declarations_come_once_and_in_alphabetical_order() -> None:
    assert prelude(["sqrtf", "expf", "sqrtf"]) == prelude(["expf", "sqrtf"])
    assert prelude(["sqrtf"]).count("sqrtf") == 1
    with pytest.raises(KeyError, match="no_such_function"):
        prelude(["no_such_function"])


# --- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.nvcc
def test_errors_of_the_front_end_come_all_at_once_at_the_users_lines() -> None:
    text = EMPTY + 'extern "C" __global__ void k(float* p) {\n  p[0] = zz;\n  p[1] = 2\n}\n'
    first = text.splitlines().index("  p[0] = zz;") + 1
    with pytest.raises(CompileError) as caught:
        compile_cubin(text, SM_90A, config=CONFIG, locate=place)
    findings = caught.value.findings
    assert [finding.loc.line for finding in findings] == [1000 + first, 1000 + first + 2]
    assert 'nvcc refused the generated code: identifier "zz" is undefined' in findings[0].message
    assert findings[0].notes[0].message == f"line {first} of the generated code: p[0] = zz;"
    assert 'File "user.py"' in str(caught.value)


@pytest.mark.nvcc
def test_errors_of_ptxas_are_traced_back_to_lines_of_the_text() -> None:
    lines = [
        'extern "C" __global__ void k(float* p) {',
        "  p[0] = 1;",
        '  asm volatile("foo.bar %0;" :: "r"(1));',
        "  p[1] = 2;",
        '  asm volatile("wgmma.fence.sync.aligned;");',
        "}",
    ]
    text = EMPTY + "\n".join(lines)
    first = EMPTY.count("\n") + 3
    with pytest.raises(CompileError) as caught:
        compile_cubin(text, SM_80, config=CONFIG, locate=place)
    found = [(finding.loc.line - 1000, finding.message) for finding in caught.value.findings]
    assert {line for line, _ in found} == {first, first + 2}
    assert any("Instruction 'wgmma.fence' not supported on .target 'sm_80'" in message for _, message in found)
    assert not any("aborted" in message for _, message in found)


@pytest.mark.nvcc
def test_an_error_without_a_line_is_still_told() -> None:
    text = PRELUDE + (
        'extern "C" __global__ void k(float* p) {\n  __shared__ float v[20000];\n  v[((int*)p)[0]] = p[1];\n'
        '  asm volatile("bar.sync 0;" ::: "memory");\n  p[0] = v[0];\n}\n'
    )
    with pytest.raises(CompileError, match="uses too much shared data") as caught:
        compile_cubin(text, SM_80, config=CONFIG, locate=place)
    assert caught.value.findings[0].loc.frames == ()


@pytest.mark.nvcc
def test_ptx_of_a_wrong_text_is_refused_the_same_way() -> None:
    with pytest.raises(CompileError, match="zz") as caught:
        compile_ptx('extern "C" int zz_ = zz;', SM_80, config=CONFIG)
    assert len(caught.value.findings) == 1


@pytest.mark.nvcc
def test_a_failed_build_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compile_cubin(EMPTY, SM_80, config=CONFIG)
    with pytest.raises(CompileError):
        compile_cubin("wrong", SM_80, config=CONFIG)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nvcc
def test_without_pycuda_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(CompileError, match=r"pip install warpjit\[cuda\]"):
        compile_cubin(EMPTY, SM_80, config=CONFIG)


def test_without_nvcc_the_error_says_where_it_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="set CUDA_HOME"):
        compile_cubin(EMPTY, SM_80, config=Config(path=str(tmp_path)))
    with pytest.raises(CompileError, match=f"CUDA_HOME is {tmp_path}, but"):
        compile_cubin(EMPTY, SM_80, config=Config(cuda_home=str(tmp_path), path=CONFIG.path))


@pytest.mark.nvcc
def test_an_nvcc_that_cannot_run_or_says_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.write_bytes(b"\0not a program")
    nvcc.chmod(0o755)
    with pytest.raises(CompileError, match="could not be run"):
        compile_cubin(EMPTY, SM_80, config=Config(cuda_home=str(tmp_path)))
    nvcc.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(CompileError, match="exit status 3"):
        compile_cubin(EMPTY, SM_80, config=Config(cuda_home=str(tmp_path)))


MESSAGES = [
    (
        'kernel.cu(23): error: identifier "x" is undefined',
        CompilerMessage("nvcc", "error", 23, 'identifier "x" is undefined'),
    ),
    ("kernel.cu(7): warning #177-D: never used", CompilerMessage("nvcc", "warning", 7, "never used")),
    ("kernel.cu(7): catastrophic error: no", CompilerMessage("nvcc", "fatal", 7, "no")),
    ("nvcc fatal   : Unsupported gpu", CompilerMessage("nvcc", "fatal", 0, "Unsupported gpu")),
    (
        "ptxas /tmp/a b.ptx, line 29; error   : Unknown modifier '.bar'",
        CompilerMessage("ptxas", "error", 29, "Unknown modifier '.bar'"),
    ),
    ("ptxas info    : (C7510) slow", CompilerMessage("ptxas", "info", 0, "(C7510) slow")),
]


@pytest.mark.parametrize(("line", "message"), MESSAGES)
def test_each_form_of_message_is_read(line: str, message: CompilerMessage) -> None:
    assert parse_messages(f"some words\n{line}\n   ^\n") == (message,)


def test_lines_of_ptx_follow_the_marks_of_the_first_file() -> None:
    marked = [".entry k(", ".loc 1 4 3", "foo;", ".loc\t2 9 1", "bar;", "\t.loc\t1 5 3, function_name $f", "baz;"]
    ptx = "\n".join(marked)
    assert ptx_lines(ptx) == [0, 4, 4, 4, 4, 5, 5]
    said = [CompilerMessage("ptxas", "error", line, "m") for line in (3, 7, 99)] + [
        CompilerMessage("nvcc", "error", 3, "m")
    ]
    assert [message.line for message in with_text_lines(said, ptx)] == [4, 5, 99, 3]
