"""What of Python's syntax a kernel cannot hold."""

from catalogue import Case, Topic

TOPIC = Topic(
    "The language",
    "Syntax",
    (
        Case("""
            try:
                A[0, 0] = 1
            except ValueError:
                pass
            """, "try is not part of the language", "try:"),
        Case("""
            with open("file") as file:
                pass
            """, "with is not part of the language", 'with open("file") as file:'),
        Case("""
            class Inner:
                pass
            """, "class is not part of the language", "class Inner:"),
        Case("import math", "import is not part of the language", "import math"),
        Case("from math import sqrt", "import is not part of the language", "from math import sqrt"),
        Case("global COUNT", "global is not part of the language", "global COUNT"),
        Case("""
            def helper():
                nonlocal n
                return n

            helper()
            """, "nonlocal is not part of the language", "nonlocal n"),
        Case("del n", "del is not part of the language", "del n"),
        Case('raise ValueError("no")', "raise is not part of the language", 'raise ValueError("no")'),
        Case("""
            async def later():
                pass
            """, "async def is not part of the language", "async def later():"),
        Case("""
            match n:
                case 1:
                    pass
            """, "match is not part of the language", "match n:"),
        Case("a = {1, 2}",
             "a set is not part of the language, since its order is not fixed: use a tuple or a list", "{1, 2}"),
        Case("a = yield 1", "yield is not part of the language", "yield 1"),
        Case("yield from (1, 2)", "yield from is not part of the language", "yield from (1, 2)"),
        Case("""
            for i in range(3):
                pass
            else:
                pass
            """, "for … else is not part of the language", "for i in range(3):"),
        Case("""
            while n > 3:
                n -= 1
            else:
                pass
            """, "while … else is not part of the language", "while n > 3:"),
        Case("A.name = 1",
             "name of the tensor A cannot be assigned: only attributes of objects that the kernel made can",
             "A.name = 1"),
        Case("A.size += 1",
             "size of the tensor A cannot be assigned: only attributes of objects that the kernel made can",
             "A.size += 1"),
        Case("A[0, 0] + 1", "this expression has no effect", "A[0, 0] + 1"),
        Case("return n", "a kernel returns nothing: write results into a tensor argument", "return n"),
        Case("""
            @staticmethod
            def helper():
                pass
            """, "helper: a function inside a kernel cannot have decorators", "def helper():"),
        Case("""
            for i in T.unroll(4):
                if n > i:
                    break
            """, "break under a runtime condition in an expanded loop: write it as a loop over range", "break"),
        Case("""
            for A.name in range(3):
                pass
            """, "expected a name as the variable of a loop over range", "for A.name in range(3):"),
        Case("(1, 2).name = 3",
             "name of tuple cannot be assigned: only attributes of objects that the kernel made can",
             "(1, 2).name = 3"),
    ),
)  # fmt: skip
