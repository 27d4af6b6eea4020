"""What of Python's syntax a kernel cannot hold."""

from catalogue import Case, Topic

TOPIC = Topic(
    "The language",
    "Syntax",
    (
        Case("x = q", "the name q is not defined", "q"),
    ),
)  # fmt: skip
