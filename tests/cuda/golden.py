"""Generated CUDA C++ that was read by a person and kept: tests/golden/*.cu.

WARPJIT_UPDATE_GOLDEN=1 rewrites the files; what changed is then read in the commit.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "golden"


def check_golden(name: str, text: str) -> None:
    """`text`, without the prelude that all kernels share, is what golden/<name>.cu holds."""
    body = text[text.index('extern "C" __global__') :]
    path = FOLDER / f"{name}.cu"
    if os.environ.get("WARPJIT_UPDATE_GOLDEN", "") not in ("", "0"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(body)
    assert path.exists(), f"there is no {path.name}: set WARPJIT_UPDATE_GOLDEN=1 to write it"
    assert body == path.read_text(), f"{path.name} differs: read the difference, then set WARPJIT_UPDATE_GOLDEN=1"
