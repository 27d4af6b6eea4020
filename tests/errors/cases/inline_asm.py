"""What `T.asm` refuses: texts, operands, and meanings that the simulator cannot use."""

from catalogue import Case, Topic

from warpjit import SimulationError

MEANING = """\
def meaning(a):
    ...

@warpjit
def kernel(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    Out[lane] = T.asm("neg.s32 %0, %1;", "int32", lane, meaning=meaning)

kernel(torch.zeros(32, dtype=torch.int32))
"""
CALL = 'T.asm("neg.s32 %0, %1;", "int32", lane, meaning=meaning)'
MOVE = 'T.asm("mov.b32 %0, %1;")'


def wrong(program: str, message: str) -> Case:
    """A mistaken call by itself."""
    return Case(program, message, program)


def simulated(program: str, message: str) -> Case:
    """A meaning of one argument, and what the simulator says of it."""
    said = f'T.asm("neg.s32 %0, %1;"): {message}; CTA (0, 0, 0), warp 0'
    return Case(program, said, CALL, error=SimulationError, frame=MEANING)


TOPIC = Topic(
    "The language",
    "Inline PTX",
    (
        wrong('T.asm("mov.b32 %0, %2;", "int32", lane)', "T.asm: text: expected an operand from %0 to %1 but got %2"),
        wrong(
            'T.asm("membar.gl %0;")', "T.asm: text: expected an operand from none (there are no operands) but got %0"
        ),
        wrong(
            'T.asm("mov.b32 %0, 1;", "int32", lane)',
            "T.asm: text: expected every operand in the text, but %1 of %0 to %1 is not",
        ),
        wrong(
            'T.asm("mov.b32 %0, %laneid;", "int32")',
            "T.asm: text: expected the number of an operand after % but got '%laneid;': a percent sign is written %%",
        ),
        wrong(
            'T.asm("mov.b32 %0, 1", "int32")',
            "T.asm: text: expected a semicolon at the end of the text but got '1'",
        ),
        wrong(
            'T.asm("{ mov.b32 %0, 1;", "int32")',
            "T.asm: text: expected as many { as } in the text, each after its {",
        ),
        wrong("T.asm(3)", "T.asm: text: expected a string but got int 3"),
        wrong(
            'T.asm("mov.b32 %0, %1;", lane, 1)',
            f"{MOVE}: outs: expected a data type, or a window that is written, but got a scalar of type int32",
        ),
        wrong(
            'T.asm("mov.b32 %0, %1;", "int4", 1)', f"{MOVE}: outs: expected a data type of 8 to 64 bits but got int4"
        ),
        wrong(
            'T.asm("mov.b32 %0, %1;", "int32", "int32")',
            f"{MOVE}: ins: expected a number, a pointer or a window but got str 'int32': as a result, a data type "
            "stands in outs",
        ),
        wrong(
            'T.asm("mov.b32 %0, %1;", updates=lane, ins=1)',
            f"{MOVE}: updates: expected a local tensor or a window but got a scalar of type int32",
        ),
        Case(
            'D = T.cuda.fragments("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "D")\n'
            'T.asm("mov.b32 %0, %1;", "float32", D)',
            f"{MOVE}: ins: D is spread over lanes: give D.regs, this lane's registers",
            'T.asm("mov.b32 %0, %1;", "float32", D)',
        ),
        Case(
            'bars = T.alloc_shared((2,), "mbarrier")\nT.asm("mov.b32 %0, %1;", "int64", bars)',
            f"{MOVE}: ins: bars holds mbarriers: give a pointer, bars.ptr(i)",
            'T.asm("mov.b32 %0, %1;", "int64", bars)',
        ),
        wrong(
            'T.asm("mov.b32 %0, %1;", "int64", A)',
            f"{MOVE}: ins: expected a window of one axis but got A of shape (8, 8)",
        ),
        wrong(
            'T.asm("mov.b32 %0, %1;", "int32", 1, scope="lane")',
            f'{MOVE}: scope: expected one of "thread", "warp", "warpgroup", "cta" but got str \'lane\'',
        ),
        wrong(
            'T.asm("mov.b32 %0, %1;", "int32", 1, volatile=1)',
            f"{MOVE}: volatile: expected True or False but got int 1",
        ),
        wrong(
            'T.asm("mov.b32 %0, %1;", "int32", 1, meaning=lambda a: a)',
            f"{MOVE}: meaning: expected a Python function defined outside of the kernel but got <lambda>, which is "
            "traced with it",
        ),
        wrong(
            'T.asm("mov.b32 %0, %1;", "int32", 1, meaning=3)',
            f"{MOVE}: meaning: expected a Python function but got int 3",
        ),
        wrong(
            'T.asm("mov.b64 %0, %1;", "int64", I.ptr(0), meaning=abs)',
            'T.asm("mov.b64 %0, %1;"): meaning: expected a window, A[i : i + 4], for %1 but got a pointer: how '
            "many bytes the text accesses is not known",
        ),
        wrong(
            'T.asm("red.global.add.s32 [%0], 1;", updates=I[0:1], meaning=abs)',
            'T.asm("red.global.add.s32 [%0], 1;"): updates: expected local tensors: memory that is updated has no '
            "meaning of its own",
        ),
        Case(
            'if lane < 4:\n    T.asm("bar.warp.sync 15;", scope="warp")',
            'T.asm("bar.warp.sync 15;") must be executed by a whole warp together, but it stands under control '
            "flow that is different from lane to lane: not all of its threads get there\nnote: its threads part here",
            'T.asm("bar.warp.sync 15;", scope="warp")',
        ),
        Case(
            'I[lane] = T.asm("neg.s32 %0, %1;", "int32", lane)',
            'T.asm("neg.s32 %0, %1;"): the simulator does not know what this text does: expected meaning=, a function '
            "over arrays of lanes; CTA (0, 0, 0), warp 0",
            'T.asm("neg.s32 %0, %1;", "int32", lane)',
            error=SimulationError,
        ),
        simulated("return a, a", "meaning: expected 1 results but got 2"),
        simulated("return a * 0.5", "meaning: expected an array of int32 for %0 but got float64"),
        simulated(
            "return np.zeros((3, 7), np.int32)",
            "meaning: expected an array of shape (warps, 32) for %0 but got (3, 7)",
        ),
        simulated('raise KeyError("x")', "meaning raised KeyError: 'x'"),
    ),
)  # fmt: skip
