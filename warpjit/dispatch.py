"""From a call to a launch that is known: the first lines of every call of a kernel.

A call passes up to three doors. The last few launches, each behind a guard that looks at all tensors at once
(`Dispatch.recent`); a table of all launches so far, by the exact facts of what was passed (`Dispatch.table`); the slow
path, which checks every promise, compiles what is new, launches, and says what to remember. A promise is about shapes,
strides, data types and constants, which are the facts: it is checked when they come for the first time.

The function that a kernel's `__call__` is (`Dispatch.call`) is written in Python for the kernel's signature, from
positions. How a known launch is made is `fastcall`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpjit import guards
from warpjit.arguments import outside_of_graphs
from warpjit.errors import WarpjitError
from warpjit.fastcall import Launch, Ready, Slot, Template, fixed, run_text, template
from warpjit.frontend.kinds import BASE_ALIGNMENT
from warpjit.frontend.signature import NOTHING, ParameterKind, Signature
from warpjit.frontend.specialize import constant_kind, is_tensor

RECENT = 4
"""Launches that are tried by their guards. One that does not hold costs about a tenth of a look into the table."""
KNOWN = 2048
"""Launches of a kernel that are remembered. (A server sees many values of a runtime size.) Then all are forgotten."""

Values = tuple[Any, ...]
"""What a call passed, in the order of the signature's parameters; NOTHING where it passed nothing."""


@dataclass
class Known:
    """A launch that the table remembers.

    plain     the function without a guard, for a call whose facts have been compared
    guarded   the one with a guard, once it was needed
    """

    template: Template
    fixed: tuple[Any, ...]
    plain: Launch
    guarded: Launch | None = None


class Dispatch:
    """The way of a kernel's calls.

    bind   (args, named) to one value for each parameter, as `Signature.bind`; asked for what is wrong with them
    run    (args, named) the slow path: it runs the call, and gives what to remember of it, or None
    """

    def __init__(
        self,
        signature: Signature,
        bind: Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Any]],
        run: Callable[[Sequence[Any], Mapping[str, Any]], Ready | None],
    ) -> None:
        self.signature, self._bind, self._run = signature, bind, run
        self.recent: list[Launch] = []
        self.table: dict[Hashable, Known] = {}
        count = len(signature.positional)
        self.names = tuple(f"{'p' if i < count else 'n'}{i}" for i in range(len(signature.parameters)))
        self._facts = [
            _constant_fact if each.kind is ParameterKind.CONSTANT else _fact for each in signature.parameters
        ]
        self.text = _text(self.names, count)
        written = run_text(self.text, {"absent": NOTHING, "recent": self.recent, "missed": self._missed})
        users = {own: each.name for own, each in zip(self.names, signature.parameters, strict=True)}
        keywords = {own: users[own] for own in self.names[count:]}
        self.call: Callable[..., None] = renamed(written["call"], keywords)
        self._by_name: Callable[..., Values] = renamed(written["by_name"], users)

    # ---- what no recent launch fits ----------------------------------------------------------------

    def _missed(self, values: Values, rest: Sequence[Any], named: Mapping[str, Any]) -> None:
        key: tuple[Any, ...] | None
        if rest or named:
            values = self._bound(values, rest, named)
            for launch in self.recent:
                if launch(*values):
                    return
        try:
            key = tuple([fact(value) for fact, value in zip(self._facts, values, strict=True)])
            known = self.table.get(key)
        except (AttributeError, RuntimeError, TypeError, WarpjitError):  # no facts: the slow path says why
            key = known = None
        if known is not None and known.plain(*values):
            self._remember(known, values)
            return
        ready = self._run(*self._given(values))
        if key is not None and ready is not None:
            self._learn(key, ready, values)

    def _bound(self, values: Values, rest: Sequence[Any], named: Mapping[str, Any]) -> Values:
        """What was passed, with the arguments that were passed by name in their places. ArgumentError."""
        count = len(self.signature.positional)
        args, names = [value for value in values[:count] if value is not NOTHING], dict(named)
        args += rest
        for parameter, value in zip(self.signature.keyword, values[count:], strict=True):
            if value is not NOTHING:
                names[parameter.name] = value
        try:
            return self._by_name(*args, **names)
        except TypeError:
            self._bind(args, names)  # says it in a sentence
            raise

    def _given(self, values: Values) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and the named arguments that pass these values."""
        count = next((i for i, value in enumerate(values) if value is NOTHING), len(values))
        count = min(count, len(self.signature.positional))
        rest = zip(self.signature.parameters[count:], values[count:], strict=True)
        return values[:count], {each.name: value for each, value in rest if value is not NOTHING}

    def forget(self) -> None:
        """Forget all launches: each kind of call takes the slow path once more."""
        self.recent.clear()
        self.table.clear()

    # ---- what is remembered ------------------------------------------------------------------------

    def _learn(self, key: Hashable, ready: Ready, values: Values) -> None:
        """Remember the call that has just run."""
        slots = [
            Slot(None if value is NOTHING else name, value) for name, value in zip(self.names, values, strict=True)
        ]
        written = template(ready, slots, self.names)
        if written is None:
            return
        try:
            told = fixed(written, ready, slots)
        except WarpjitError:  # an arm that this call did not take divides by zero
            return
        if len(self.table) >= KNOWN:
            self.table.clear()
        old = self.table.get(key)
        if old is not None:
            self._set_recent([], old)
        self.table[key] = Known(written, told, written.make(guards.for_known(tensors_of(values)), told))

    def _remember(self, known: Known, values: Values) -> None:
        """Put a launch among the recent ones. If it stands there, its guard could not tell: it gets a new one."""
        guarded = known.guarded
        if guarded is None or guarded in self.recent:
            guarded = known.template.make(guards.guard(tensors_of(values)), known.fixed)
        self._set_recent([guarded], known)
        known.guarded = guarded

    def _set_recent(self, first: list[Launch], without: Known) -> None:
        self.recent[:] = [*first, *(each for each in self.recent if each is not without.guarded)][:RECENT]


# ---- the written functions ------------------------------------------------------------------------------------


def _text(names: Sequence[str], count: int) -> str:
    """The source of `call`, which tries the recent launches, and of `by_name`, which puts arguments in their places.

    `names`: of the parameters, of which `count` are positional. Those that may be given by name get the users' names
    afterwards (`renamed`).
    """
    given = [f"{name}=absent" for name in names]
    positional, keyword = given[:count], given[count:]
    called = [*positional, *(["/"] if count else []), "*rest", *keyword, "**named"]
    placed = [*positional, *(["*", *keyword] if keyword else [])]
    passed = "".join(f"{name}, " for name in names)
    return (
        f"def call({', '.join(called)}):\n"
        f"    if not (rest or named):\n"
        f"        for launch in recent:\n"
        f"            if launch({passed}):\n"
        f"                return\n"
        f"    missed(({passed}), rest, named)\n"
        f"\n"
        f"def by_name({', '.join(placed)}):\n"
        f"    return ({passed})\n"
    )


def renamed(function: Any, names: Mapping[str, str]) -> Any:
    """A written function with other names for its parameters: what a user calls them is never in a text."""
    code, keyword = function.__code__, function.__kwdefaults__ or {}
    function.__code__ = code.replace(co_varnames=tuple(names.get(name, name) for name in code.co_varnames))
    function.__kwdefaults__ = {names.get(name, name): value for name, value in keyword.items()}
    return function


def calls(owner: Any, function: Callable[..., Any]) -> None:
    """Make `owner(...)` be `function(...)`, by a class of its own whose `__call__` that is.

    A method that handed its arguments on would cost a tenth of the whole call.
    """
    base = type(owner)
    outside_of_graphs(function)
    kept = {"__call__": staticmethod(function), "__doc__": base.__doc__, "__module__": base.__module__}
    owner.__class__ = type(base.__name__, (base,), kept)


# ---- facts ----------------------------------------------------------------------------------------------------

_PLAIN = {int, float, bool, type(None)}


def _fact(value: Any) -> Any:
    """What decides, of one thing that was passed, which launch it needs; hashable. Of a number that is its type."""
    kind = type(value)
    if kind in _PLAIN:
        return kind
    if isinstance(value, tuple):
        return (kind, *map(_fact, value))
    if hasattr(value, "data_ptr"):
        return guards.facts(value), value.data_ptr() % BASE_ALIGNMENT == 0
    return NOTHING if value is NOTHING else kind


def _constant_fact(value: Any) -> Any:
    """Of a constant: its type and its bits, so that 1, True and 1.0 differ. ArgumentError: it is none."""
    kind = type(value)
    if kind is int or kind is str or value is NOTHING:
        return kind, value
    return constant_kind("", value).key


def tensors_of(values: Iterable[Any]) -> list[Any]:
    """The tensors among arguments, in order."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, tuple):
            found += tensors_of(value)
        elif is_tensor(value):
            found.append(value)
    return found
