"""Every environment variable that warpjit reads, in one place.

`read()` takes a snapshot. Nothing else in the package looks at `os.environ`; a launch on a GPU never calls this.
"""

from __future__ import annotations

import os

from warpjit.record import record

VERSION = "0.1.0"
"""Of the package; entries of the store say it."""


@record
class Config:
    """A snapshot of the environment.

    cache_dir   WARPJIT_CACHE_DIR   where cubins are kept; None: the user's cache directory
    user_cache  XDG_CACHE_HOME      where the user's caches are; None: ~/.cache
    target      WARPJIT_TARGET      architecture that CPU calls are verified for, and built for without a GPU: "sm_90a"
    cpu         WARPJIT_CPU         "simulate" (default) or "error": refuse CPU tensors
    retrace     WARPJIT_RETRACE     True ("1"): trace kernels that the index knows too, and report where it is wrong
    log         WARPJIT_LOG         names, with commas: of what is reported on stderr ("cache")
    lineinfo    WARPJIT_LINEINFO    True ("1"): build with #line and -lineinfo, for profilers
    debug       WARPJIT_DEBUG       True ("1"): kernels decorated from now on check `assert` and `print`
    compile_timeout  WARPJIT_COMPILE_TIMEOUT
                                    seconds that a run of nvcc may take, as text; None: half an hour
    cuda_home   CUDA_HOME           the toolkit's root; None: ask `nvcc --dryrun`
    path        PATH                where nvcc and nvdisasm are looked for
    """

    cache_dir: str | None = None
    user_cache: str | None = None
    target: str | None = None
    cpu: str = "simulate"
    retrace: bool = False
    log: tuple[str, ...] = ()
    lineinfo: bool = False
    debug: bool = False
    compile_timeout: str | None = None
    cuda_home: str | None = None
    path: str = ""


def read() -> Config:
    """The configuration that the environment asks for now."""
    env = os.environ
    return Config(
        cache_dir=env.get("WARPJIT_CACHE_DIR") or None,
        user_cache=env.get("XDG_CACHE_HOME") or None,
        target=env.get("WARPJIT_TARGET") or None,
        cpu=env.get("WARPJIT_CPU") or "simulate",
        retrace=env.get("WARPJIT_RETRACE", "") not in ("", "0"),
        log=tuple(filter(None, map(str.strip, env.get("WARPJIT_LOG", "").split(",")))),
        lineinfo=env.get("WARPJIT_LINEINFO", "") not in ("", "0"),
        debug=env.get("WARPJIT_DEBUG", "") not in ("", "0"),
        compile_timeout=env.get("WARPJIT_COMPILE_TIMEOUT") or None,
        cuda_home=env.get("CUDA_HOME") or None,
        path=env.get("PATH", ""),
    )
