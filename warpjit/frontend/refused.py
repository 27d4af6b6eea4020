"""What a kernel cannot hold, in the words of Python's syntax: the sentence for each kind of node without a handler."""

from __future__ import annotations

import ast

SENTENCES: dict[type[ast.AST], str] = {
    ast.SetComp: "a set is not part of the language, since its order is not fixed: use a tuple or a list",
    ast.Set: "a set is not part of the language, since its order is not fixed: use a tuple or a list",
}

WORDS: dict[type[ast.AST], str] = {
    ast.AsyncFor: "async for",
    ast.AsyncFunctionDef: "async def",
    ast.AsyncWith: "async with",
    ast.Await: "await",
    ast.ClassDef: "class",
    ast.Delete: "del",
    ast.Global: "global",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Match: "match",
    ast.Nonlocal: "nonlocal",
    ast.Raise: "raise",
    ast.Try: "try",
    ast.TryStar: "try",
    ast.With: "with",
    ast.Yield: "yield",
    ast.YieldFrom: "yield from",
}


def refusal(node: ast.AST) -> str:
    """Why a node cannot stand in a kernel."""
    kind = type(node)
    return SENTENCES.get(kind) or f"{WORDS.get(kind, kind.__name__)} is not part of the language"
