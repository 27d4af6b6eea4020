"""Names in generated CUDA C++: which are taken, and what a name of the IR is called there.

The IR's names are unique identifiers of Python, but `int`, `threadIdx`, `sqrt` or `__x` are names that a Python
function may use and a C++ one may not. The same names give the same answers in every run: the generated text is
part of the cubin's key. What the names stand for is not known here.
"""

from __future__ import annotations

import re

from warpjit.cuda.prelude import FUNCTIONS

ARENA = "smem"
"""The CTA's dynamic shared memory, an array of bytes."""
ARENA_ADDRESS = "smem_base"
"""The 32-bit address of the arena in the shared window, for inline PTX."""

_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires restrict return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t
    while xor xor_eq
""".split()
_MACROS = "NULL assert errno i386 linux main offsetof unix va_arg va_end va_list va_start".split()
_CUDA = """
    threadIdx blockIdx blockDim gridDim warpSize dim3 uint3 cudaStream_t cudaError_t size_t ptrdiff_t
    abs div exit free labs malloc memcmp memcpy memset printf rand
""".split()
_LIBRARY = [name.removesuffix("f") for name in FUNCTIONS] + [name + "f" for name in FUNCTIONS]

RESERVED = frozenset([*_KEYWORDS, *_MACROS, *_CUDA, *_LIBRARY, *FUNCTIONS, ARENA, ARENA_ADDRESS])
"""Names that mean something to C++, to nvcc, to the prelude or to generated code itself."""

_NOT_C = re.compile(r"[^A-Za-z0-9_]")
_OTHERS = re.compile(r"__|_[A-Z]|.*__|wj_|\d|$")


def identifier(name: str) -> str:
    """A C++ identifier that is not reserved, equal to `name` where that is one.

    Other characters than ASCII letters, digits and underscores become their code points in hexadecimal. Names with
    two underscores in a row or that begin with an underscore and a capital belong to the compiler (C++ standard,
    [lex.name]), those that begin with "wj_" to the templates of rows, and those that begin with a digit are none: they
    get the prefix "v", and double underscores become one.
    """
    spelled = _NOT_C.sub(lambda found: f"u{ord(found[0]):x}", name)
    if _OTHERS.match(spelled):
        spelled = "v" + re.sub("_+", "_", spelled)
    return spelled + "_" if spelled in RESERVED else spelled


class Namer:
    """The C++ names of one kernel's things, given out in the order in which they are first asked for."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def name(self, kind: str, name: str) -> str:
        """What the thing `name` of this kind ("local", "buffer", ...) is called."""
        return self._known.get((kind, name)) or self.group(kind, name, ("",))

    def group(self, kind: str, name: str, endings: tuple[str, ...]) -> str:
        """A prefix under which prefix + ending is free for each ending."""
        found = self._known.get((kind, name))
        if found is None:
            found = identifier(name)
            while any(found + ending in self._taken or found + ending in RESERVED for ending in endings):
                found += "_" if not found.endswith("_") else "x"
            self._known[kind, name] = found
            self._taken.update(found + ending for ending in endings)
        return found
