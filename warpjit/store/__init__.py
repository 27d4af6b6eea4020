"""What is kept on disk: cubins, the index from sources to cubins, and what tuning found.

`entry` is the format of a file, `files` how one is read and published, `place` where they are, `locks` how processes
share a compilation, `eviction` what is removed when they take too much room, `store` all of it together; `contents`
looks into a directory, `bundle` takes entries to other machines. Imports neither torch nor, on a hit, any package
besides the standard library.
"""

import importlib
from typing import TYPE_CHECKING, Any

from warpjit.store.entry import SCHEMA, DamagedEntryError, Entry
from warpjit.store.keys import Part, key_of
from warpjit.store.place import default_root
from warpjit.store.store import Store, store_of

if TYPE_CHECKING:
    from warpjit.store.bundle import export_bundle, import_bundle

__all__ = [
    "SCHEMA",
    "DamagedEntryError",
    "Entry",
    "Part",
    "Store",
    "default_root",
    "export_bundle",
    "import_bundle",
    "key_of",
    "store_of",
]


def __getattr__(name: str) -> Any:
    """Bundles are loaded when they are first asked for: kernels do without."""
    if name not in ("export_bundle", "import_bundle"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("warpjit.store.bundle"), name)
