"""What generated CUDA C++ needs in place of nvcc's own headers.

nvcc reads its runtime header before every source unless `__CUDA_RUNTIME_H__` is defined: 0.2 s of parsing for an
empty kernel. `toolchain` defines it, and the text that `prelude()` gives stands in for what is then missing: the
words `__global__`, `__shared__`, ..., the index variables, and declarations of the compiler's built-in functions
(with the attribute `device_builtin` the compiler links them to libdevice or makes an instruction of them).
Where the real headers are read (a user compiles the printed text) the prelude expands to nothing.

Left out: the 16-bit float types, warp shuffles and votes, address conversion, and whatever else the headers write
as inline PTX. Generated text writes that PTX itself. `size_t` and `uint32_t` do not exist here.
"""

from __future__ import annotations

from collections.abc import Iterable

_WORDS = """\
#define __device_builtin__ __attribute__((device_builtin))
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __cluster_dims__(...) __attribute__((cluster_dims(__VA_ARGS__)))
#define __grid_constant__ __attribute__((grid_constant))
struct __device_builtin__ uint3 { unsigned int x, y, z; };
struct __device_builtin__ dim3 { unsigned int x, y, z; };
extern const __device_builtin__ __device__ uint3 threadIdx;
extern const __device_builtin__ __device__ uint3 blockIdx;
extern const __device_builtin__ __device__ dim3 blockDim;
extern const __device_builtin__ __device__ dim3 gridDim;
"""

_UNARY = """
    sqrt rsqrt cbrt exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan sinpi cospi asin acos atan sinh cosh tanh
    asinh acosh atanh erf erfc erfinv lgamma tgamma fabs floor ceil trunc rint nearbyint round
""".split()
_BINARY = "pow atan2 fmod remainder fmin fmax copysign fdim hypot nextafter".split()
_FAST_UNARY = "__expf __exp10f __logf __log2f __log10f __sinf __cosf __tanf __saturatef".split()
_FAST_UNARY += "__fsqrt_rn __frcp_rn __frsqrt_rn".split()
_FAST_BINARY = "__fadd_rn __fsub_rn __fmul_rn __fdiv_rn __powf __fdividef".split()
_INT, _UINT, _LONG, _ULONG = "int", "unsigned int", "long long", "unsigned long long"


def _functions() -> dict[str, str]:
    signatures: dict[str, tuple[str, ...]] = {
        "fma": ("double",) * 4,
        "fmaf": ("float",) * 4,
        "__fma_rn": ("double",) * 4,
        "__fmaf_rn": ("float",) * 4,
        "__float_as_int": (_INT, "float"),
        "__int_as_float": ("float", _INT),
        "__float_as_uint": (_UINT, "float"),
        "__uint_as_float": ("float", _UINT),
        "__double_as_longlong": (_LONG, "double"),
        "__longlong_as_double": ("double", _LONG),
        "__mulhi": (_INT, _INT, _INT),
        "__umulhi": (_UINT, _UINT, _UINT),
        "__mul64hi": (_LONG, _LONG, _LONG),
        "__umul64hi": (_ULONG, _ULONG, _ULONG),
        "__popc": (_INT, _UINT),
        "__popcll": (_INT, _ULONG),
        "__clz": (_INT, _INT),
        "__clzll": (_INT, _LONG),
        "__ffs": (_INT, _INT),
        "__ffsll": (_INT, _LONG),
        "__brev": (_UINT, _UINT),
        "__brevll": (_ULONG, _ULONG),
        "__byte_perm": (_UINT, _UINT, _UINT, _UINT),
        "__syncthreads": ("void",),
        "__threadfence": ("void",),
        "__trap": ("void",),
        "printf": (_INT, "const char*", "..."),
        "__assertfail": ("void", "const char*", "const char*", _UINT, "const char*", "unsigned long"),
    }
    for name in _UNARY:
        signatures[name] = ("double",) * 2
        signatures[name + "f"] = ("float",) * 2
    for name in _BINARY:
        signatures[name] = ("double",) * 3
        signatures[name + "f"] = ("float",) * 3
    for name in _FAST_UNARY:
        signatures[name] = ("float",) * 2
    for name in _FAST_BINARY:
        signatures[name] = ("float",) * 3
    for name in ("__dadd_rn", "__dsub_rn", "__dmul_rn", "__ddiv_rn"):
        signatures[name] = ("double",) * 3
    for name in ("__dsqrt_rn", "__drcp_rn"):
        signatures[name] = ("double",) * 2
    return {
        name: f'extern "C" __device__ __device_builtin__ {signature[0]} {name}({", ".join(signature[1:])});\n'
        for name, signature in sorted(signatures.items())
    }


FUNCTIONS = _functions()
"""The declaration of each built-in function that generated text may call, by name (CUDA Math API)."""


def prelude(functions: Iterable[str] = ()) -> str:
    """The text that a generated file begins with, with the declarations of the built-in `functions` it calls.

    Declarations come in alphabetical order, once each, so that equal kernels have equal text. Raises `KeyError`
    for a name that is not in `FUNCTIONS`.
    """
    declarations = "".join(FUNCTIONS[name] for name in sorted(set(functions)))
    return f"#ifndef __global__\n{_WORDS}{declarations}#endif\n"


PRELUDE = prelude()
"""The prelude of a text that calls no built-in function."""
