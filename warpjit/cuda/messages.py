"""What nvcc and ptxas said, as data, and an error that points at the user's lines.

nvcc's front end counts lines of the generated text; ptxas counts lines of the PTX between. `ptx_lines` reads the
`.loc` marks of a PTX file that was made with `-lineinfo`, so that both become lines of the text. What a line of
the text means in the user's program is the caller's: a function from a line to a `Loc`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from warpjit.errors import NOWHERE, CompileError, Finding, Loc, Note, WarpjitError
from warpjit.record import record

Locate = Callable[[int], Loc]
"""From a line of the generated text, counted from 1, to the user's place (`NOWHERE` if it has none)."""


@record
class CompilerMessage:
    """One thing that a tool said.

    `tool` is "nvcc" or "ptxas", `severity` "error", "fatal", "warning" or "info". `line` counts from 1 in the
    generated text (in the PTX, for what ptxas said, until `with_text_lines` has been applied) and is 0 if no line
    was named.
    """

    tool: str
    severity: str
    line: int
    message: str


_FORMS = (
    re.compile(r"(?P<tool>ptxas) .*, line (?P<line>\d+); (?P<severity>error|fatal|warning|info)\s*: (?P<message>.*)"),
    re.compile(r"(?P<tool>ptxas|nvcc)\s+(?P<severity>error|fatal|warning|info)\s*: (?P<message>.*)"),
    re.compile(
        r"\S*?\((?P<line>\d+)\): (?P<severity>error|catastrophic error|warning|remark)(?: #[\w-]+)?: (?P<message>.*)"
    ),
)
_SEVERITIES = {"catastrophic error": "fatal", "remark": "info"}


def parse_messages(output: str) -> tuple[CompilerMessage, ...]:
    """The messages in the joined output of nvcc and what it runs, in order. Lines of any other form are left out."""
    found = (next((hit for form in _FORMS if (hit := form.fullmatch(line))), None) for line in output.splitlines())
    return tuple(_message(hit.groupdict()) for hit in found if hit is not None)


def _message(parts: dict[str, str | None]) -> CompilerMessage:
    severity = parts["severity"] or ""
    return CompilerMessage(
        parts.get("tool") or "nvcc",
        _SEVERITIES.get(severity, severity),
        int(parts.get("line") or 0),
        parts["message"] or "",
    )


_MARK = re.compile(r"\s*\.loc\s+1\s+(\d+)\s")


def ptx_lines(ptx: str) -> list[int]:
    """For each line of `ptx` (index 0 is line 1) the line of the generated text that it comes from, 0 before any."""
    lines, current = [], 0
    for text in ptx.splitlines():
        mark = _MARK.match(text)
        current = int(mark[1]) if mark else current
        lines.append(current)
    return lines


def with_text_lines(messages: Sequence[CompilerMessage], ptx: str) -> tuple[CompilerMessage, ...]:
    """`messages` with ptxas's lines, which count in `ptx`, turned into lines of the generated text."""
    lines = ptx_lines(ptx)

    def turned(message: CompilerMessage) -> CompilerMessage:
        if message.tool != "ptxas" or not 0 < message.line <= len(lines):
            return message
        return replace(message, line=lines[message.line - 1])

    return tuple(turned(message) for message in messages)


def refusal(messages: Sequence[CompilerMessage], output: str, text: str, locate: Locate | None) -> WarpjitError:
    """The `CompileError` for a compiler that failed with `messages`; `output` is shown when none of them is an error.

    A message with a line becomes a finding at the user's place, with the generated line as a note. A closing "fatal:
    aborted due to errors" is dropped when the errors themselves are there.
    """
    fatal = [message for message in messages if message.severity == "fatal"]
    errors = [message for message in messages if message.severity == "error"] or fatal
    if not errors:
        return CompileError(f"nvcc failed and said: {output.strip() or '(nothing)'}")
    lines = text.splitlines()
    return CompileError.collect([_finding(message, lines, locate) for message in errors])


def _finding(message: CompilerMessage, lines: Sequence[str], locate: Locate | None) -> Finding:
    sentence = f"{message.tool} refused the generated code: {message.message}"
    if not 0 < message.line <= len(lines):
        return Finding(sentence)
    loc = locate(message.line) if locate else NOWHERE
    return Finding(
        sentence, loc, (Note(f"line {message.line} of the generated code: {lines[message.line - 1].strip()}"),)
    )
