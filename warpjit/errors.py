"""Every error that a user can meet, and how a place in the user's source is shown.

One family, `WarpjitError`. An error about a program carries `Finding`s: a sentence, the place it is
about (`Loc`: a chain of frames through inlined helpers, innermost last) and notes that point at other
places. All findings of a stage are raised together. What each error *says* is decided where it is
found; this file only holds and prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warpjit.record import record


@record
class Frame:
    """One source range: `line` counts from 1, columns count characters from 0, `end_column` is exclusive."""

    file: str
    function: str
    line: int
    column: int
    end_column: int
    text: str = ""

    def render(self) -> str:
        """The file, line and function, the source line, and a caret under the range."""
        head = f'  File "{self.file}", line {self.line}, in {self.function}'
        if not self.text.strip():
            return head
        indent = len(self.text) - len(self.text.lstrip())
        shown = self.text.strip()
        start = max(self.column - indent, 0)
        width = max(min(self.end_column, len(self.text.rstrip())) - self.column, 1)
        return f"{head}\n    {shown}\n    {' ' * start}{'^' * width}"


@record
class Loc:
    """A place in the user's program: the frames from the kernel down to the innermost inlined helper."""

    frames: tuple[Frame, ...] = ()

    @property
    def innermost(self) -> Frame | None:
        return self.frames[-1] if self.frames else None

    @property
    def line(self) -> int:
        """The innermost line, 0 where no place is known."""
        return self.frames[-1].line if self.frames else 0

    def render(self) -> str:
        return "\n".join(frame.render() for frame in self.frames)


NOWHERE = Loc()


@record
class Note:
    """A second place, or a fact, that a finding needs to be understood."""

    message: str
    loc: Loc = NOWHERE


@record
class Finding:
    """One thing that is wrong, where, and what else belongs to it."""

    message: str
    loc: Loc = NOWHERE
    notes: tuple[Note, ...] = ()

    def render(self) -> str:
        parts = [self.message, self.loc.render()]
        for note in self.notes:
            parts += [f"  note: {note.message}", note.loc.render()]
        return "\n".join(part for part in parts if part)


class WarpjitError(Exception):
    """Base of every error that warpjit raises on purpose. `findings` lists what it is about (may be empty)."""

    def __init__(self, message: str, findings: Sequence[Finding] = ()):
        super().__init__(message)
        self.findings = tuple(findings)

    @classmethod
    def at(cls, message: str, loc: Loc = NOWHERE, notes: Iterable[Note] = ()) -> WarpjitError:
        """An error with one finding."""
        return cls.collect([Finding(message, loc, tuple(notes))])

    @classmethod
    def collect(cls, findings: Sequence[Finding]) -> WarpjitError:
        """One error that shows all `findings` (at least one)."""
        head = f"{len(findings)} errors\n\n" if len(findings) > 1 else ""
        return cls(head + "\n\n".join(finding.render() for finding in findings), findings)


class LayoutError(WarpjitError, ValueError):
    """A layout, or an operation on layouts, that means nothing."""


class InstructionError(WarpjitError):
    """An unknown instruction text, or a row of the instruction table that contradicts itself."""


class SourceError(WarpjitError):
    """The source text of a decorated function could not be had."""


class TraceError(WarpjitError):
    """The kernel's program is wrong: found while it was traced or verified, before anything ran."""


class ArgumentError(WarpjitError, TypeError):
    """A call's arguments do not fit the kernel's parameters. Nothing was launched or changed."""


class TargetError(WarpjitError):
    """The architecture that was asked for is unknown, or lacks what the kernel needs."""


class CompileError(WarpjitError):
    """No compiler could be run, or it refused the generated code."""


class CacheError(WarpjitError):
    """The kernel cache, or a bundle of its entries, is not what a command needs. Calls of kernels never raise it."""


class LaunchError(WarpjitError):
    """The CUDA driver is missing, or refused to load or launch."""


class SimulationError(WarpjitError):
    """The simulator found that the program does something wrong: out of bounds, unwritten, deadlock, ..."""


class TuningError(WarpjitError):
    """Tuning found no configuration that runs, or could not go on."""
