"""The decorator and the call: from a Python function and arguments to a result, the stages in order.

`Kernel.program` is the one function that lists the stages. What each does stands in the folder of its name.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpjit import arguments, config
from warpjit.arguments import Place
from warpjit.build import Built, Program, build, loaded
from warpjit.cuda.driver import present_target
from warpjit.errors import ArgumentError, LaunchError
from warpjit.frontend import signature, source
from warpjit.frontend.language.types import SCALAR_TYPES
from warpjit.frontend.scope import Capture
from warpjit.frontend.signature import Signature
from warpjit.frontend.specialize import Specialization, specialize
from warpjit.frontend.trace import trace
from warpjit.frontend.tracer import Settings
from warpjit.isa.target import Target
from warpjit.passes.plan import LaunchPlan, plan
from warpjit.passes.prune import prune
from warpjit.passes.verify import verify
from warpjit.sim import Report, simulate

DEFAULT_TARGET = "sm_90a"
MAX_GRID = ((1 << 31) - 1, 65535, 65535)


@dataclass(frozen=True)
class Options:
    """What `@warpjit(...)` takes.

    contract  a product and a sum may become one fused operation (nvcc's default)
    strict    a stack frame or spilled registers are an error
    """

    contract: bool = True
    strict: bool = False


class Kernel:
    """A function decorated with `@warpjit`: called on tensors, it runs.

    On CUDA tensors it is compiled (once for each specialisation) and launched on torch's current stream of the
    tensors' device; on CPU tensors the same program runs in the simulator. Raises TraceError (the program is wrong),
    ArgumentError (the arguments do not fit; nothing was launched), CompileError, LaunchError, SimulationError.
    """

    def __init__(self, function: Callable[..., Any], options: Options, local_names: Mapping[str, Any]):
        plain = getattr(function, "__func__", function)
        self.function = plain
        self.options = options
        self.function_source = source.of_function(plain)
        self.signature: Signature = signature.of_function(plain, local_names)
        self._programs: dict[tuple[Specialization, Target], Program] = {}
        self._built: dict[tuple[Specialization, Target], Built] = {}
        self._loaded: dict[tuple[Specialization, int], Any] = {}
        self._lock = threading.RLock()
        functools.update_wrapper(self, plain)

    def __repr__(self) -> str:
        return f"<warpjit kernel {self.function.__qualname__}>"

    # ---- calling -----------------------------------------------------------------------------------

    def __call__(self, *args: Any, **constants: Any) -> None:
        """Run the kernel on these arguments."""
        specialization, runtime = specialize(self.signature, args, constants)
        place = arguments.place_of(specialization, runtime)
        RUN[place.kind](self, specialization, runtime, place)

    def simulate(self, *args: Any, seed: int = 0, numerics: str = "exact", **constants: Any) -> Report:
        """Run the kernel on CPU tensors in the simulator.

        seed      the order of warps: 0 runs them together where possible, any other number picks at random
        numerics  "exact": matrix products bit for bit as on sm_90; "fast": one float32 product
        Returns a report of the steps and instructions executed.
        """
        specialization, runtime = specialize(self.signature, args, constants)
        place = arguments.place_of(specialization, runtime)
        if place.kind != "cpu":
            raise ArgumentError(f"simulate: expected CPU tensors but got tensors on {place.kind}")
        return self._simulate(specialization, runtime, seed, numerics)

    def _simulate(self, specialization: Specialization, runtime: Sequence[Any], seed: int, numerics: str) -> Report:
        program = self.program(specialization, cpu_target())
        given = arguments.planned(runtime, tuple(specialization.leaves()))
        values = program.evaluate(given.values, given.sizes, given.strides)
        grid = checked_grid(values[:3])
        launch = _Evaluated(program.plan, grid)
        operands = [
            arguments.simulated(runtime[parameter.source[1]]) if parameter.pointer else value  # type: ignore[index]
            for parameter, value in zip(program.plan.parameters, values[3:], strict=True)
        ]
        return simulate(program.kernel, launch, operands, seed=seed, numerics=numerics)

    def _launch(self, specialization: Specialization, runtime: Sequence[Any], device: int) -> None:
        ready = self._loaded.get((specialization, device))
        if ready is None or not unchanged(ready.program.captures):
            ready = self._prepare(specialization, device)
        given = arguments.planned(runtime, tuple(specialization.leaves()))
        values = ready.program.evaluate(given.values, given.sizes, given.strides)
        grid = checked_grid(values[:3])
        encoded = [
            arguments.encoded(value, parameter.dtype) if not parameter.pointer else value
            for parameter, value in zip(ready.program.plan.parameters, values[3:], strict=True)
        ]
        ready.launcher.prepared.launch(grid, arguments.current_stream(device), encoded)

    def _prepare(self, specialization: Specialization, device: int) -> Any:
        """Compile and load, once, however many threads come."""
        with self._lock:
            ready = self._loaded.get((specialization, device))
            if ready is not None and unchanged(ready.program.captures):
                return ready
            refuse_capture(self, device)
            target = present_target(device)
            if target is None:
                raise LaunchError(f"there is no supported CUDA device {device}")
            ready = loaded(self.built(specialization, target), device)
            self._loaded[specialization, device] = ready
            return ready

    # ---- stages ------------------------------------------------------------------------------------

    def program(self, specialization: Specialization, target: Target) -> Program:
        """The verified program of a specialisation: source → trace → verify → plan. Both back ends start from it."""
        with self._lock:
            program = self._programs.get((specialization, target))
            if program is not None and unchanged(program.captures):
                return program
            settings = Settings(target, self.options.contract, self.options.strict)
            traced = trace(self.function_source, self.function, specialization, settings)
            verify(traced.kernel, target)
            kernel = prune(traced.kernel)
            launch = plan(kernel, target.max_shared)
            program = Program(kernel, launch, target, traced.captures, launch.compile())
            self._programs[specialization, target] = program
            self._built.pop((specialization, target), None)
            return program

    def built(self, specialization: Specialization, target: Target) -> Built:
        """The program as CUDA C++, and as a cubin when one is asked for."""
        with self._lock:
            program = self.program(specialization, target)
            found = self._built.get((specialization, target))
            if found is None:
                found = self._built[specialization, target] = build(program, config.read())
            return found

    # ---- looking inside ----------------------------------------------------------------------------

    def _inspect(self, args: Sequence[Any], constants: Mapping[str, Any], target: Any) -> Built:
        specialization = self.specialization(args, constants)
        return self.built(specialization, resolve_target(target))

    def specialization(self, args: Sequence[Any], constants: Mapping[str, Any]) -> Specialization:
        """The specialisation of arguments or specs; of the annotations alone where no positional argument is given."""
        if not args:
            args = described(self.signature)
        return specialize(self.signature, args, constants)[0]

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

    def resources(self, *args: Any, target: Any = None, **constants: Any) -> Any:
        """Registers and stack bytes of a thread, shared bytes of a CTA. Arguments as in `source`."""
        return self._inspect(args, constants, target).resources


@dataclass(frozen=True)
class _Evaluated:
    """A launch plan with its grid evaluated, as the simulator reads it."""

    plan: LaunchPlan
    grid: tuple[int, int, int]

    @property
    def shared_bytes(self) -> int:
        return self.plan.shared_bytes

    def shared_offset(self, name: str) -> int:
        return self.plan.shared_offset(name)


def unchanged(captures: tuple[Capture, ...]) -> bool:
    """Whether what a trace took from outside is still what stands there."""
    for capture in captures:
        if capture.read(capture.holder, capture.name) is not capture.value:
            return False
    return True


def checked_grid(grid: Sequence[Any]) -> tuple[int, int, int]:
    """The grid of a call. ArgumentError: more CTAs than the hardware takes."""
    for axis, (size, most) in enumerate(zip(grid, MAX_GRID, strict=True)):
        if not 0 <= size <= most:
            raise ArgumentError(f"the grid's {'xyz'[axis]} extent is {size}: expected 0 to {most}")
    x, y, z = grid
    return int(x), int(y), int(z)


def refuse_capture(kernel: Kernel, device: int) -> None:
    """LaunchError before anything is touched: a cold kernel cannot be compiled while a graph is captured."""
    torch = arguments._torch()
    if torch is not None and torch.cuda.is_current_stream_capturing():
        raise LaunchError(
            f"{kernel!r} would be compiled and loaded while a CUDA graph is captured: call it once before the capture "
            "with arguments of the same kinds"
        )


def run_on_cpu(kernel: Kernel, specialization: Specialization, runtime: Sequence[Any], place: Place) -> None:
    if config.read().cpu == "error":
        raise ArgumentError("the tensors are on the CPU, and WARPJIT_CPU=error forbids to simulate")
    kernel._simulate(specialization, runtime, 0, "exact")


def run_on_gpu(kernel: Kernel, specialization: Specialization, runtime: Sequence[Any], place: Place) -> None:
    kernel._launch(specialization, runtime, place.index)


RUN: dict[str, Callable[[Kernel, Specialization, Sequence[Any], Place], None]] = {"cpu": run_on_cpu, "cuda": run_on_gpu}


# ---- targets and specs ------------------------------------------------------------------------------------------


def cpu_target() -> Target:
    """What kernels are verified for on the CPU: WARPJIT_TARGET, else the present GPU, else sm_90a."""
    wanted = config.read().target
    return Target.parse(wanted) if wanted else present_target() or Target.parse(DEFAULT_TARGET)


def resolve_target(target: Any) -> Target:
    """A target from a name; None and "cuda": the present GPU, else WARPJIT_TARGET, else sm_90a."""
    if isinstance(target, Target):
        return target
    if target in (None, "cuda"):
        return present_target() or Target.parse(config.read().target or DEFAULT_TARGET)
    return Target.parse(target)


def described(parameters: Signature) -> tuple[Any, ...]:
    """Specs from annotations alone. ArgumentError names the parameters that need one."""
    specs: list[Any] = []
    missing: list[str] = []
    for parameter in parameters.positional:
        if parameter.tensor is not None:
            specs.append(parameter.tensor)
        elif parameter.dtype is not None:
            specs.append(SCALAR_TYPES[parameter.dtype.name])
        elif parameter.default is not inspect.Parameter.empty:
            specs.append(parameter.default)
            continue
        if not parameter.described and not (parameter.default is not inspect.Parameter.empty):
            missing.append(parameter.name)
    if missing:
        raise ArgumentError(f"give arguments or specs: the annotations do not say all about {', '.join(missing)}")
    return tuple(specs)
