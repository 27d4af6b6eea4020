"""What the page on tuning shows is what happens."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/tuning.md"


@pytest.mark.nvcc
def test_the_programs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "cache"))
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) == 5
    path = tmp_path / "page.py"
    path.write_text("\n\n".join(programs), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("tuning_page", path)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert list((tmp_path / "cache").rglob("*/cubin/*/*"))
