"""`kernel.bind(...)`: one call of a kernel prepared, for loops whose arguments stay of the same kinds.

What is looked up at each call of a kernel, which program and which launch of it, is decided once. How a launch is
written is `fastcall`'s.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warpjit import arguments, guards
from warpjit.arguments import Place, outside_of_graphs
from warpjit.dispatch import calls, tensors_of
from warpjit.errors import ArgumentError
from warpjit.execute import run_in_simulator
from warpjit.fastcall import BOUND, CALL, Ready, Slot, fixed, template
from warpjit.frontend.kinds import Specialization
from warpjit.frontend.signature import NOTHING, Signature
from warpjit.frontend.specialize import specialize

if TYPE_CHECKING:
    from warpjit.build import Program


class Bound:
    """A prepared call: what `kernel.bind` gives.

    `bound(*args)` runs it on other arguments, by position: as many as were bound, up to the last that was bound by
    position or name; what stands after it, and the constants after `*`, stay as they were bound. All that is cheap is
    checked each time: the number of arguments, and of tensors the type, data type, shape, strides, device and
    alignment. Other runtime sizes of the same specialisation are right as well, but take the slow path; anything else
    is an ArgumentError.

    `bound()` runs it on the arguments that were bound, which it keeps alive. It trusts that nobody changed their shape
    or strides in place; their addresses are read again.

    Values captured from outside are those of the binding. On CPU tensors the call is simulated.
    """

    def __init__(
        self,
        kernel: Any,
        args: Sequence[Any],
        named: Mapping[str, Any],
        place: Place,
        specialization: Specialization,
        prepared: Ready | Program,
    ) -> None:
        signature: Signature = kernel.signature
        self.kernel, self.place, self.specialization, self._prepared = kernel, place, specialization, prepared
        values = signature.bind(args, named)
        self.args, self._rest = _split(signature, len(args), named, values)
        if isinstance(prepared, Ready) and self.args:
            self._write(prepared, len(values))

    def __repr__(self) -> str:
        return f"<{self.kernel!r} bound on {self.place}>"

    @outside_of_graphs
    def __call__(self, *args: Any) -> None:
        """Run on these arguments, or on those that were bound. (A launch has a written function in place of this.)"""
        self._slow(*args)

    def _write(self, ready: Ready, parameters: int) -> None:
        """Make the object's call a written function.

        It does not hold the object: a class holds its functions, and is there until the garbage collector comes, which
        nothing calls when memory on the device runs out.
        """
        names = [f"p{index}" for index in range(len(self.args))]
        slots = [Slot(name, value) for name, value in zip(names, self.args, strict=True)]
        slots += [Slot(None, None)] * (parameters - len(slots))
        checking, plain = template(ready, slots, names, BOUND), template(ready, slots, names, CALL)
        if checking is None or plain is None:
            return
        told, tensors = fixed(checking, ready, slots), tensors_of(self.args)
        launch = plain.make(guards.for_known(tensors), told)

        this = weakref.ref(self)

        def other(*args: Any) -> None:
            owner = this()
            if owner is None:
                raise ArgumentError("expected what kernel.bind gave to be called, but only its __call__ was kept")
            owner._slow(*args)

        def again() -> None:
            owner = this()
            if owner is None or not launch(*owner.args):
                other()

        calls(self, checking.make(guards.guard(tensors), told, again, other))

    def _slow(self, *args: Any) -> None:
        """The call with everything checked. ArgumentError: an argument is not of the kind that was bound."""
        args = tuple(value for value in args if value is not NOTHING)
        if args and len(args) != len(self.args):
            raise ArgumentError(f"{self!r}: expected {len(self.args)} arguments, or none, but got {len(args)}")
        specialization, runtime = specialize(self.kernel.signature, args or self.args, self._rest)
        for (name, bound), (_, given) in zip(self.specialization.kinds, specialization.kinds, strict=True):
            if bound != given:
                raise ArgumentError(f"{name}: expected {bound}, as was bound, but got {given}")
        place = arguments.place_of(specialization, runtime)
        if place != self.place:
            raise ArgumentError(f"{self!r}: expected arguments on {self.place}, as was bound, but they are on {place}")
        if isinstance(self._prepared, Ready):
            self._prepared.loaded.launch(runtime)
        else:
            run_in_simulator(self._prepared, runtime)


def _split(
    signature: Signature, by_position: int, named: Mapping[str, Any], values: Sequence[Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What may be given anew, in order, and what stays, by name."""
    places = {each.name: index for index, each in enumerate(signature.positional)}
    count = max([by_position, *(places[name] + 1 for name in named if name in places)])
    rest = {each.name: value for each, value in zip(signature.parameters[count:], values[count:], strict=True)}
    return tuple(values[:count]), rest
