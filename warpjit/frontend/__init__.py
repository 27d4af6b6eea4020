"""From a Python function to the IR: the language's names, argument kinds, and the tracer."""
