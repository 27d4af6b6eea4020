"""A compiler's run as a process that ends with whoever waits for it: no interrupted call leaves a child behind.

nvcc starts processes of its own, so each run is a process group, and it is the group that is killed. The table of what
runs is the process's, as the operating system's is; it tells which thread waits for which child.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Collection, Sequence

_running: dict[int, int] = {}
"""Groups that run, with the thread that waits for each. (Single operations of a dict are atomic.)"""


def run(
    command: Sequence[str], cwd: str | None = None, seconds: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    """What the command printed, and its status. An exception that ends the wait kills all that it has started.

    subprocess.TimeoutExpired: it took more than `seconds`.
    """
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0) as child:
        _running[child.pid] = threading.get_ident()
        try:
            out, err = child.communicate(timeout=seconds)
        except BaseException:
            _kill(child.pid)
            raise
        finally:
            _running.pop(child.pid, None)
    return subprocess.CompletedProcess(list(command), child.returncode, out, err)


def kill_of(threads: Collection[int]) -> None:
    """Kill what these threads wait for now."""
    for group, thread in list(_running.items()):
        if thread in threads:
            _kill(group)


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
