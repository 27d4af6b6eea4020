"""What `cache=` of `T.load`, `T.store` and `T.copy` says.

How rows spell it, and which parts go together, is `isa.cached_memory`'s; whether a non-coherent load is legal is seen
when the whole kernel is known (`passes.verify`).
"""

from __future__ import annotations

from collections.abc import Sequence

from warpjit.errors import TraceError
from warpjit.frontend.literals import describe
from warpjit.frontend.values import TensorValue, Value
from warpjit.isa.cached_memory import LOADS, STORES, spelled


def load_cache(what: str, cache: Value, tensor: TensorValue) -> str | None:
    """How a load of `tensor` is cached, as rows spell it; None for the usual way."""
    return _cache(what, cache, tensor, "load", LOADS)


def store_cache(what: str, cache: Value, tensor: TensorValue) -> str | None:
    """How a store to `tensor` is cached, as rows spell it; None for the usual way."""
    return _cache(what, cache, tensor, "store", STORES)


def copy_caches(cache: Value, of: TensorValue, to: TensorValue) -> tuple[str | None, str | None]:
    """How `T.copy` loads and stores: a pair says both, one word the load of a global source, else the store."""
    if isinstance(cache, tuple | list):
        if len(cache) != 2:
            raise TraceError(f"T.copy: cache: expected one word, or two for load and store, but got {len(cache)}")
        load, store = cache
    else:
        load, store = (cache, None) if of.space == "global" else (None, cache)
    return load_cache("T.copy", load, of), store_cache("T.copy", store, to)


def _cache(what: str, cache: Value, tensor: TensorValue, access: str, legal: Sequence[str]) -> str | None:
    if cache is None:
        return None
    if tensor.space != "global":
        raise TraceError(f"{what}: cache: expected a global tensor, but {tensor.name} is {tensor.space}")
    found = spelled(cache, legal) if isinstance(cache, str) else None
    if found is None:
        shown = ", ".join(f'"{each}"' for each in legal if "L2::" not in each)
        sizes = ", and, but for operators, with .L2::64B, .L2::128B or .L2::256B" if access == "load" else ""
        raise TraceError(f"{what}: cache: expected one of {shown}{sizes} for a {access} but got {describe(cache)}")
    return found
