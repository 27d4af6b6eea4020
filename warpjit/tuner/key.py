"""What a tuning is for: the facts of a call that may change which configuration is fastest, by name, as text.

The text is what records are found by and what people read in them. In it always: data types, sizes (exact, or by
buckets), the class of every stride, alignment, the device, the kernel's source, what is constant. Runtime numbers only
by their type, unless the user names them.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from warpjit.errors import ArgumentError
from warpjit.frontend.kinds import ConstantKind, Kind, ScalarKind, Specialization, TensorKind, TupleKind
from warpjit.frontend.language.types import Dynamic
from warpjit.frontend.source import FunctionSource
from warpjit.store import key_of
from warpjit.tuner.config import text_of

Bucket: TypeAlias = "str | int | Callable[[int], Any]"
"""How sizes are taken together: "pow2" (by the next power of two), a number (by the next multiple), or a function."""

SCHEMA = 1


@dataclass(frozen=True)
class Key:
    """The facts by name, in order."""

    facts: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        """What the store knows it by."""
        return key_of({"kind": "tuning", "schema": SCHEMA, **{f"fact {name}": text for name, text in self.facts}})


@dataclass(frozen=True)
class KeyRule:
    """What the user says of keys: `key`, names of arguments whose values count; `bucket`, sizes by their names."""

    key: tuple[str, ...] = ()
    bucket: Mapping[str, Bucket] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, rule in self.bucket.items():
            number = type(rule) is int and rule > 0
            if not (rule == "pow2" or number or callable(rule)):
                raise ArgumentError(f'bucket[{name!r}]: expected "pow2", a positive int or a function but got {rule!r}')


def key_of_call(
    rule: KeyRule, specialization: Specialization, values: Mapping[str, Any]
) -> tuple[tuple[str, str], ...]:
    """The facts of a call's arguments. `values`: what was passed, by the parameters' names."""
    found: list[tuple[str, str]] = []
    for name, kind in specialization.kinds:
        found += _facts(rule, name, kind, values[name], name in rule.key)
    return tuple(found)


def _facts(rule: KeyRule, name: str, kind: Kind, value: Any, by_value: bool) -> Iterator[tuple[str, str]]:
    if isinstance(kind, TensorKind):
        yield name, _tensor(rule, name, kind, value)
    elif isinstance(kind, TupleKind):
        for index, (item, part) in enumerate(zip(kind.items, value, strict=True)):
            yield from _facts(rule, f"{name}[{index}]", item, part, by_value)
    elif isinstance(kind, ScalarKind):
        yield name, f"{kind.dtype} {value!r}" if by_value else str(kind.dtype)
    else:
        assert isinstance(kind, ConstantKind)
        yield name, f"constant {text_of(name, kind.value)}"


def _tensor(rule: KeyRule, name: str, kind: TensorKind, value: Any) -> str:
    named = dict(kind.names)
    sizes = []
    for axis, (kept, size) in enumerate(zip(kind.shape, value.shape, strict=True)):
        label = kept.name if isinstance(kept, Dynamic) else named.get(axis, "")
        bucket = rule.bucket.get(f"{name}.shape[{axis}]", rule.bucket.get(label))
        sizes.append(str(size) if bucket is None else _bucketed(bucket, int(size)))
    strides = " ".join(stride.value for stride in kind.strides)
    width = "" if kind.narrow else ", 2**31 bytes or more"
    return f"{kind.dtype} ({', '.join(sizes)}), strides {strides}, aligned to {kind.align}{width}"


def _bucketed(rule: Bucket, size: int) -> str:
    if callable(rule):
        return f"in {rule(size)!r}"
    if isinstance(rule, int):
        return f"up to {-(-size // rule) * rule}"
    return f"up to {1 << max(size - 1, 0).bit_length()}"


def sizes_of(parameters: Sequence[Any]) -> set[str]:
    """The names that annotations give to sizes."""
    shapes = [each.tensor.shape for each in parameters if each.tensor is not None and each.tensor.shape is not None]
    return {
        item.name if isinstance(item, Dynamic) else item
        for shape in shapes
        for item in shape
        if isinstance(item, Dynamic | str)
    }


def source_digest(source: FunctionSource) -> str:
    """Of what a function's source says: comments, layout and decorators (the configurations among them) left out."""
    node: Any = copy.copy(source.node)
    if hasattr(node, "decorator_list"):
        node.decorator_list = []
    return hashlib.sha256(ast.unparse(node).encode()).hexdigest()[:16]
