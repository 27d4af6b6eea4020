"""Lists and dictionaries, which exist while tracing only."""

from catalogue import Case, Topic

TOPIC = Topic(
    "The language",
    "Lists and dictionaries",
    (
        Case("""
            items = [1, 2]
            if n > 3:
                items.append(3)
            """,
             "append would change a list inside of a loop or branch of the device: a list exists while tracing only, "
             "so it can be changed where it was made, or in loops that are expanded\n"
             "note: the list was made here", "items.append(3)"),
        Case("""
            items = [1, 2]
            for i in range(n):
                items.append(i)
            """,
             "append would change a list inside of a loop or branch of the device: a list exists while tracing only, "
             "so it can be changed where it was made, or in loops that are expanded\n"
             "note: the list was made here", "items.append(i)"),
        Case("""
            items = {}
            for i in T.range(4):
                items[0] = i
            """,
             "an assignment to an item would change a dictionary inside of a loop or branch of the device: a "
             "dictionary exists while tracing only, so it can be changed where it was made, or in loops that are "
             "expanded\n"
             "note: the dictionary was made here", "items[0] = i"),
        Case("""
            items = [1, 2]
            items[n] = 3
            """, "an index of a list must be known while tracing, not a scalar of type int32", "items[n] = 3"),
        Case("""
            items = [1, n]
            items.index(2)
            """,
             "index looks for an equal item, which is not known while tracing: compare the items", "items.index(2)"),
        Case("""
            for a, b in zip((1, 2), (3,), strict=True):
                pass
            """,
             "ValueError: zip() argument 2 is shorter than argument 1", "for a, b in zip((1, 2), (3,), strict=True):"),
        Case("""
            items = {0: n}
            for key in items:
                items[key + 1] = n
            """, "RuntimeError: dictionary changed size during iteration", "for key in items:"),
        Case("""
            if n > 3:
                items = [1]
            else:
                items = [2]
            I[0] = items[0]
            """,
             "items would be carried by the control flow, but a list cannot be: only numbers can\n"
             "note: items is a list from here\n"
             "note: and a list from here", "if n > 3:"),
        Case("""
            items = [1, 2]
            items.pop(5)
            """, "IndexError: pop index out of range", "items.pop(5)"),
        Case("""
            def sizes():
                return ([1, 2],)

            @warpjit
            def kernel(I: T.Tensor((32,), "int32")):
                T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
                known = sizes()
                known[0].append(3)

            kernel(torch.zeros(32, dtype=torch.int32))
            """,
             "append: this list was not made in the kernel: change a copy, list(...), instead",
             "known[0].append(3)", frame=""),
    ),
)  # fmt: skip
