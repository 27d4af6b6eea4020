"""What `docs/cache.md` shows is what happens, but for digests, seconds, sizes and fields that the page leaves out."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from warpjit.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/cache.md").read_text(encoding="utf-8")
VARIES = re.compile(r"\b[0-9a-f]{12,64}\b|[0-9,.]+ (?:s|bytes|KiB)\b|\b(?:now|1 min ago)\b")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def same(text: str) -> list[str]:
    """Lines without what differs from machine to machine."""
    return [" ".join(VARIES.sub("#", line).split()) for line in text.splitlines()]


def commands(block: str) -> list[tuple[str, str]]:
    """(command, what stands below it)."""
    found = [part.partition("\n") for part in block.split("$ ")[1:]]
    return [(command, shown) for command, _, shown in found]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Runs a command of the page in a folder with its script, and gives what it prints, on either stream."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "scale.py").write_text(blocks("python")[0])

    def run(command: str) -> str:
        words = shlex.split(command)
        if words[0] == "warpjit":
            assert main(words[1:]) == 0
            return capsys.readouterr().out
        command = command.replace("python ", f"{sys.executable} ")
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    return run


@pytest.mark.nvcc
def test_the_commands_print_what_the_page_shows(shell: Callable[[str], str], tmp_path: Path) -> None:
    log, look, why, carry = blocks("console")
    for command, shown in commands(log):
        assert same(shell(command)) == same(shown), command
    listed, verified = commands(look)
    assert sorted(same(shell(listed[0]))) == sorted(same(listed[1]))
    assert shell(verified[0]).endswith(" entries, 0 damaged\n")
    ((command, shown),) = commands(why)
    said = same(shell(command))
    assert [line for line in same(shown) if line not in said] == []
    for command, shown in commands(carry):
        assert same(shell(command)) == same(shown), command
    names: dict[str, object] = {}
    exec(blocks("python")[1], names)
    assert names["taken"].known == 2  # type: ignore[attr-defined]
    sys.modules.pop("scale", None)


def test_the_page_has_its_examples() -> None:
    assert len(blocks("console")) == 4
    assert len(blocks("python")) == 2
    assert all(shown or "sed" in command for block in blocks("console") for command, shown in commands(block))
