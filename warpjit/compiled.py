"""`warpjit.compile`: a kernel for one specialisation and target, ahead of any call, on a machine without a GPU too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from warpjit import arguments
from warpjit.build import Built, Resources
from warpjit.cuda.driver import present_target
from warpjit.cuda.toolchain import NoCompilerError
from warpjit.dispatch import Dispatch, calls
from warpjit.errors import ArgumentError, LaunchError
from warpjit.execute import Loaded, refuse_capture, refuse_cpu, run_in_simulator
from warpjit.fastcall import Ready
from warpjit.frontend.admit import admit
from warpjit.frontend.kinds import Specialization
from warpjit.isa.target import Target
from warpjit.kernel import Kernel, present, resolve_target
from warpjit.locks import Lock
from warpjit.methods import KernelMethod


class Compiled:
    """A compiled kernel: what `warpjit.compile` gives.

    Calling it with arguments of which everything that was compiled in is true runs it: on CUDA tensors of a device
    that the target runs on, or on CPU tensors in the simulator. Captured values are those of the compilation.
    """

    def __init__(self, kernel: Kernel, specialization: Specialization, constants: Mapping[str, Any], built: Built):
        self.kernel = kernel
        self.specialization = specialization
        self.constants = dict(constants)
        self._built = built
        self._loaded: dict[int, Loaded] = {}
        self._lock = Lock()
        self._dispatch = Dispatch(kernel.signature, self._bind, self._run)
        calls(self, self._dispatch.call)

    def __repr__(self) -> str:
        return f"<{self.kernel!r} compiled for {self.target}>"

    @property
    def target(self) -> Target:
        return self._built.program.target

    @property
    def source(self) -> str:
        """The CUDA C++."""
        return self._built.emitted.text

    @property
    def ptx(self) -> str:
        """The PTX that nvcc makes of `source`. Raises CompileError."""
        return self._built.ptx

    @property
    def cubin(self) -> bytes:
        """The machine code. Raises CompileError."""
        return self._built.cubin

    @property
    def sass(self) -> str:
        """The disassembled machine code. Needs nvdisasm. Raises CompileError."""
        return self._built.sass

    @property
    def resources(self) -> Resources:
        """Registers and stack bytes of a thread, shared bytes of a CTA."""
        return self._built.resources

    def __call__(self, *args: Any, **constants: Any) -> None:
        """Run on these arguments; constants that were compiled in need not be given again.

        ArgumentError: an argument is not what was compiled for. LaunchError: the device does not run the target.
        """
        self._dispatch.call(*args, **constants)

    def _bind(self, args: Sequence[Any], constants: Mapping[str, Any]) -> Sequence[Any]:
        """One value for each parameter; what is not given is what was compiled in."""
        by_position = {each.name for each in self.kernel.signature.positional[: len(args)]}
        compiled = {name: value for name, value in self.constants.items() if name not in by_position}
        return self.kernel.signature.bind(args, {**compiled, **constants})

    def _run(self, args: Sequence[Any], constants: Mapping[str, Any]) -> Ready | None:
        runtime = admit(self.specialization, self._bind(args, constants))
        place = arguments.place_of(self.specialization, runtime)
        if place.kind == "cuda":
            loaded = self._on_device(place.index)
            loaded.launch(runtime)
            return Ready(loaded, self.specialization.parameters, runtime)
        refuse_cpu()
        run_in_simulator(self._built.program, runtime)
        return None

    def _on_device(self, device: int) -> Loaded:
        ready = self._loaded.get(device)
        if ready is not None:
            return ready
        refuse_capture(repr(self), device)
        present = present_target(device)
        if present is None or not self.target.runs_on(present):
            found = f"is {present}" if present else "is no supported one"
            raise LaunchError(f"{self!r} does not run on device {device}, which {found}")
        with self._lock:
            if device not in self._loaded:
                self._loaded[device] = self.kernel.load(self._built.executable, device)
            return self._loaded[device]


def compile(kernel: Any, *args: Any, target: Any = None, **constants: Any) -> Compiled:
    """Compile `kernel` for these arguments or specs.

    args       tensors (of any device, "meta" too), `T.Tensor(shape, dtype)` specs, scalar types or numbers; what the
               annotations describe need not be given
    target     "cuda" or None: the present GPU, else WARPJIT_TARGET, else sm_90a; or any of sm_75 and later
    constants  the kernel's compile-time constants

    Raises TraceError, ArgumentError, TargetError and CompileError. Where there is no compiler, the store may have what
    another machine's made of the same text; where there is no GPU either, and no target is named, the result can be
    called without (it simulates) and has its `source`.
    """
    if isinstance(kernel, KernelMethod):  # the object stays the first argument, also of what this gives
        kernel, args = kernel.kernel, (kernel.owner, *args)
    if not isinstance(kernel, Kernel):
        tuned = isinstance(getattr(kernel, "kernel", None), Kernel)
        hint = ": compile its kernel, the attribute .kernel, with all constants" if tuned else ""
        raise ArgumentError(f"warpjit.compile: expected a function decorated with @warpjit but got {kernel!r}{hint}")
    specialization = kernel.specialization(args, constants)
    built = kernel.built(specialization, resolve_target(target))
    try:
        built.cubin  # noqa: B018  what cannot be compiled says so now
        kernel.keep(built, specialization)
    except NoCompilerError:
        if target not in (None, "cuda") or present() is not None:
            raise
    return Compiled(kernel, specialization, constants, built)
