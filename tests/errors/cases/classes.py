"""Objects of the user's classes in a kernel."""

from catalogue import Case, Topic

FRAME = """\
class Counter:
    def __init__(self, value):
        self.value = value

    @property
    def twice(self):
        return self.value * 2

class Plain:
    size = 4
    count = classmethod(len)

class Slotted:
    def __new__(cls, value):
        return object.__new__(cls)

@dataclasses.dataclass(frozen=True)
class Pair:
    a: object
    b: object = 0

@dataclasses.dataclass(frozen=True)
class Given:
    a: object
    more: dataclasses.InitVar[int] = 0

@dataclasses.dataclass(frozen=True)
class Own:
    a: object

    def __init__(self, x):
        object.__setattr__(self, "a", x)

@warpjit
def kernel(I: T.Tensor((32,), "int32"), n: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    c = Counter(n)
    ...

kernel(torch.zeros(32, dtype=torch.int32), 5)
"""

TOPIC = Topic(
    "The language",
    "Objects",
    (
        Case("c + 1", "add of Counter: operations work on its attributes", "c + 1"),
        Case("c.twice = 3", "Counter.twice is a property that cannot be assigned", "c.twice = 3"),
        Case("""
            p = Pair(n)
            p.a = 3
            """,
             "Pair is frozen, so a cannot be assigned: make a new one, x = dataclasses.replace(x, a=...)", "p.a = 3"),
        Case("Pair(n, 1, 2)", "Pair: too many positional arguments", "Pair(n, 1, 2)"),
        Case("Own(n)", "Own has an __init__ of its own: of a frozen dataclass, expected the generated one", "Own(n)"),
        Case("Given(n, 3)", "Given: InitVar more is not part of the language", "Given(n, 3)"),
        Case("Plain(n)", "Plain() takes no arguments", "Plain(n)"),
        Case("Slotted(n)",
             "an object of Slotted cannot be made in a kernel: Slotted has __new__. Use a plain class, or a frozen "
             "dataclass", "Slotted(n)"),
        Case("dataclasses.replace(n, a=3)",
             "dataclasses.replace: expected an object of a dataclass but got a scalar of type int32",
             "dataclasses.replace(n, a=3)"),
        Case("""
            def helper(x):
                return super().size

            helper(n)
            """, "super() must stand in a method", "super()"),
        Case("""
            if n > 3:
                c.more = n
            """,
             "Counter.more is first assigned inside of a loop or branch of the device: give it a value where the "
             "object is made\n"
             "note: the object is made here", "c.more = n"),
        Case("""
            for i in range(n):
                c.more = i
            I[0] = c.more
            """,
             "Counter.more is first assigned inside of a loop or branch of the device: give it a value where the "
             "object is made\n"
             "note: the object is made here", "c.more = i"),
        Case("""
            def change():
                c.value = 1
                return True

            if n > 3 and change():
                I[0] = 1
            """,
             "Counter.value is assigned in a part of an expression that may not be evaluated: write an if statement",
             "if n > 3 and change():"),
        Case("""
            p = Pair(n)
            if n > 3:
                p = n
            I[0] = 1
            x = p
            """,
             "p would change from an int32 to a Pair\n"
             "note: an int32 from here\n"
             "note: a Pair from here", "if n > 3:"),
        Case('"text".join([n])',
             "str.join is no function of the language: expected static arguments but got device values",
             '"text".join([n])'),
        Case("[1, 2].sort(key=n)",
             "list.sort is no function of the language: expected static arguments but got device values",
             "[1, 2].sort(key=n)"),
        Case("Plain.count()", "len is not a function of the language", "Plain.count()"),
    ),
    frame=FRAME,
)  # fmt: skip
