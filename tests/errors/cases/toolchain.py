"""The compiler and the driver: what is missing, and what they refuse."""

from catalogue import Case, Topic
from machines import (
    empty_path,
    false_nvcc,
    false_nvdisasm,
    misspelt_timeout,
    no_compiler,
    no_nvdisasm,
    no_pycuda,
    slow_nvcc,
)

from warpjit.cuda.toolchain import NoCompilerError
from warpjit.errors import CompileError, LaunchError

FRAME = """\
from warpjit import config
from warpjit.cuda import disassemble, elf, messages, toolchain
from warpjit.cuda.driver import Driver
from warpjit.cuda.toolchain import NoCompilerError

@warpjit
def kernel(A: T.Tensor((32,), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    A[0] = 1.0

def refused(said, text=""):
    raise messages.refusal(messages.parse_messages(said), said, text, None)

...
"""

TOPIC = Topic(
    "Compiling and launching",
    "Compiler and driver",
    (
        Case('wj.compile(kernel, target="sm_90a")',
             "CUDA_HOME is /nowhere, but there is no bin/nvcc in it", error=NoCompilerError, given=no_compiler),
        Case('wj.compile(kernel, target="sm_90a")',
             "nvcc was not found: set CUDA_HOME to the CUDA toolkit's root or put nvcc on PATH",
             error=NoCompilerError, given=empty_path),
        Case('wj.compile(kernel, target="sm_90a")',
             "building a kernel needs PyCUDA: pip install warpjit[cuda]", error=NoCompilerError, given=no_pycuda),
        Case("toolchain.toolkit_root(config.read())",
             "nvcc --dryrun (bin/nvcc) does not name the toolkit's root; it said: no such option", given=false_nvcc),
        Case("toolchain.toolkit_root(config.read())",
             "expected nvcc (bin/nvcc) to end within 0.2 seconds but it still ran and was killed: "
             "WARPJIT_COMPILE_TIMEOUT gives it more", given=slow_nvcc),
        Case("toolchain.toolkit_root(config.read())",
             "WARPJIT_COMPILE_TIMEOUT: expected a positive number of seconds but got '5min'", given=misspelt_timeout),
        Case("refused(\"kernel.cu(7): error: expected a \\\";\\\"\")",
             'nvcc refused the generated code: expected a ";"'),
        Case('refused("ptxas error   : Unexpected instruction types")',
             "ptxas refused the generated code: Unexpected instruction types"),
        Case('refused("kernel.cu(1): error: identifier x is undefined", "x = 1;")',
             "nvcc refused the generated code: identifier x is undefined\n"
             "note: line 1 of the generated code: x = 1;"),
        Case('refused("killed")', "nvcc failed and said: killed"),
        Case('disassemble.sass(b"", config.read())',
             "nvdisasm was not found: install the CUDA toolkit (CUDA_HOME or PATH) or run pip install "
             "nvidia-cuda-nvdisasm", given=no_nvdisasm),
        Case('disassemble.sass(b"", config.read())', "nvdisasm refused the cubin: not a cubin", given=false_nvdisasm),
        Case("elf.sections(bytes(64))", "this is not a cubin: it does not begin as an ELF64 file"),
        Case('elf.sections(b"ELF")',
             "this cubin is damaged: unpack_from requires a buffer of at least 64 bytes for unpacking 64 bytes at "
             "offset 0 (actual buffer size is 3)"),
        Case('Driver("libmissing.so")',
             "kernels can only be launched where NVIDIA's driver is installed (libmissing.so): libmissing.so: cannot "
             "open shared object file: No such file or directory", error=LaunchError),
        Case('Driver("libc.so.6")', "this NVIDIA driver is too old: it has no cuInit", error=LaunchError),
    ),
    frame=FRAME,
    error=CompileError,
)  # fmt: skip
