"""What `docs/isa.md` shows is what happens: its commands print what stands below them, and its code runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from warpjit.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/isa.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


COMMANDS = [
    tuple(part.split("\n", 1)) for block in blocks("console") for part in block.split("$ warpjit ")[1:]
]  # (command, what it prints)


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_prints_what_stands_below_it(command, shown, capsys):
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == shown


def test_there_are_commands():
    assert len(COMMANDS) >= 7


def test_the_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = blocks("python")
    assert len(code) == 4
    names: dict[str, object] = {}
    for block in code:
        exec(block, names)
    assert {path.name for path in tmp_path.iterdir()} == {"a.svg", "swizzle.svg"}
    assert "T31 R3" in capsys.readouterr().out


def test_its_pictures_are_there():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", PAGE)
    assert len(pictures) == 2
    assert all((ROOT / "docs" / name).exists() for name in pictures)
