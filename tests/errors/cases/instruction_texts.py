"""What the instruction table and the calculator refuse: texts, operands, coordinates, types."""

from catalogue import Case, Topic

from warpjit.errors import ArgumentError, InstructionError, LayoutError

TOPIC = Topic(
    "Instructions",
    "The table and the calculator",
    (
        Case("isa.lookup(5)", "expected the text of an instruction but got 5"),
        Case('isa.lookup("ldmatri.sync")',
             "there is no instruction 'ldmatri'; did you mean ldmatrix or stmatrix or movmatrix?"),
        Case('isa.lookup("ldmatrix.sync.aligned.m8n8.x3.shared.b16")',
             "ldmatrix.sync.aligned.m8n8 has no modifier '.x3'; legal here: .x1, .x2, .x4"),
        Case('isa.where("movmatrix.sync.aligned.m8n8.trans.b16", "a", 8, 0)',
             "movmatrix.sync.aligned.m8n8.trans.b16: operand a: expected row in 0 to 7, column in 0 to 7 but got 8, 0"),
        Case('isa.holds("movmatrix.sync.aligned.m8n8.trans.b16", "a", 32, 0)',
             "movmatrix.sync.aligned.m8n8.trans.b16: operand a: expected a lane in 0 to 31 but got 32"),
        Case('isa.given("movmatrix.sync.aligned.m8n8.trans.b16", "a", 0)',
             "movmatrix.sync.aligned.m8n8.trans.b16: operand a is of kind fragment and has no rows that lanes give "
             "addresses of"),
        Case('isa.fits("movmatrix.sync.aligned.m8n8.trans.b16", "a", (8, 4))',
             "fits: expected a layout but got (8, 4)", error=LayoutError),
        Case("isa.convert(TileLayout(S[32 : 1 @ laneid]), None)",
             "convert: expected a layout but got None", error=LayoutError),
        Case("from warpjit.isa import sparse\n"
             'sparse.pack([0], "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")',
             "dense: expected a matrix of torch.float16 (float16) but got [0]", error=ArgumentError),
        Case('isa.listed(dtype="f17")',
             "expected a data type such as bf16 but got 'f17'; the types are b1, b16, b32, b64, b8, bf16, bf16x2, "
             "e2m1, e2m3, e3m2, e4m3, e5m2, f16, f16x2, f32, f64, pred, s16, s32, s4, s64, s8, tf32, u16, u32, u4, "
             "u64, u8, ue4m3, ue8m0"),
    ),
    frame="",
    error=InstructionError,
)  # fmt: skip
