"""The command line: what it answers, what it refuses, and that it starts with little."""

from __future__ import annotations

import functools
import json
import resource
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest

from warpjit import cli, isa
from warpjit.cli import main

ROOT = Path(__file__).resolve().parents[2]
HALVES = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LOAD = "ldmatrix.sync.aligned.m8n8.x2.shared.b16"


@pytest.fixture(scope="module", autouse=True)
def one_parser():
    """argparse takes as long to make a parser as all else of a command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "parser_of", functools.cache(cli.parser_of))
        yield


@pytest.fixture
def ask(capsys):
    """Runs a command that succeeds, and gives what it printed."""

    def run(*words: str) -> str:
        assert main(words) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return run


# ---- where ------------------------------------------------------------------------------------------------------


def test_where_an_element_is(ask):
    assert ask("isa", "where", HALVES, "A", "5", "9") == "A[m=5, k=9]: lane 20, register 2, bits 16 to 31\n"
    assert ask("isa", "where", HALVES, "B", "k=9", "n=3") == "B[n=3, k=9]: lane 12, register 1, bits 16 to 31\n"


def test_where_as_json_is_one_object(ask):
    found = json.loads(ask("isa", "where", HALVES, "A", "5", "9", "--json"))
    assert found == {"element": {"m": 5, "k": 9}, "lane": 20, "register": 2, "bits": [16, 31]}


def test_options_stand_anywhere(ask):
    expected = ask("isa", "where", HALVES, "A", "5", "9", "--json")
    assert ask("isa", "where", HALVES, "A", "--json", "5", "9") == expected
    assert ask("isa", "where", HALVES, "A", "5", "--json", "9") == expected
    assert ask("isa", "where", "--json", HALVES, "A", "5", "9") == expected
    lane = ask("isa", "where", HALVES, "A", "--lane", "3", "--register", "1")
    assert ask("isa", "where", "--lane", "3", HALVES, "--register", "1", "A") == lane
    assert ask("isa", "list", "--json", "mma", "--target", "sm_75") == ask(
        "isa", "list", "mma", "--target", "sm_75", "--json"
    )


def test_what_a_register_holds(ask):
    shown = ask("isa", "where", HALVES, "A", "--lane", "3", "--register", "1")
    assert shown == ("A[m=8, k=6]: lane 3, register 1, bits 0 to 15\nA[m=8, k=7]: lane 3, register 1, bits 16 to 31\n")
    found = json.loads(ask("isa", "where", HALVES, "A", "--lane", "3", "--register", "1", "--json"))
    assert [(each["element"], each["bits"]) for each in found] == [
        ({"m": 8, "k": 6}, [0, 15]),
        ({"m": 8, "k": 7}, [16, 31]),
    ]
    assert {(each["lane"], each["register"]) for each in found} == {(3, 1)}


def test_without_a_register_all_of_a_lane_are_shown(ask):
    found = json.loads(ask("isa", "where", HALVES, "D", "--lane", "31", "--json"))
    assert [each["register"] for each in found] == [0, 1, 2, 3]
    for each in found:
        place = isa.where(HALVES, "D", **each["element"])
        assert (place.lane, place.register, list(place.bits)) == (31, each["register"], each["bits"])


def test_metadata_is_told_by_row_group_and_selector(ask):
    text = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    assert ask("isa", "where", text, "E", "11", "6") == (
        "E[m=11, group=6]: lane 13, register 0, bits 24 to 27, with selector 0\n"
        "E[m=11, group=6]: lane 15, register 0, bits 24 to 27, with selector 1\n"
    )
    both = json.loads(ask("isa", "where", text, "E", "11", "6", "--json"))
    assert [(each["lane"], each["selector"]) for each in both] == [(13, 0), (15, 1)]
    held = json.loads(ask("isa", "where", text, "E", "--lane", "15", "--json"))
    assert both[1] in held
    assert len(held) == 8
    assert "E  read, 16 x 8 groups of 4 bits (m, group), 1 register of 32 bits a lane\n" in ask("isa", "show", text)


def test_which_lane_gives_an_address(ask):
    assert ask("isa", "where", LOAD, "src", "1", "3") == (
        "src[matrix=1, row=3]: lane 11 gives the address of its 16 bytes\n"
    )
    found = json.loads(ask("isa", "where", LOAD, "src", "1", "3", "--json"))
    assert found == {"row": {"matrix": 1, "row": 3}, "lane": 11, "bytes": 16}
    assert json.loads(ask("isa", "where", LOAD, "src", "--lane", "11", "--json")) == [found]
    assert json.loads(ask("isa", "where", LOAD, "src", "--lane", "16", "--json")) == []
    assert "not used" in ask("isa", "where", LOAD, "src", "--lane", "16")


# ---- show -------------------------------------------------------------------------------------------------------


def test_show_says_everything_about_an_instruction(ask):
    row = isa.lookup(HALVES)
    shown = ask("isa", "show", HALVES)
    lines = shown.splitlines()
    assert lines[0] == HALVES
    assert {"executed by  warp", f"targets      {row.needs.text}", f"section      {row.section}"} <= set(lines)
    for operand in row.operands:
        assert repr(operand.layout) in shown
    assert "A  read, 16 x 16 float16 (m, k), 4 registers of 32 bits a lane, 2 elements each" in lines
    assert row.draw("A").text().split("\n", 1)[1] in shown
    assert "\nC as D\n" in shown
    assert "\x1b" not in shown


def test_show_as_json_has_layouts_that_can_be_read_back(ask):
    from warpjit.layout import S, TileLayout, laneid  # noqa: F401, PLC0415  the layouts' own words

    found = json.loads(ask("isa", "show", HALVES, "--json"))
    assert found["text"] == HALVES
    assert "sm_90a" in found["targets"]
    assert "sm_75" not in found["targets"]
    a = next(each for each in found["operands"] if each["name"] == "A")
    assert (a["shape"], a["axes"], a["registers"], a["dtype"]) == ([16, 16], ["m", "k"], 4, "float16")
    layout = eval(a["layout"])
    assert layout.apply(5, 9, shape=(16, 16)) == {"m": 5, "laneid": 20}


@pytest.mark.parametrize("family", sorted({row.text.split(".")[0] for row in isa.listed()}))
def test_every_instruction_can_be_shown(family, ask):
    for row in isa.listed():
        if row.text.split(".")[0] == family:
            shown = ask("isa", "show", row.text)
            assert shown.startswith(row.text + "\n")
            assert row.notes in shown, row.text
            found = json.loads(ask("isa", "show", row.text, "--json"))
            assert [each["name"] for each in found["operands"]] == [operand.name for operand in row.operands], row.text


def test_unverified_instructions_say_so(ask):
    unverified = [row for row in isa.listed() if row.unverified]
    assert unverified
    for row in unverified:
        assert "notes        unverified: never compared with a device" in ask("isa", "show", row.text)
    found = json.loads(ask("isa", "list", "--json"))
    assert [each["text"] for each in found if each["unverified"]] == [row.text for row in unverified]


def test_colours_are_for_terminals_or_on_demand(ask):
    assert "\x1b[48;2;" in ask("isa", "show", HALVES, "--color", "always")
    assert "\x1b" not in ask("isa", "show", HALVES, "--color", "never")


# ---- list ---------------------------------------------------------------------------------------------------------


def test_the_list_names_every_instruction_unfolded(ask):
    lines = [line.split() for line in ask("isa", "list").splitlines()]
    shown = {line[0] for line in lines if line}
    assert {row.text for row in isa.listed()} <= shown
    assert lines[-1] == [f"{len(isa.listed()):,}", "instructions"]


def test_the_list_as_json_is_filtered(ask):
    found = json.loads(ask("isa", "list", "mma.sync", "--target", "sm_90a", "--dtype", "bf16", "--json"))
    expected = [row for row in isa.listed("sm_90a", "bf16") if "mma.sync" in row.text]
    assert [each["text"] for each in found] == [row.text for row in expected] != []
    assert all("sm_90a" in each["targets"] for each in found)
    assert json.loads(ask("isa", "list", "no such text", "--json")) == []


# ---- mistakes ------------------------------------------------------------------------------------------------------

MISTAKES = {
    "nothing": ((), "the following arguments are required: COMMAND"),
    "command": (("isb",), "invalid choice: 'isb'"),
    "subcommand": (("isa", "wheer"), "invalid choice: 'wheer'"),
    "operand": (("isa", "where", HALVES, "E", "0", "0"), "has no operand 'E'; its operands are D, A, B, C"),
    "outside": (("isa", "where", HALVES, "A", "16", "0"), "expected m in 0 to 15, k in 0 to 15 but got 16, 0"),
    "negative": (("isa", "where", HALVES, "A", "-1", "0"), "but got -1, 0"),
    "negative after an option": (("isa", "where", HALVES, "A", "--json", "5", "-9"), "but got 5, -9"),
    "twice": (("isa", "where", HALVES, "A", "m=5", "m=6", "k=0"), "m=5 k=9 but got 'm=5 m=6 k=0'"),
    "other digits": (("isa", "where", HALVES, "A", "1_0", "\u0665"), "but got '1_0 \u0665'"),
    "nothing more": (("isa", "where"), "required: text, operand;"),
    "no number": (("isa", "where", HALVES, "A", "5", "x"), "expected coordinates such as 5 9 or m=5 k=9 but got '5 x'"),
    "no element": (("isa", "where", HALVES, "A"), "but got nothing"),
    "both": (("isa", "where", HALVES, "A", "5", "9", "--lane", "3"), "but got both: 5 9 and --lane 3"),
    "no lane": (("isa", "where", HALVES, "A", "--register", "3"), "expected --lane with --register 3"),
    "lane": (("isa", "where", HALVES, "A", "--lane", "32"), "expected a lane in 0 to 31 but got 32"),
    "lane's type": (("isa", "where", HALVES, "A", "--lane", "x"), "argument --lane: invalid int value: 'x'"),
    "register": (("isa", "where", HALVES, "A", "--lane", "3", "--register", "4"), "register in 0 to 3 but got 4"),
    "address": (("isa", "where", LOAD, "src", "--lane", "3", "--register", "0"), "expected no --register"),
    "no fragment": (("isa", "where", "cp.async.wait_group", "n", "0"), "of kind immediate, not a fragment"),
    "text": (("isa", "show", "mma.sync.aligned.m16n8k17"), "has no modifier '.m16n8k17'"),
    "empty text": (("isa", "show", ""), "there is no instruction ''"),
    "other case": (("isa", "show", "MMA.SYNC"), "there is no instruction 'MMA'; did you mean mma"),
    "target": (("isa", "list", "--target", "sm90"), 'expected a target of the form "sm_90a"'),
    "type": (("isa", "list", "--dtype", "f17"), "expected a data type such as bf16"),
    "option": (("isa", "list", "--jsn"), "unrecognized arguments: --jsn"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_answered_with_one_sentence_and_status_2(case, capsys):
    words, sentence = MISTAKES[case]
    try:
        status = main(words)
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.startswith("warpjit")
    assert captured.err.count("\n") == 1


# ---- as a process ---------------------------------------------------------------------------------------------------


def run(*words: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=ROOT, **more)


def test_it_runs_as_a_module():
    done = run("-m", "warpjit", "isa", "where", HALVES, "A", "5", "9")
    assert (done.returncode, done.stderr) == (0, "")
    assert "lane 20" in done.stdout
    done = run("-m", "warpjit", "isa", "where", HALVES, "A", "99", "9")
    assert (done.returncode, done.stdout) == (2, "")


def test_the_console_script_is_the_same_function():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["options.entry_points"]["console_scripts"].split() == ["warpjit", "=", "warpjit.cli:main"]
    assert "scripts" not in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})


def test_show_starts_with_little():
    """It answers within 0.3 s where nothing else runs: neither torch nor other heavy packages are loaded."""
    heavy = ("torch", "pycuda", "rich", "matplotlib", "filelock", "platformdirs", "asyncio", "multiprocessing")
    check = (
        "import sys; from warpjit.cli import main; "
        f"status = main(['isa', 'show', {HALVES!r}]); "
        f"print(status, [name for name in {heavy!r} if name in sys.modules], len(sys.modules), file=sys.stderr)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run("-c", check)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    status, rest = done.stderr.strip().split(" ", 1)
    assert status == "0"
    assert rest.startswith("[] ")
    assert int(rest.removeprefix("[] ")) < 500
    # A bound for a busy machine; on a quiet one it takes a fifth of it.
    assert after.ru_utime - before.ru_utime < 1.5


def test_a_reader_that_stops_early_is_no_error():
    words = [sys.executable, "-m", "warpjit", "isa", "list", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "[\n"
        process.stdout.close()
        assert process.stderr.read() == ""
