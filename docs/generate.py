"""Writes what is made from the package: `language.md`, `errors.md`, the stubs of `T`, and the pictures of `isa.md`.

python docs/generate.py            write the files
python docs/generate.py --check    write nothing; exit with 1, and name the files, if some are stale
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import errors_page
import isa_pictures
import language_page
import language_stub

ROOT = Path(__file__).resolve().parents[1]

FILES: dict[str, Callable[[], str]] = {
    "docs/errors.md": errors_page.page,
    "docs/language.md": language_page.page,
    "docs/pictures/m16n8k16_a.svg": isa_pictures.operand,
    "docs/pictures/swizzle_128.svg": isa_pictures.swizzle,
    "warpjit/frontend/language/__init__.pyi": language_stub.language_stub,
    "warpjit/frontend/language/approx.pyi": language_stub.approx_stub,
    "warpjit/frontend/language/cuda.pyi": language_stub.cuda_stub,
}


def stale(root: Path = ROOT) -> dict[str, str]:
    """The files that are not what they would be made to, with the text that they should have."""
    made = {name: make() for name, make in FILES.items()}
    return {name: text for name, text in made.items() if not _holds(root / name, text)}


def _holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def main() -> int:
    """Entry of the command line."""
    parser = argparse.ArgumentParser(description="Make docs/language.md, docs/errors.md, pictures and the stubs of T.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    check = parser.parse_args().check
    found = stale()
    for name, text in found.items():
        print(f"{'stale' if check else 'written'}: {name}")
        if check:
            continue
        (ROOT / name).parent.mkdir(exist_ok=True)
        (ROOT / name).write_text(text, encoding="utf-8")
    return int(check and bool(found))


if __name__ == "__main__":
    sys.exit(main())
