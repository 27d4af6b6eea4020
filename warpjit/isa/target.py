"""The architectures that kernels are built for, and what each of them holds.

A `Target` is a plain value: an architecture number, a feature suffix and the PTX version of the toolkit.
Instruction rows ask it questions; the compiler gets its names. What a target can *do* stands in the
instruction tables, not here, and the GPU that is present is found by `cuda.driver`.

Sizes: CUDA C++ Programming Guide, "Compute Capabilities", table of technical specifications; the same
numbers stand in libcu++'s `cuda/__device/arch_traits.h`. Suffixes: nvcc manual, "GPU Feature List".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from warpjit.errors import TargetError
from warpjit.record import record

MAX_THREADS = 1024
"""Threads a block may have."""
MAX_BLOCK = (1024, 1024, 64)
"""Threads a block may have along x, y and z."""
MIN_REGISTERS, MAX_REGISTERS = 16, 255
"""32-bit registers that a thread may be limited to (CUDA C++ Programming Guide, "Compute Capabilities")."""
MAX_GRID = (2**31 - 1, 65535, 65535)
"""Blocks a grid may have along x, y and z."""
DEFAULT_SHARED = 48 * 1024
"""Bytes of shared memory that a block may have without opting in to more."""
PORTABLE_CLUSTER = 8
"""Blocks a cluster may have on every device that has clusters (Programming Guide, "Thread Block Clusters")."""
MAX_CLUSTER = 16
"""Blocks a cluster may have where its kernel opts in to more than is portable."""


@record
class Architecture:
    """One row of the table of technical specifications.

    `suffixes` lists the feature suffixes that nvcc takes beside none. `family` is the number of the
    family that an `f` target belongs to, 0 where there is none. `shared_kib` is shared memory per SM.
    """

    arch: int
    suffixes: str
    family: int
    shared_kib: int
    threads_per_sm: int
    blocks_per_sm: int


ARCHITECTURES = {
    row.arch: row
    for row in (
        Architecture(75, "", 0, 64, 1024, 16),
        Architecture(80, "", 0, 164, 2048, 32),
        Architecture(86, "", 0, 100, 1536, 16),
        Architecture(87, "", 0, 164, 1536, 16),
        Architecture(88, "", 0, 100, 1536, 16),
        Architecture(89, "", 0, 100, 1536, 24),
        Architecture(90, "a", 0, 228, 2048, 32),
        Architecture(100, "af", 100, 228, 2048, 32),
        Architecture(103, "af", 100, 228, 2048, 32),
        Architecture(110, "af", 110, 228, 1536, 24),
        Architecture(120, "af", 120, 100, 1536, 24),
        Architecture(121, "af", 120, 100, 1536, 24),
    )
}
"""Every architecture that is known, by number."""

EMBEDDED = frozenset((87, 88, 110))
"""Devices of the embedded line, which share no binaries with others (Programming Guide, "Binary Compatibility")."""

_NAME = re.compile(r"sm_(\d{2,3})([a-z]?)")


@dataclass(frozen=True, order=True)
class Target:
    """What a kernel is verified and built for.

    `arch` is the compute capability without its dot (90 for 9.0). `suffix` is "a" (every feature of exactly
    this architecture), "f" (the features of its family) or "" (what later architectures run as well).
    """

    arch: int
    suffix: str = ""

    def __post_init__(self) -> None:
        row = ARCHITECTURES.get(self.arch)
        if row is None or (self.suffix and self.suffix not in row.suffixes):
            raise TargetError(_unknown(f"sm_{self.arch}{self.suffix}"))

    @classmethod
    def parse(cls, text: str) -> Target:
        """The target that `text` names, e.g. "sm_90a". Raises `TargetError` for any other text."""
        found = _NAME.fullmatch(text)
        if found is None:
            raise TargetError(_unknown(text))
        return cls(int(found[1]), found[2])

    @classmethod
    def of_capability(cls, major: int, minor: int) -> Target:
        """The fullest target of a device with this compute capability: "sm_90a" for 9.0, "sm_89" for 8.9.

        A kernel that is built where it runs need not run elsewhere, so the suffix "a" is taken where it exists.
        """
        arch = 10 * major + minor
        row = ARCHITECTURES.get(arch)
        return cls(arch, "a" if row is not None and "a" in row.suffixes else "")

    @property
    def row(self) -> Architecture:
        return ARCHITECTURES[self.arch]

    @property
    def name(self) -> str:
        """What the target is called, e.g. "sm_90a"."""
        return f"sm_{self.arch}{self.suffix}"

    @property
    def gencode(self) -> str:
        """The value of nvcc's `-gencode`, for a cubin of this target alone."""
        return f"arch=compute_{self.arch}{self.suffix},code={self.name}"

    @property
    def ptx_gencode(self) -> str:
        """The value of nvcc's `-gencode`, for PTX of this target."""
        return f"arch=compute_{self.arch}{self.suffix},code=compute_{self.arch}{self.suffix}"

    def at_least(self, arch: int) -> bool:
        """True if this target has what `arch` gave to all later architectures."""
        return self.arch >= arch

    def specific(self, *archs: int) -> bool:
        """True if the features that `a` unlocks on one of `archs` are unlocked here."""
        return self.suffix == "a" and self.arch in archs

    def in_family(self, *archs: int) -> bool:
        """True if the features that `f` unlocks on one of `archs` are unlocked here.

        Those of sm_100f are there on every `f` and `a` target of the same family with at least that number
        (PTX ISA, `.target`).
        """
        return self.suffix != "" and any(
            self.arch >= arch and self.row.family == ARCHITECTURES[arch].family != 0 for arch in archs
        )

    def runs_on(self, device: Target) -> bool:
        """True if a cubin for this target runs on a device whose fullest target is `device`.

        Within a major number later devices run what was built for earlier ones, but not from or to those of the
        embedded line; with "a" the device must be the same, with "f" of the family (nvcc manual, "GPU Compilation").
        """
        if self.arch == device.arch:
            return True
        if self.suffix == "f":
            return device.arch > self.arch and self.row.family == device.row.family
        alike = self.arch // 10 == device.arch // 10 and device.arch > self.arch
        return alike and self.suffix == "" and not EMBEDDED & {self.arch, device.arch}

    @property
    def reserved_shared(self) -> int:
        """Bytes of shared memory that the system keeps in every block: 1 KiB from compute capability 8.0 on."""
        return 1024 if self.arch >= 80 else 0

    @property
    def shared_per_sm(self) -> int:
        """Bytes of shared memory of an SM, the reserved ones of its blocks included."""
        return self.row.shared_kib * 1024

    @property
    def max_shared(self) -> int:
        """Bytes of shared memory that a block may have after opting in (static and dynamic together)."""
        return self.shared_per_sm - self.reserved_shared

    @property
    def has_clusters(self) -> bool:
        return self.arch >= 90

    def __str__(self) -> str:
        return self.name


def _unknown(text: str) -> str:
    known = ", ".join(
        f"sm_{row.arch}" + "".join(f"|{suffix}" for suffix in row.suffixes) for row in ARCHITECTURES.values()
    )
    return f'expected a target of the form "sm_90a" but got {text!r}; known are {known}'
