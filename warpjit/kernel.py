"""A kernel and its call: from a Python function and arguments to a result, the stages in order.

The stages of a program's making are listed by `stages.program_of`, which is loaded when a call needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from warpjit import arguments, config, index
from warpjit.bound import Bound
from warpjit.config import Config
from warpjit.cuda.driver import Function, load, present_target
from warpjit.dispatch import Dispatch, calls
from warpjit.errors import ArgumentError, LaunchError, TargetError
from warpjit.execute import Loaded, refuse_capture, refuse_cpu, run_in_simulator
from warpjit.fastcall import Ready
from warpjit.frontend import signature, source
from warpjit.frontend.captures import unchanged
from warpjit.frontend.kinds import Specialization, TensorKind
from warpjit.frontend.signature import Signature
from warpjit.frontend.source import FunctionSource
from warpjit.frontend.specialize import specialize
from warpjit.isa.target import MAX_REGISTERS, MIN_REGISTERS, Target
from warpjit.launchable import Executable
from warpjit.locks import Lock
from warpjit.methods import Binding, KernelMethod, binding_of
from warpjit.store import log

if TYPE_CHECKING:
    from warpjit.build import Built, Program, Resources
    from warpjit.sim import Report

DEFAULT_TARGET = "sm_90a"
VARIANTS = 8
"""Programs of one specialisation that are kept: they differ by what they took from outside."""


@dataclass(frozen=True)
class Options:
    """What `@warpjit(...)` takes.

    contract    a product and a sum may become one fused operation (nvcc's default)
    strict      a stack frame or spilled registers are an error
    unverified  instructions that were never compared with a device are allowed
    debug       assertions and `print` are executed
    max_registers  of a thread, in place of what the kernel asks for
    """

    contract: bool = True
    strict: bool = False
    unverified: bool = False
    debug: bool = False
    max_registers: int | None = None


class Kernel:
    """A function decorated with `@warpjit`: called on tensors, it runs.

    On CUDA tensors it is compiled (once for each specialisation) and launched on torch's current stream of the
    tensors' device; on CPU tensors the same program runs in the simulator. Raises TraceError (the program is wrong),
    ArgumentError (the arguments do not fit; nothing was launched), CompileError, LaunchError, SimulationError.
    """

    def __init__(self, function: Callable[..., Any], options: Options, local_names: Mapping[str, Any]):
        plain = getattr(function, "__func__", function)
        if isinstance(getattr(plain, "kernel", plain), Kernel):  # also one that is tuned
            raise ArgumentError(
                f"warpjit: expected a function but got {plain!r}, which is a kernel already: @warpjit stands once, "
                "directly above the def, and @warpjit.autotune(...) above it"
            )
        log.follow(config.read().log)  # a process that never comes to the store is told of a mistaken name as well
        self.binding = binding_of(function)
        self._set_up(plain, options, source.of_kernel(plain), signature.of_function(plain, local_names))

    def _set_up(self, plain: Callable[..., Any], options: Options, text: FunctionSource, parameters: Signature) -> None:
        self.function = plain
        self.options = options
        self.function_source = text
        self.signature = parameters
        self._programs: dict[tuple[Specialization, Target], tuple[Program, ...]] = {}
        self._loaded: dict[tuple[Specialization, int], tuple[Loaded, ...]] = {}
        self._functions: dict[tuple[bytes, str, int], Function] = {}
        self._limited: dict[int, Kernel] = {}
        self._lock = Lock()
        self._dispatch = Dispatch(self.signature, self.signature.bind, self._run)
        calls(self, self._dispatch.call)
        functools.update_wrapper(self, plain)

    def limited(self, max_registers: int | None) -> Kernel:
        """The same kernel with `max_registers` of a thread (16 to 255); None: itself. One object for each limit."""
        if max_registers is None:
            return self
        if type(max_registers) is not int or not MIN_REGISTERS <= max_registers <= MAX_REGISTERS:
            raise ArgumentError(f"max_registers: expected {MIN_REGISTERS} to {MAX_REGISTERS} but got {max_registers!r}")
        with self._lock:
            if max_registers not in self._limited:
                other: Kernel = object.__new__(Kernel)
                other.binding = self.binding
                options = replace(self.options, max_registers=max_registers)
                other._set_up(self.function, options, self.function_source, self.signature)
                self._limited[max_registers] = other
            return self._limited[max_registers]

    # ---- in a class --------------------------------------------------------------------------------

    @functools.cached_property
    def as_method(self) -> Kernel:
        """The kernel with a first parameter that is a compile-time constant: the object or class that it belongs to."""
        method = object.__new__(Kernel)
        method.binding = Binding.NONE
        method._set_up(self.function, self.options, self.function_source, self.signature.of_method())
        return method

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """`object.kernel`, if the kernel was defined in a class; `Class.kernel` is the kernel itself."""
        if self.binding is Binding.CLASS:
            return KernelMethod(self.as_method, owner)
        if self.binding is Binding.NONE or instance is None:
            return self
        return KernelMethod(self.as_method, instance)

    def __repr__(self) -> str:
        return f"<warpjit kernel {self.function.__qualname__}>"

    def __copy__(self) -> Kernel:
        """Itself, as a function's copy is: a module that holds a kernel can be copied."""
        return self

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self

    def __reduce__(self) -> str:
        """By its name, as functions are pickled: what the other side imports under it."""
        return self.function.__qualname__

    # ---- calling -----------------------------------------------------------------------------------

    def __call__(self, *args: Any, **constants: Any) -> None:
        """Run the kernel on these arguments. (A kernel's own class has `Dispatch.call` in place of this.)"""
        self._dispatch.call(*args, **constants)

    def _run(self, args: Sequence[Any], constants: Mapping[str, Any]) -> Ready | None:
        """The whole way of a call, which a launch that is known shortens. Gives what to remember of a launch."""
        specialization, runtime = specialize(self.signature, args, constants)
        place = arguments.place_of(specialization, runtime)
        if place.kind == "cuda":
            loaded = self.on_device(specialization, place.index)
            loaded.launch(runtime)
            return Ready(loaded, specialization.parameters, runtime, loaded.program.captures)
        refuse_cpu()
        run_in_simulator(self.program(specialization, cpu_target()), runtime)
        return None

    def bind(self, *args: Any, **constants: Any) -> Bound:
        """The call with these arguments, prepared: compiled and loaded, but not launched. See `Bound`."""
        specialization, runtime = specialize(self.signature, args, constants)
        place = arguments.place_of(specialization, runtime)
        prepared: Ready | Program
        if place.kind == "cuda":
            prepared = Ready(self.on_device(specialization, place.index), specialization.parameters, runtime)
        else:
            refuse_cpu()
            prepared = self.program(specialization, cpu_target())
        return Bound(self, args, constants, place, specialization, prepared)

    def simulate(self, *args: Any, seed: int = 0, numerics: str = "exact", **constants: Any) -> Report:
        """Run the kernel on CPU tensors in the simulator.

        seed      the order of warps: 0 runs them together where possible, any other number picks at random
        numerics  "exact": matrix products bit for bit as on sm_90; "fast": one float32 product
        Returns a report of the steps and instructions executed.
        """
        specialization, runtime = specialize(self.signature, args, constants)
        place = arguments.place_of(specialization, runtime)
        if place.kind != "cpu" and any(isinstance(kind, TensorKind) for kind in specialization.leaves()):
            raise ArgumentError(f"simulate: expected CPU tensors but got tensors on {place}")
        return run_in_simulator(self.program(specialization, cpu_target()), runtime, seed=seed, numerics=numerics)

    def on_device(self, specialization: Specialization, device: int) -> Loaded:
        """The program of a specialisation, compiled and loaded on a device: now, if it was not."""
        ready = still_true(self._loaded.get((specialization, device), ()))
        return ready if ready is not None else self._prepare(specialization, device)

    def _prepare(self, specialization: Specialization, device: int) -> Loaded:
        """Compile and load, once, however many threads come."""
        refuse_capture(repr(self), device)
        target = present_target(device)
        if target is None:
            raise LaunchError(f"{self!r}: there is no supported CUDA device {device}")
        with self._lock:
            known = self._loaded.get((specialization, device), ())
            ready = still_true(known)
            if ready is None:
                ready = self.load(self.executable(specialization, target), device)
                self._loaded[specialization, device] = (ready, *known)[:VARIANTS]
            return ready

    def executable(self, specialization: Specialization, target: Target) -> Executable:
        """The program compiled: what an earlier process made, or else traced, compiled and kept now."""
        found = self.found(specialization, target)
        if found is not None:
            return found
        built = self.built(specialization, target)
        made = built.executable
        self.keep(built, specialization)
        return made

    def found(self, specialization: Specialization, target: Target) -> Executable | None:
        """The program that another process made: nothing is traced and nothing is compiled."""
        chosen = config.read()
        asked = None if chosen.retrace else self._question(specialization, target, chosen)
        return None if asked is None else index.find(asked)

    def keep(self, built: Built, specialization: Specialization) -> bool:
        """Tell the index of a program that was traced and compiled, so that other processes need not; whether it can
        be told."""
        chosen = config.read()
        asked = self._question(specialization, built.program.target, chosen)
        if asked is None:
            return False
        if chosen.retrace:
            index.check(asked, built)
        return index.record(asked, built)

    def _question(self, specialization: Specialization, target: Target, chosen: Config) -> index.Question | None:
        options = vars(self.options)
        text, signature = self.function_source, self.signature
        return index.question(text, self.function, signature, options, specialization, target, chosen)

    def load(self, made: Executable, device: int) -> Loaded:
        """A program on a device. Equal cubins are loaded once, and never unloaded: a graph may hold them."""
        with self._lock:
            key = made.cubin, made.entry, device
            function = self._functions.get(key)
            if function is None:
                function = self._functions[key] = load(made.cubin, device).function(made.entry)
        return Loaded.of(made.program, function, device)

    # ---- stages ------------------------------------------------------------------------------------

    def program(self, specialization: Specialization, target: Target) -> Program:
        """The verified program of a specialisation: source → trace → verify → plan. Both back ends start from it."""
        program = still_true(self._programs.get((specialization, target), ()))
        if program is not None:
            return program
        with self._lock:
            known = self._programs.get((specialization, target), ())
            program = still_true(known)
            if program is None:
                program = self._made(specialization, target)
                self._programs[specialization, target] = (program, *known)[:VARIANTS]
            return program

    def _made(self, specialization: Specialization, target: Target) -> Program:
        from warpjit.stages import Settings, program_of  # noqa: PLC0415  defining a kernel does without the tracer

        settings = Settings(target, **vars(self.options))
        return program_of(self.function_source, self.function, specialization, settings)

    def built(self, specialization: Specialization, target: Target) -> Built:
        """The program as CUDA C++, and as a cubin when one is asked for."""
        with self._lock:
            return self.program(specialization, target).built

    def code(self, specialization: Specialization, target: Target) -> str:
        """A digest of the text that is generated for a specialisation. Traces only what no process has traced."""
        known = still_true(self._programs.get((specialization, target), ()))
        found = self.found(specialization, target) if known is None else None
        return found.code if found is not None else self.built(specialization, target).code

    def warmup(
        self, calls: Iterable[Any] = ((),), *, target: Any = None, jobs: int | None = None, progress: bool | None = None
    ) -> None:
        """Compile what these calls need, many at once, so that the calls themselves find it in the store.

        calls     one for each: a tuple of arguments or specs by position, or a dict of them, and constants, by name
        target    as in `source`
        jobs      compilers that run at once; None: as many as this process has cores
        progress  whether to show a bar; None: on a terminal

        Everything is tried; what failed is raised together, as one CompileError. An interrupt kills the compilers.
        """
        from warpjit.parallel import warmup  # noqa: PLC0415  a call does without

        warmup(self, calls, resolve_target(target), jobs, progress)

    # ---- looking inside ----------------------------------------------------------------------------

    def _inspect(self, args: Sequence[Any], constants: Mapping[str, Any], target: Any) -> Built:
        specialization = self.specialization(args, constants)
        return self.built(specialization, resolve_target(target))

    def specialization(self, args: Sequence[Any], constants: Mapping[str, Any]) -> Specialization:
        """The specialisation of arguments or specs; what the annotations describe need not be given."""
        return specialize(self.signature, args, constants, specs=True)[0]

    def source(self, *args: Any, target: Any = None, **constants: Any) -> str:
        """The CUDA C++ that the kernel becomes for these arguments or specs.

        Arguments may be tensors of any device ("meta" too), `T.Tensor(...)` specs, scalar types or numbers; none are
        needed where the annotations say all. `target`: "sm_80", …; None or "cuda": the present GPU, else
        WARPJIT_TARGET, else sm_90a.
        """
        return self._inspect(args, constants, target).emitted.text

    def ptx(self, *args: Any, target: Any = None, **constants: Any) -> str:
        """The PTX that nvcc makes of `source`. Arguments as there. Raises CompileError."""
        return self._inspect(args, constants, target).ptx

    def cubin(self, *args: Any, target: Any = None, **constants: Any) -> bytes:
        """The machine code, from the store or compiled now. Arguments as in `source`. Raises CompileError."""
        return self._inspect(args, constants, target).cubin

    def sass(self, *args: Any, target: Any = None, **constants: Any) -> str:
        """The disassembled machine code. Needs nvdisasm. Arguments as in `source`. Raises CompileError."""
        return self._inspect(args, constants, target).sass

    def resources(self, *args: Any, target: Any = None, **constants: Any) -> Resources:
        """Registers and stack bytes of a thread, shared bytes of a CTA. Arguments as in `source`."""
        return self._inspect(args, constants, target).resources


Variant = TypeVar("Variant", "Program", Loaded)


def still_true(variants: Sequence[Variant]) -> Variant | None:
    """The program among `variants` that was traced with what now stands outside of it."""
    for variant in variants:
        if unchanged(variant.captures):
            return variant
    return None


# ---- targets ----------------------------------------------------------------------------------------------------


@functools.cache
def present() -> Target | None:
    """The target of the first GPU, None where there is none. Asked for once: without a driver, it costs a search."""
    return present_target()


def cpu_target() -> Target:
    """What kernels are verified for on the CPU: WARPJIT_TARGET, else the present GPU, else sm_90a."""
    wanted = config.read().target
    return parsed(wanted) if wanted else present() or parsed(DEFAULT_TARGET)


def resolve_target(target: Any) -> Target:
    """A target from a name; None and "cuda": the present GPU, else WARPJIT_TARGET, else sm_90a. TargetError."""
    if isinstance(target, Target):
        return target
    if target is None or target == "cuda":
        return present() or parsed(config.read().target or DEFAULT_TARGET)
    if not isinstance(target, str):
        raise TargetError(f'expected a target of the form "sm_90a" but got {target!r}')
    return parsed(target)


parsed = functools.cache(Target.parse)
