"""Errors of the command line: `warpjit` prints the sentence and exits with 2."""

from catalogue import Case, Topic

from warpjit.errors import InstructionError

FRAME = """\
from warpjit.cli import isa as commands

def where(*words, lane=None, register=None, text="mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", operand="A"):
    \"\"\"warpjit isa where TEXT OPERAND WORDS --lane LANE --register REGISTER\"\"\"
    from argparse import Namespace

    commands._where(Namespace(text=text, operand=operand, coordinates=words, lane=lane, register=register, json=False))

...
"""

TOPIC = Topic(
    "The command line",
    "warpjit isa where",
    (
        Case("where(register=3)", "expected --lane with --register 3"),
        Case('where("5", "9", lane=3)', "expected an element, or --lane, but got both: 5 9 and --lane 3"),
        Case('where("five")', "expected coordinates such as 5 9 or m=5 k=9 but got 'five'"),
        Case('where("99", "0")',
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand A: expected m in 0 to 15, k in 0 to 15 but "
             "got 99, 0"),
        Case('where(text="ldmatrix.sync.aligned.m8n8.x4.shared.b16", operand="src", lane=3, register=3)',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand src is an address: expected no --register"),
    ),
    frame=FRAME,
    error=InstructionError,
)  # fmt: skip
