"""The page `errors.md`: every error with a program that causes it, from the catalogue that the tests run."""

from __future__ import annotations

import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "errors"))

import catalogue
from catalogue import PRELUDE, STAGES, Case, Topic

INTRODUCTION = """\
# Every error

What warpjit says when something is wrong, each with a small program that causes it. Search for a few words of the
sentence. The page is written from [the cases that the tests run](../tests/errors/cases), which hold whole sentences;
another test demands a case for each place of the package that makes an error.

Every error is a `warpjit.WarpjitError`; its subclass says who is at fault.

| class | it says |
| --- | --- |
{classes}

What is wrong with a program is shown where it stands, all findings of a stage at once. This program

```python
{program}```

is answered by

```text
{answer}
```

Below, only sentences are given, after the program, with what the carets mark where that is not the whole of it. Every
program begins with

```python
{prelude}```
"""

EXAMPLE = Case("""\
@warpjit
def kernel(A: T.Tensor((8, 8), "float32"), n: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()

    def scale(x, row):
        x[row, 0] = x[row] * 2.0

    scale(A, 2 * n + lane)
    A[lane, 0] = total

kernel(torch.zeros(8, 8), 5)
""", "", frame="")  # fmt: skip
"""The one error that the page shows as it is printed."""


def page() -> str:
    """The text of `docs/errors.md`."""
    topics = catalogue.topics()
    parts = [_introduction(), _contents(topics)]
    for stage in STAGES:
        inside = [topic for topic in topics if topic.stage == stage]
        if inside:
            parts += [f"## {stage}\n", *(part for topic in inside for part in _topic(topic))]
    return "\n".join(parts)


def _introduction() -> str:
    topic = Topic("", "", (EXAMPLE,))
    with tempfile.TemporaryDirectory() as folder:
        answer = f"{catalogue.outcome(topic, EXAMPLE, Path(folder)).error}"
    kinds = sorted(catalogue.WarpjitError.__subclasses__(), key=lambda kind: kind.__name__)
    classes = "\n".join(f"| `{kind.__name__}` | {kind.__doc__} |" for kind in kinds)
    program = catalogue.listing(topic, EXAMPLE)
    return INTRODUCTION.format(classes=classes, program=program, answer=answer, prelude=PRELUDE)


def _contents(topics: list[Topic]) -> str:
    lines = ["## Contents\n"]
    for stage in STAGES:
        inside = [f"[{topic.title}](#{_anchor(topic)})" for topic in topics if topic.stage == stage]
        if inside:
            lines.append(f"* [{stage}](#{stage.lower().replace(' ', '-').replace(chr(39), '')}): {', '.join(inside)}")
    return "\n".join(lines) + "\n"


def _anchor(topic: Topic) -> str:
    kept = "".join(letter for letter in topic.title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def _topic(topic: Topic) -> Iterator[str]:
    yield f"### {topic.title}\n"
    if topic.text:
        yield textwrap.fill(" ".join(topic.text.split()), 119) + "\n"
    if topic.frame and any(case.frame is None for case in topic.cases):
        yield f"Each program stands at the `...` of\n\n```python\n{topic.frame}```\n"
    for case in topic.cases:
        yield _case(topic, case)


def _case(topic: Topic, case: Case) -> str:
    program = textwrap.dedent(case.program).strip("\n") + "\n"
    if case.frame:
        program = catalogue.listing(topic, case)
    given = f"{case.given.__doc__}\n\n" if case.given is not None and case.given.__doc__ else ""
    name = (case.error or topic.error).__name__
    shown = f", at {_span(case.at)}" if case.at and case.at != program.strip() and "\n" not in case.at else ""
    if "\n" in case.message:
        message = f"{name}{shown}:\n\n```text\n{case.message}\n```"
    else:
        message = f"{name}{shown}: {_span(case.message)}"
    return f"{given}```python\n{program}```\n\n{message}\n"


def _span(text: str) -> str:
    """Text as it is, within a line of Markdown."""
    fence = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"
