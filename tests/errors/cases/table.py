"""Looking up instructions, their operands and pictures; sparse matrices; the calculator."""

from catalogue import Case, Topic

from warpjit.errors import ArgumentError, InstructionError, LayoutError

FRAME = """\
from warpjit.cuda import templates
from warpjit.isa import sparse
from warpjit.isa.calculator import given, giver, holds, where
from warpjit.isa.operands import Group
from warpjit.isa.table import collect
from warpjit.passes.launch_plan import LaunchPlan

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
mma = isa.lookup(MMA)
...
"""

TOPIC = Topic(
    "Instructions",
    "The table of instructions",
    (
        Case('isa.lookup("mma.sync.aligned.m16n8k99")',
             "mma.sync.aligned has no modifier '.m16n8k99'; legal here: .m16n8k16, .m16n8k8, .m16n8k4, .m8n8k4, "
             ".m16n8k32, .m8n8k16, .m8n8k32, .m16n8k64, .m8n8k128, .m16n8k128, .m16n8k256"),
        Case('isa.lookup("mna.sync")', "there is no instruction 'mna'; did you mean mma or min or max?"),
        Case('mma.operand("E")',
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 has no operand 'E'; its operands are D, A, B, C"),
        Case('isa.lookup("bar.sync").draw("id")',
             "bar.sync: operand id is of kind scalar: there is nothing to draw, for it is not spread over lanes"),
        Case('mma.draw("A", color="bank")',
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: operand A: draw: expected color 'lane' or "
             "'register' but got 'bank'"),
        Case("sparse.prune(torch.zeros(16, 32).half(), MMA)",
             "instruction: expected a sparse one, mma.sp, but got mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
             error=ArgumentError),
        Case("sparse.pack(torch.zeros(20, 32).half(), SPARSE)",
             "dense: expected a multiple of 16 rows and of 32 columns but got shape (20, 32)", error=ArgumentError),
        Case("sparse.pack(torch.zeros(16, 32), SPARSE)",
             "dense: expected a matrix of torch.float16 (float16) but got torch.float32 of shape (16, 32)",
             error=ArgumentError),
        Case("sparse.pack(torch.ones(16, 32).half(), SPARSE)",
             "dense: expected at most 2 of 4 elements of a group that are not zero, but row 0, group 0 has 4: "
             "prune(dense, instruction) keeps the largest", error=ArgumentError),
        Case('Group("thread")', "scope 'thread' does not hold whole warps; the scopes are 'warp', 'warpgroup', 'cta'"),
        Case('isa.convert(TileLayout(S[8]), TileLayout(S[4]), "float16")',
             "convert: TileLayout(S[8 : 1]) has 8 elements, but TileLayout(S[4 : 1]) has 4", error=LayoutError),
        Case('isa.convert(TileLayout(S[64 : 1 @ laneid]), TileLayout(S[64]), "float16")',
             "convert: TileLayout(S[64 : 1 @ laneid]) has lanes up to 63, but a warp has 32", error=LayoutError),
        Case('isa.matrix_layout("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "d")',
             "ldmatrix.sync.aligned.m8n8.x4.shared.b16: operand d of shape (4, 8, 8) is no matrix of atoms",
             error=LayoutError),
        Case("sparse.unpack(sparse.Packed(torch.zeros(16, 16).half(), torch.zeros(1, 1, 32)), SPARSE)",
             "metadata: expected uint32 of shape (1, 1, 32) but got torch.float32 of shape (1, 1, 32)",
             error=ArgumentError),
        Case("sparse.unpack(sparse.Packed(torch.zeros(16, 16).half(), None), SPARSE)",
             "metadata: expected uint32 of shape (1, 1, 32) but got None", error=ArgumentError),
        Case("sparse.unpack(torch.zeros(16, 16).half(), SPARSE)",
             "packed: expected what pack(dense, instruction) gives but got torch.float16 of shape (16, 16)",
             error=ArgumentError),
        Case('sparse.prune(torch.zeros(16, 32, device="meta").half(), SPARSE)',
             "dense: expected a dense tensor in memory but got torch.strided on meta", error=ArgumentError),
        Case("sparse.pack(torch.zeros(16, 32).half().to_sparse(), SPARSE)",
             "dense: expected a dense tensor in memory but got torch.sparse_coo on cpu", error=ArgumentError),
        Case('sparse.unpack(sparse.Packed(torch.zeros(16, 16, device="meta").half(), None), SPARSE)',
             "values: expected a dense tensor in memory but got torch.strided on meta", error=ArgumentError),
        Case("""
            words = torch.zeros(1, 1, 32, dtype=torch.uint32)
            sparse.unpack(sparse.Packed(torch.zeros(16, 16).half(), words), SPARSE)
            """,
             "metadata of row 0, group 0: expected two different places, the lower one first, but got 0b0000, whose "
             "effect is undefined", error=ArgumentError),
        Case('templates.parse("x = {y")', "a single brace at position 4 of the code 'x = {y': write it twice"),
        Case('dataclasses.replace(mma, divisor="E")',
             "row 'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32': its divisor 'E' is no operand"),
        Case("collect([mma, mma])", "two rows have the text 'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32'"),
        Case('LaunchPlan.from_json({"schema": 0})',
             "expected a launch plan of schema 2 but got 0", error=ArgumentError),
    ),
    frame=FRAME,
    error=InstructionError,
)  # fmt: skip
