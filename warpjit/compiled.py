"""`warpjit.compile`: a kernel for one specialisation and target, ahead of any call, on a machine without a GPU too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warpjit.build import Built, Resources
from warpjit.errors import ArgumentError
from warpjit.frontend.specialize import Specialization, specialize
from warpjit.isa.target import Target
from warpjit.kernel import Kernel, resolve_target


@dataclass(frozen=True, eq=False)
class Compiled:
    """A compiled kernel. Calling it with arguments of the kinds it was compiled for runs the kernel."""

    kernel: Kernel
    specialization: Specialization
    constants: dict[str, Any]
    built: Built

    @property
    def target(self) -> Target:
        return self.built.program.target

    @property
    def source(self) -> str:
        """The CUDA C++."""
        return self.built.emitted.text

    @property
    def ptx(self) -> str:
        return self.built.ptx

    @property
    def cubin(self) -> bytes:
        return self.built.cubin

    @property
    def sass(self) -> str:
        return self.built.sass

    @property
    def resources(self) -> Resources:
        """Registers and stack bytes of a thread, shared bytes of a CTA."""
        return self.built.resources

    def __call__(self, *args: Any) -> None:
        """Run on these arguments. ArgumentError: they are of other kinds than those compiled for."""
        given = specialize(self.kernel.signature, args, self.constants)[0]
        for (name, wanted), (_, kind) in zip(self.specialization.kinds, given.kinds, strict=True):
            if not fits(kind, wanted):
                raise ArgumentError(f"{name}: compiled for {wanted}, but got {kind}")
        self.kernel(*args, **self.constants)


def fits(kind: Any, wanted: Any) -> bool:
    """Whether an argument may be given where `wanted` was compiled for."""
    return bool(kind == wanted)


def compile(kernel: Any, *args: Any, target: Any = None, **constants: Any) -> Compiled:
    """Compile `kernel` for these arguments or specs.

    args       tensors (of any device, "meta" too), `T.Tensor(shape, dtype)` specs, scalar types or numbers; none
               where the annotations say all
    target     "cuda" or None: the present GPU, else WARPJIT_TARGET, else sm_90a; or any of sm_75 and later
    constants  the kernel's compile-time constants

    Raises TraceError, ArgumentError, TargetError and CompileError.
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentError(f"warpjit.compile: expected a function decorated with @warpjit but got {kernel!r}")
    specialization = kernel.specialization(args, constants)
    built = kernel.built(specialization, resolve_target(target))
    built.cubin  # noqa: B018  what cannot be compiled says so now
    return Compiled(kernel, specialization, constants, built)
