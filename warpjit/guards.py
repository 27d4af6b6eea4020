"""Whether the tensors of a call are like those of an earlier one: the question of every call, answered by a guard.

A guard is a function of tensors: True if each has the Python type, data type, shape, strides, device and bits of
negation that the tensor in its place had when the guard was made. It looks at no address. False may also mean that it
cannot tell: `facts`, the slow and exact way, then decides.

torch has such a function in C++ (`TensorGuards`, which its compiler used from version 2.1 on). It looks at three
tensors in the time that Python takes to read one tensor's shape and strides. It is no public name, so it is tried out
before it is trusted (`_torch_guards`), and where it is not what it was, guards are made of `facts`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from warpjit import arguments

Guard: TypeAlias = Callable[..., bool]


def facts(tensor: Any) -> tuple[Any, ...]:
    """What two tensors have in common where a guard holds: hashable, and without a reference to the tensor.

    AttributeError: it is no tensor. RuntimeError: it has no strides (it is sparse).
    """
    return type(tensor), tensor.dtype, tensor.shape, tensor.stride(), tensor.device, tensor.is_neg()


def always(*tensors: Any) -> bool:
    """The guard of tensors whose facts are known to be the same."""
    return True


def for_known(tensors: Sequence[Any]) -> Guard:
    """The guard of a call whose facts have been compared. Of one without tensors, the device is not among the facts."""
    return always if tensors else guard(())


def guard(tensors: Sequence[Any]) -> Guard:
    """A function of as many tensors as there are here. Without any: whether torch's current device is the same."""
    if not tensors:
        device = arguments.current_device()
        return lambda: arguments.current_device() == device
    plain = arguments.plain_tensor_types()
    made = _torch_guards() if all(type(tensor) in plain for tensor in tensors) else None
    if made is None:
        return _in_python(tensors)
    if len({id(tensor) for tensor in tensors}) == len(tensors):
        return made(tensors)
    # torch's guard does not hold where one tensor stands in two places: one guard for each place.
    checks = [made([tensor]) for tensor in tensors]
    return lambda *given: all(map(operator.call, checks, given))


def _in_python(tensors: Sequence[Any]) -> Guard:
    wanted = [facts(tensor) for tensor in tensors]

    def holds(*given: Any) -> bool:
        try:
            return all(map(operator.eq, map(facts, given), wanted))
        except (AttributeError, RuntimeError, TypeError):
            return False

    return holds


@functools.cache
def _torch_guards() -> Callable[[Sequence[Any]], Guard] | None:
    """torch's own guards, if they are there and see each difference that matters."""
    try:
        torch = arguments.torch_module()
        kind = torch._C._dynamo.guards.TensorGuards

        def made(tensors: Sequence[Any]) -> Guard:
            sizes, strides = [list(each.shape) for each in tensors], [list(each.stride()) for each in tensors]
            check: Guard = kind(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
            return check

        return made if _sees_all(torch, made) else None
    except Exception:  # whatever another version of torch makes of this
        return None


def _sees_all(torch: Any, made: Callable[[Sequence[Any]], Guard]) -> bool:
    def new(*shape: int, **how: Any) -> Any:
        return torch.empty(shape, **{"device": "cpu", "dtype": torch.float16, **how})

    first, second = new(2, 3), new(4)
    check = made([first, second])
    others = [
        *(new(2, 3, dtype=torch.bfloat16), new(3, 2), new(2, 4)[:, :3], new(3, 2).t(), new(6), new(2, 3, 1)),
        *(new(2, 3, device="meta"), torch._neg_view(first), None, 5),
    ]
    return (
        check(first, second) is True
        and check(new(2, 3), new(4)) is True
        and not any(check(other, second) for other in others)
        and not check(first, new(5))
    )
