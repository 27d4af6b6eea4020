"""What is kept on disk: cubins, the index from sources to cubins, and what tuning found.

`entry` is the format of a file, `files` how one is read and published, `place` where they are, `locks` how processes
share a compilation, `eviction` what is removed when they take too much room, `store` all of it together. Imports
neither torch nor, on a hit, any package besides the standard library.
"""

from warpjit.store.entry import SCHEMA, DamagedEntryError, Entry
from warpjit.store.keys import Part, key_of
from warpjit.store.place import default_root
from warpjit.store.store import Store, store_of

__all__ = ["SCHEMA", "DamagedEntryError", "Entry", "Part", "Store", "default_root", "key_of", "store_of"]
