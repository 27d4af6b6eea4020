"""Each error of the catalogue says the whole sentence that the document holds; and no error is missing from it."""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from catalogue import Case, Outcome, Topic, marked, outcome, said, topics
from sites import Site, sites
from unreachable import UNREACHABLE, Unreachable

TOPICS = topics()
CASES = [(topic, case) for topic in TOPICS for case in topic.cases]


@functools.cache
def came_to(index: int) -> Outcome:
    """What a case came to; it runs once for all tests."""
    with tempfile.TemporaryDirectory() as folder:
        return outcome(*CASES[index], Path(folder))


def _name(pair: tuple[Topic, Case]) -> str:
    return f"{pair[0].file}-{pair[0].cases.index(pair[1])}"


@pytest.mark.parametrize("index", range(len(CASES)), ids=map(_name, CASES))
def test_the_whole_sentence(index: int) -> None:
    topic, case = CASES[index]
    error = came_to(index).error
    assert error is not None, f"no error, but expected: {case.message}"
    assert (case.message, case.place) == (said(error), marked(error))
    assert type(error) is (case.error or topic.error)


def covered() -> dict[Site, str]:
    """The sites that cases come by, with the file of a case."""
    return {site: topic.file for index, (topic, _) in enumerate(CASES) for site in came_to(index).sites}


def test_every_error_has_a_case() -> None:
    have = covered()
    home = {file: Counter(case for site, case in have.items() if site.file == file) for file in {s.file for s in have}}
    missing = [
        f"{site.file}, line {site.line}, in {site.function}: {site.text}: no case causes this error: add one to "
        f"tests/errors/cases/{home[site.file].most_common(1)[0][0] if site.file in home else '…'}"
        for site in sites().values()
        if site not in have and not any(each.holds(site) for each in UNREACHABLE)
    ]
    assert missing == []


@pytest.mark.parametrize("entry", UNREACHABLE, ids=lambda entry: entry.text[:40])
def test_what_no_user_can_cause_is_there_and_has_no_case(entry: Unreachable) -> None:
    held = [site for site in sites().values() if entry.holds(site)]
    assert held != [], "no such error any more: drop the entry"
    assert [site for site in held if site in covered()] == [], "a case causes it: drop the entry"
