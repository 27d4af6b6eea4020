"""`@warpjit.autotune(configs=…)` above `@warpjit`: a kernel that chooses its constants by trying them.

It is called like the kernel, without the constants that are tuned. The first call of a kind tunes; later calls of it
are launches that are known, as a kernel's own, and other processes find what was chosen in the store.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from types import FunctionType, SimpleNamespace
from typing import Any

from warpjit import arguments
from warpjit.arguments import outside_of_graphs
from warpjit.bound import Bound
from warpjit.dispatch import Dispatch, calls
from warpjit.errors import ArgumentError, TuningError
from warpjit.execute import refuse_cpu, run_in_simulator
from warpjit.fastcall import Ready
from warpjit.frontend.signature import NOTHING, ParameterKind, Signature
from warpjit.frontend.specialize import specialize
from warpjit.kernel import Kernel, cpu_target
from warpjit.methods import Binding, KernelMethod
from warpjit.tuner.candidates import Candidate, code_of
from warpjit.tuner.config import Config
from warpjit.tuner.key import Bucket, KeyRule, key_of_call, sizes_of, source_digest
from warpjit.tuner.report import TuningReport
from warpjit.tuner.settings import Prune, Reference, Settings
from warpjit.tuner.tuner import Choice, Problem, Tuner, target_of

KNOWN = 256
"""Values of the numbers in `key` whose launches are remembered; then all are forgotten."""
OF_KERNEL = ("source", "ptx", "cubin", "sass", "resources", "specialization", "simulate", "warmup")
"""What a tuned kernel does as its kernel, with the tuned constants given."""
MORE = ("jobs", "progress", "seed", "timer", "rules")
"""Options of `autotune` besides those that its signature names."""
Configs = Sequence[Config] | Callable[[SimpleNamespace], Iterable[Config]]


def autotune(
    configs: Configs,
    key: Sequence[str] = (),
    *,
    bucket: Mapping[str, Bucket] | None = None,
    prune: Prune = None,
    check: bool = False,
    reference: Reference | None = None,
    rtol: float = 1e-2,
    atol: float = 1e-2,
    l2: str = "cold",
    budget: float | None = None,
    isolate: bool = False,
    **more: Any,
) -> Callable[[Kernel], Tuned]:
    """Choose a kernel's compile-time constants by trying `configs` on the arguments of the first call of each kind.

    configs    `Config`s, or a function of the call's arguments (`a.X.shape[0]`) that gives some; see also `space`
    key        names of numbers of the call whose values, not only types, make another kind. Shapes, data types, classes
               of strides, alignment, constants, the device and the kernel's source always do
    bucket     sizes, by name ("M", "X.shape[0]"), that are one kind together: "pow2" (up to the same power of two), a
               number (up to the same multiple of it), or a function
    prune      a function (config, arguments) that says which to leave out, or `Limits` of what a kernel may take
    check      compare what the configurations write; those that differ from most are left out
    reference  a function of the call's positional arguments that writes what is right into them
    rtol, atol of comparisons of floats
    l2         "cold": the L2 cache is full of other data before each launch; "warm": as the launch before has left it
    budget     seconds of timing, after which the best so far is taken
    isolate    run each first in another process, on data of the same shapes: for kernels that may hang, or crash
    more       `jobs` and `progress` as of `Kernel.warmup`; `seed` of the shuffled order; `timer`, `rules` of the race

    Tensors that the kernel writes are never touched by trials: they run on copies. On CPU tensors nothing is timed: the
    first configuration that fits is used. ArgumentError: what was given is not of these forms.
    """
    rule = KeyRule(_names("key", key), dict(bucket or {}))
    for name in more:
        if name not in MORE:
            options = ", ".join(sorted({"bucket", *(each.name for each in fields(Settings))}))
            raise ArgumentError(f"autotune: expected one of its options ({options}) but got {name!r}")
    settings = Settings(rule, prune, check, reference, rtol, atol, l2, budget, isolate, **more)
    checked = _checked(configs)
    return lambda kernel: Tuned(kernel, checked, settings)


def _checked(configs: Any) -> Configs:
    """What can be chosen among. ArgumentError."""
    if isinstance(configs, Kernel | Tuned):
        raise ArgumentError(
            f"configs: expected Configs, or a function that gives them, but got {configs!r}: the decorator is called, "
            "@warpjit.autotune(configs), above @warpjit"
        )
    if callable(configs):
        return configs  # type: ignore[no-any-return]
    if isinstance(configs, Config | str) or not isinstance(configs, Iterable):
        raise ArgumentError(f"configs: expected Configs in a list, or a function that gives them, but got {configs!r}")
    found = tuple(configs)
    for each in found:
        if not isinstance(each, Config):
            raise ArgumentError(f"configs: expected Configs, such as Config(BLOCK=32), but got {each!r}")
    if not found:
        raise ArgumentError("configs: expected at least one Config to try but got none")
    return found


def _names(what: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(each, str) for each in given):
        raise ArgumentError(f"{what}: expected names in a list but got {given!r}")
    return tuple(given)


def _no_kernel(given: Any) -> ArgumentError:
    wanted = "autotune: expected a function decorated with @warpjit but got"
    if isinstance(given, FunctionType):
        order = "@warpjit stands directly above its def, and @warpjit.autotune(...) above that"
        return ArgumentError(f"{wanted} the function {given.__qualname__}: {order}")
    again = ", which is tuned already: give one autotune all Configs" if isinstance(given, Tuned) else ""
    return ArgumentError(f"{wanted} {given!r}{again}")


class Tuned:
    """A kernel whose constants are tuned: what `@warpjit.autotune` makes of one.

    kernel      the kernel itself, with all its parameters
    signature   the parameters of a call: those of the kernel without what is tuned

    `source`, `ptx`, `cubin`, `sass`, `resources`, `specialization`, `simulate` and `warmup` are the kernel's: they take
    the tuned constants as well, `tuned.source(x, y, **tuned.best(x, y).constants)`.
    """

    def __init__(self, kernel: Kernel, configs: Configs, settings: Settings) -> None:
        if not isinstance(kernel, Kernel):
            raise _no_kernel(kernel)
        self.kernel, self.configs, self.settings = kernel, configs, settings
        tuned = None if callable(configs) else frozenset(name for each in configs for name in each.constants)
        self._set_up(tuned)
        functools.update_wrapper(self, kernel.function)

    def _set_up(self, tuned: frozenset[str] | None) -> None:
        full = self.kernel.signature
        constants = {each.name for each in full.keyword}
        if tuned is None:  # a function gives the configurations later: what has no default is tuned
            self.tuned = frozenset(each.name for each in full.keyword if each.default is NOTHING)
        else:
            self.tuned = tuned
        if tuned is not None and tuned - constants:
            name = min(tuned - constants)
            raise ArgumentError(f"configs: expected compile-time constants of {full}, those after *, but got {name}")
        self.signature = Signature(
            full.name, full.positional, tuple(each for each in full.keyword if each.name not in self.tuned)
        )
        sizes = sizes_of(full.parameters)
        for name in self.settings.key.key:
            if name not in self.signature.by_name and name not in sizes:
                raise ArgumentError(f"key: expected names of parameters, or of sizes, of {full} but got {name!r}")
        for name in self.settings.key.bucket:
            owner = re.fullmatch(r"(\w+)[^.]*\.shape\[\d+\]", name)
            if name not in sizes and (owner is None or owner[1] not in full.by_name):
                raise ArgumentError(f'bucket: expected names of sizes of {full}, or "X.shape[0]", but got {name!r}')
        self._tuner = Tuner(f"{self.kernel.function.__module__}.{self.kernel.function.__qualname__}", self.settings)
        self._source = source_digest(self.kernel.function_source)
        self._by_value: dict[tuple[Any, ...], Dispatch] = {}
        self._values = tuple(
            i
            for i, each in enumerate(self.signature.parameters)
            if each.name in self.settings.key.key and each.kind in (ParameterKind.SCALAR, ParameterKind.ANY)
        )
        if not self._values:
            self._by_value[()] = Dispatch(self.signature, self._bind, self._run)
            calls(self, self._by_value[()].call)

    def __repr__(self) -> str:
        return f"<autotuned {self.kernel!r}>"

    # ---- in a class --------------------------------------------------------------------------------

    @functools.cached_property
    def as_method(self) -> Tuned:
        """With a first parameter that is a compile-time constant: see `Kernel.as_method`."""
        return Tuned(self.kernel.as_method, self.configs, self.settings)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """`object.kernel`, if the kernel was defined in a class; `Class.kernel` is the kernel itself."""
        if self.kernel.binding is Binding.CLASS:
            return KernelMethod(self.as_method, owner)
        if self.kernel.binding is Binding.NONE or instance is None:
            return self
        return KernelMethod(self.as_method, instance)

    def __copy__(self) -> Tuned:
        """Itself, as a function's copy is."""
        return self

    def __deepcopy__(self, memo: Any) -> Tuned:
        return self

    # ---- calling -----------------------------------------------------------------------------------

    @outside_of_graphs
    def __call__(self, *args: Any, **constants: Any) -> None:
        """Run with the constants that were chosen for calls of this kind, chosen now if there were none.

        Raises as the kernel does, and TuningError: no configuration runs. (Without numbers in `key`, the object's own
        class has `Dispatch.call` in place of this.)
        """
        values = self._bind(args, constants)
        key = tuple([(type(values[i]), values[i]) for i in self._values])
        dispatch = self._by_value.get(key)
        if dispatch is None:
            if len(self._by_value) >= KNOWN:
                self._by_value.clear()
            dispatch = self._by_value.setdefault(key, Dispatch(self.signature, self._bind, self._run))
        dispatch.call(*args, **constants)

    def _bind(self, args: Sequence[Any], constants: Mapping[str, Any]) -> Sequence[Any]:
        """One value for each parameter of a call. ArgumentError: also for a value of what is tuned."""
        for name, value in constants.items():
            if name in self.tuned:
                kernel = f"{self.signature.name}.kernel(..., {name}={value!r})"
                method = any(each.owner for each in self.signature.positional)
                raise ArgumentError(
                    f"{self.signature}: expected no value for {name}, which is tuned, but got {value!r}: leave it out"
                    + ("" if method else f", or call the kernel below, {kernel}")
                )
        return self.signature.bind(args, constants)

    def _run(self, args: Sequence[Any], constants: Mapping[str, Any]) -> Ready | None:
        """The slow path of a call, which a launch that is known shortens."""
        problem = self._problem(args, constants)
        candidate = problem.candidate(self._choice(problem).config)
        kernel = candidate.kernel
        specialization, runtime = specialize(kernel.signature, candidate.args, candidate.constants)
        if problem.place.kind != "cuda":
            refuse_cpu()
            run_in_simulator(kernel.program(specialization, cpu_target()), runtime)
            return None
        loaded = kernel.on_device(specialization, problem.place.index)
        loaded.launch(runtime)
        kinds = tuple(kind for name, kind in specialization.kinds if name not in self.tuned)
        return Ready(loaded, kinds, runtime, loaded.program.captures)

    def _choice(self, problem: Problem) -> Choice:
        """The choice, made anew if what the kernel has captured is not what it was."""
        choice = self._tuner.choose(problem)
        now = code_of(problem.candidate(choice.config), target_of(problem.place))
        return choice if now == choice.code else self._tuner.choose(problem, unlike=choice)

    def _problem(self, args: Sequence[Any], constants: Mapping[str, Any]) -> Problem:
        values = self._bind(args, constants)
        specialization, runtime = specialize(self.signature, args, constants)
        named = {each.name: value for each, value in zip(self.signature.parameters, values, strict=True)}
        facts = key_of_call(self.settings.key, specialization, named)
        options = repr(self.kernel.options)
        given = SimpleNamespace(**named)
        count = len(self.signature.positional)
        positional = tuple(values[:count])
        others = {each.name: named[each.name] for each in self.signature.keyword}

        def candidate(config: Config) -> Candidate:
            kernel = self.kernel.limited(config.max_registers)
            return Candidate(config, kernel, positional, {**others, **config.constants})

        return Problem(
            (("source", self._source), ("options", options), *facts),
            arguments.place_of(specialization, runtime),
            lambda: self._configs(given),
            candidate,
            given,
        )

    def _configs(self, given: SimpleNamespace) -> Sequence[Config]:
        if not callable(self.configs):
            return self.configs
        found = tuple(self.configs(given))
        if not found:
            raise TuningError(f"configs: expected at least one Config for arguments of {self.signature} but got none")
        for each in found:
            if not isinstance(each, Config) or set(each.constants) - self.tuned:
                raise ArgumentError(f"configs: expected Configs of {sorted(self.tuned)} but got {each!r}")
        return found

    # ---- looking inside ----------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """What looks into a kernel, of the kernel. AttributeError says where else a kernel's attribute is."""
        if name in OF_KERNEL:
            return getattr(self.kernel, name)
        # A copy that is being made has no kernel yet, and asks for names with underscores.
        there = not name.startswith("_") and name != "kernel" and hasattr(self.kernel, name)
        where = f": it is an attribute of its kernel, .kernel.{name}" if there else ""
        raise AttributeError(f"a tuned kernel has no attribute {name!r}{where}", name=name, obj=self)

    def tune(self, *args: Any, again: bool = False, **constants: Any) -> TuningReport:
        """Choose for calls like this one, without running it. `again`: time everything anew."""
        choice = self._tuner.choose(self._problem(args, constants), again=again)
        if again:
            self._forget()
        return self._report(choice)

    def bind(self, *args: Any, **constants: Any) -> Bound:
        """The call with these arguments and the constants that were chosen for it, prepared: see `Bound`."""
        problem = self._problem(args, constants)
        candidate = problem.candidate(self._choice(problem).config)
        return candidate.kernel.bind(*candidate.args, **candidate.constants)

    def best(self, *args: Any, **constants: Any) -> Config:
        """The configuration that a call like this one uses; tuned now if there is none yet."""
        return self._tuner.choose(self._problem(args, constants)).config

    def tuning_report(self, *args: Any, **constants: Any) -> TuningReport:
        """Print a table of what is known about calls like this one (tuned now if nothing is), and give it."""
        report = self.tune(*args, **constants)
        report.show()
        return report

    def _report(self, choice: Choice) -> TuningReport:
        return TuningReport.of(self._tuner.name, choice.key, choice.config, choice.entries)

    def _forget(self) -> None:
        """Launches that are known may be of another configuration."""
        for each in self._by_value.values():
            each.forget()
