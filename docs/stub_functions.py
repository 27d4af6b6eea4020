"""Functions of the language in the stubs: signatures, with overloads where the result depends on a type."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

from warpjit.frontend.language.intrinsic import Intrinsic
from warpjit.frontend.language.types import SCALAR_TYPES
from warpjit.ir import dtypes


def parameters(signature: inspect.Signature, **types: str) -> str:
    """A parameter list; `types` replaces annotations by the parameter's name, "-" leaves the default out."""
    parts: list[str] = []
    starred = False
    for item in signature.parameters.values():
        if item.kind is item.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        star = {item.VAR_POSITIONAL: "*", item.VAR_KEYWORD: "**"}.get(item.kind, "")
        starred = starred or item.kind is item.VAR_POSITIONAL
        annotation = str(types.get(item.name, item.annotation))
        default = "" if item.default is item.empty else f" = {item.default!r}".replace("'", '"')
        annotated = "" if item.name == "self" else f": {annotation}"
        if annotation.startswith("-"):
            annotated, default = f": {annotation[1:]}", ""
        parts.append(f"{star}{item.name}{annotated}{default}")
    return ", ".join(parts)


STORAGE_ONLY = tuple(name for name in dtypes.DTYPES if name not in SCALAR_TYPES)


def by_dtype(name: str, signature: inspect.Signature, indent: str = "") -> Iterable[str]:
    """One overload for each type that may stand for `E`, and one for types that are only stored."""
    (parameter,) = (item for item in signature.parameters.values() if "DTypeOf" in str(item.annotation))
    returned = signature.return_annotation

    def returned_as(element: str) -> str:
        return re.sub(r"\bE\b", element, returned)

    for scalar_type in SCALAR_TYPES:
        own = f'type[{scalar_type}] | Literal["{scalar_type}"]'
        default = "" if parameter.default == scalar_type else "-"
        yield f"{indent}@overload"
        yield (
            f"{indent}def {name}({parameters(signature, **{parameter.name: default + own})}) -> "
            f"{returned_as(scalar_type)}: ..."
        )
    if returned != "E":
        texts = ", ".join(f'"{each}"' for each in STORAGE_ONLY)
        yield f"{indent}@overload"
        yield (
            f"{indent}def {name}({parameters(signature, **{parameter.name: f'-Literal[{texts}]'})}) -> "
            f"{returned_as('Any')}: ..."
        )


def _promoted(name: str, signature: inspect.Signature) -> Iterable[str]:
    """Of numbers known while tracing a number, of device values of one type that type, else what they meet in."""
    items = signature.parameters.values()
    operands = [item for item in items if item.kind is not item.KEYWORD_ONLY]
    names = [item.name for item in operands]
    whole = all(item.annotation == "Integer" for item in operands)

    def overload(types: Iterable[str], gives: str) -> tuple[str, str]:
        listed = parameters(signature, **dict(zip(names, types, strict=True)))
        return "@overload", f"def {name}({listed}) -> {gives}: ..."

    number = "int" if whole else "float"
    for static in ("int",) if whole else ("int", "float"):
        yield from overload([static] * len(names), static)
    if len(names) == 1:
        yield from overload(["S"], "S")
        return
    for device in range(len(names)):
        yield from overload(["S" if index == device else f"S | {number}" for index in range(len(names))], "S")
    yield from overload([str(item.annotation) for item in operands], "Any")


FLOAT_TYPES = {
    "AnyFloat": ("F", ("float16", "bfloat16", "float32", "float64")),
    "ShortFloat": ("F", ("float16", "bfloat16", "float32")),
}
"""What a function of one float may return, by the names in its documented signature: a type variable and its types."""


def type_variable(name: str) -> str:
    variable, types = FLOAT_TYPES[name]
    return f'{variable} = TypeVar("{variable}", {", ".join(types)})'


def _of_floats(name: str, signature: inspect.Signature) -> Iterable[str]:
    """Of a number known while tracing a float, of a device value its type, which must be a float."""
    (argument,) = signature.parameters
    variable, _ = FLOAT_TYPES[signature.return_annotation]
    for given in ("float", variable):
        yield "@overload"
        yield f"def {name}({argument}: {given}) -> {given}: ..."


def function(name: str, intrinsic: Intrinsic) -> str:
    """A function of the language, with overloads where its result depends on a type."""
    signature = intrinsic.signature
    if any("DTypeOf" in item.annotation for item in signature.parameters.values()):
        return "\n".join(by_dtype(name, signature))
    if signature.return_annotation == "Promoted":
        return "\n".join(_promoted(name, signature))
    if signature.return_annotation in FLOAT_TYPES:
        return "\n".join(_of_floats(name, signature))
    return f"def {name}({parameters(signature)}) -> {signature.return_annotation}: ..."
