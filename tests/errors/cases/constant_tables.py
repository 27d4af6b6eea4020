"""What `T.constant` refuses, and what cannot be done with a table."""

from catalogue import Case, Topic


def wrong(program: str, message: str) -> Case:
    """A mistaken call, in a kernel or outside of one."""
    return Case(program, message, program)


def used(program: str, message: str) -> Case:
    """A table that is not read by elements."""
    return Case(f"table = T.constant((1.0, 2.0))\n{program}", message, program)


TOPIC = Topic(
    "The language",
    "Tables of constants",
    (
        wrong('T.constant((1, 2), "int4")', "T.constant: dtype: expected a type of 8 to 64 bits but got int4"),
        wrong('T.constant("ab")', "T.constant: values: expected numbers of up to 64 bits but got an array of <U2"),
        wrong("T.constant((1.0, None))", "T.constant: values: expected numbers but got a NoneType"),
        wrong(
            "T.constant((1, 2**64))",
            "T.constant: values: expected numbers of one type of up to 64 bits but got an array of Python's objects",
        ),
        wrong(
            "T.constant(np.ma.array([1.0, 2.0], mask=[True, False]))",
            "T.constant: values: expected a number in each place but got an array with a mask",
        ),
        wrong("T.constant((1, n))", "T.constant: expected what is known while tracing but got values of the device"),
        wrong(
            "T.constant([[1], [1, 2]])",
            "T.constant: values: expected numbers, or rows of one length, in the CPU's memory",
        ),
        wrong("T.constant(())", "T.constant: values: expected 1 to 65536 bytes but got 0"),
        wrong(
            'T.constant((1, 300), "uint8")', "T.constant: values: expected integers from 0 to 255 but got 1 to 300"
        ),
        wrong(
            'T.constant(0.5, "int8")', "T.constant: values: expected integers from -128 to 127 but got 0.5 to 0.5"
        ),
        used("table[0] = 1.0", "expected a tensor that can be written, but table is a table of constants"),
        used(
            "T.load(table)",
            "T.load: tensor: expected a global or shared tensor, but table is a table: read its elements",
        ),
        used("table.storage", "storage: expected a shared or local tensor, but table is a table of constants"),
        used(
            'T.asm("ld.b32 %0, [%1];", "float32", table)',
            'T.asm("ld.b32 %0, [%1];"): ins: expected a global or shared window, but table is a table of constants',
        ),
    ),
)  # fmt: skip
