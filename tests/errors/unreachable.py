"""The errors that no user can cause, or no test, each with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from sites import Site


@dataclass(frozen=True)
class Unreachable:
    """The sites of `file` whose text holds `text`, and why no case causes them."""

    file: str
    text: str
    reason: str

    def holds(self, site: Site) -> bool:
        return site.file == self.file and self.text in site.text


UNREACHABLE: tuple[Unreachable, ...] = (
    Unreachable("warpjit/errors.py", "", "how the family makes its own members: each error goes by here"),
    Unreachable(
        "warpjit/frontend/source.py",
        "lambdas stand on this line",
        "only where Python keeps no columns; see test_source.py",
    ),
    Unreachable("warpjit/frontend/source.py", "_no_source(plain)", "only of `python -c`; see test_source.py"),
)
