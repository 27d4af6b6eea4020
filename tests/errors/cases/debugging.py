"""What is refused of assertions and printing, and what failed assertions say."""

from catalogue import Case, Topic

from warpjit import SimulationError

DEBUG = """\
@warpjit(debug=True)
def kernel(A: T.Tensor((8, 8), "float32"), n: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    ...

kernel(torch.zeros(8, 8), 5)
"""


def wrong(program: str, message: str) -> Case:
    """A mistaken statement by itself."""
    return Case(program, message, program)


TOPIC = Topic(
    "The language",
    "Assertions and printing",
    (
        wrong('T.static_assert(A.shape[0] == 4, "rows")', "assertion failed: rows"),
        wrong("assert A.shape[0] == 4", "assertion failed: A.shape[0] == 4"),
        wrong("T.device_assert(A.shape[0] == 4)", "assertion failed"),
        wrong(
            "T.static_assert(n > 4)",
            "T.static_assert: the condition must be known while tracing, but it is computed on the device (the same "
            "for the whole grid)",
        ),
        wrong("T.static_assert(True, 5)", "T.static_assert: message: expected a string but got int 5"),
        wrong(
            "T.device_assert(n > 4, n)", "T.device_assert: message: expected a string but got a scalar of type int32"
        ),
        Case(
            'assert lane < 30, f"lane {lane} of {n}"',
            "assertion failed: lane 30 of 5; CTA (0, 0, 0), warp 0, lane 30 (and 1 more thread)",
            'assert lane < 30, f"lane {lane} of {n}"',
            error=SimulationError,
        ),
        wrong("T.printf(5)", "T.printf: format: expected a string but got int 5"),
        wrong('print(n, sep=", ", end=0)', "print: end: expected a string but got int 0"),
        wrong("print(n, file=None)", "print: got an unexpected keyword argument 'file'"),
        wrong('T.printf("a\\0b")', "T.printf: expected a text without the character 0"),
        wrong(
            'T.printf("%9999999d", n)', "T.printf: format: expected widths and precisions up to 1000 but got 9999999"
        ),
        wrong("print(A)", "print: expected numbers and texts but got the tensor A: print its elements"),
        wrong("print(*[n] * 33)", "print: expected at most 32 values but got more"),
        wrong(
            'T.printf("%y", n)',
            "T.printf: format: expected one of %d %i %u %o %x %X %c %e %E %f %F %g %G %s or %% but got '%y'",
        ),
        wrong(
            'T.printf("%d %d", n)', "T.printf: expected a value for each conversion, but '%d' has none"
        ),
        wrong('T.printf("%d", n, n)', "T.printf: expected a conversion for each value, but 1 have none"),
        wrong(
            'T.printf("%d", A[0, 0])',
            'T.printf: argument 1: expected a signed integer of at most 32 bits for "%d" but got a scalar of type '
            "float32",
        ),
        wrong(
            'T.printf("%5lld", n)',
            'T.printf: argument 1: expected a signed integer of 64 bits for "%5lld" but got a scalar of type int32',
        ),
        wrong(
            'T.printf("%u", "n")',
            'T.printf: argument 1: expected an unsigned integer of at most 32 bits for "%u" but got str \'n\'',
        ),
        wrong('T.printf("%f", n)', 'T.printf: argument 1: expected a float for "%f" but got a scalar of type int32'),
        wrong('T.printf("%s", n)', 'T.printf: argument 1: expected a string for "%s" but got a scalar of type int32'),
        Case(
            'print(f"{n:{n}}")',
            "an f-string: the format of a value must be known while tracing, but it holds device values",
            'f"{n:{n}}"',
            exactly="{n:{n}}",
        ),
        Case(
            'print(f"{n:,}")',
            "expected a format [<>][+ #][0][width][.precision], one of d, x, X, o, c for a scalar of type int32 but "
            "got ','",
            'f"{n:,}"',
            exactly="{n:,}",
        ),
        Case(
            'print(f"{A}")',
            "an f-string: expected numbers and static values but got the tensor A",
            'f"{A}"',
            exactly="{A}",
        ),
        Case(
            'T.ptx[f"add.s{n}"]',
            "expected an index that is known while tracing but got an f-string of device values",
            'T.ptx[f"add.s{n}"]',
        ),
    ),
    frame=DEBUG,
)  # fmt: skip
