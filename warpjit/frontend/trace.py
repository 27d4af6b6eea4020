"""`trace`: one kernel, one specialisation, to the IR. All findings are raised together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from warpjit.errors import Finding, TraceError

# The handler tables are filled by these modules.
from warpjit.frontend import (  # noqa: F401
    atomics,
    bits,
    branches,
    builtin_functions,
    combining,
    comprehensions,
    debugging,
    expressions,
    inline_asm,
    instructions,
    intrinsics,
    jumps,
    loops,
    mathematics,
    reductions,
    statements,
    warp,
    wide,
)
from warpjit.frontend.captures import Capture
from warpjit.frontend.parameters import bind_parameters, kernel_parameters
from warpjit.frontend.scope import Scope
from warpjit.frontend.source import FunctionSource
from warpjit.frontend.specialize import Specialization
from warpjit.frontend.tracer import Settings, Tracer
from warpjit.ir.nodes import Kernel, Local, Node
from warpjit.ir.walk import atoms, every, operands

TOO_DEEP = "too deep to be traced: helpers are inlined, so their recursion must end while tracing, after few calls"


@dataclass(frozen=True, eq=False)
class Traced:
    """A kernel, and what it took from outside its source and arguments.

    repeatable  it took nothing that the captures do not show, and printed nothing: once it is known, it can be left out
    """

    kernel: Kernel
    captures: tuple[Capture, ...]
    repeatable: bool


def trace(
    source: FunctionSource, function: Callable[..., Any], specialization: Specialization, settings: Settings
) -> Traced:
    """The IR of `function` for these kinds of arguments. Raises TraceError with every finding."""
    captures: dict[tuple[int, str], Capture] = {}
    scope = Scope(source, function, captures=captures)
    tracer = Tracer(scope, settings, captures)
    tracer.builder.loc = source.loc()
    arguments = bind_parameters(tracer.builder, tracer.sizes, specialization)
    for name, value in arguments.names.items():
        scope.names[name] = value
        scope.bound[name] = tracer.builder.loc
    try:
        tracer.execute(source.node.body)  # type: ignore[arg-type]
    except RecursionError:  # Python's own limit; what is known by now of other statements still counts
        tracer.findings.append(Finding(TOO_DEEP, tracer.builder.loc))
        raise TraceError.collect(tracer.findings) from None
    for line in tracer.printed:
        print(line)
    if tracer.launch is None and not tracer.findings:
        message = f"{source.name} never calls T.device_entry(launch=T.cuda.LaunchConfig(grid=..., block=...))"
        tracer.findings.append(Finding(message, source.loc()))
    if tracer.findings:
        raise TraceError.collect(tracer.findings)
    assert tracer.launch is not None
    body = (*tracer.builder.prologue, *tracer.builder.blocks[0].nodes)
    kernel = Kernel(
        name=source.name,
        parameters=kernel_parameters(tracer.builder, arguments.buffers, _used(tracer.builder.sources, body)),
        shared=tuple(tracer.shared),
        body=body,
        launch=tracer.launch,
        facts=tracer.builder.facts,
        loc=source.loc(),
        contract=settings.contract,
        strict=settings.strict,
        unverified=settings.unverified,
    )
    return Traced(kernel, tuple(captures.values()), repeatable=not (tracer.printed or tracer.hidden))


def _used(locals_: Iterable[Local], body: tuple[Node, ...]) -> set[Local]:
    """Those of `locals_` that a body reads or writes."""
    wanted = {local.name: local for local in locals_}
    found: set[Local] = set()
    for node in every(body) if wanted else ():
        for value in operands(node):
            for atom in atoms(value):
                if isinstance(atom, Local) and atom.name in wanted:
                    found.add(wanted.pop(atom.name))
        if not wanted:
            break
    return found
